//! The content rules seen from outside: every case of conversion, base64, file names, TAG
//! characters and `_meta`, through the running service.

mod base64_rules;
mod conversion;
mod file_names;
mod hidden_characters;
mod links;
mod scene;
mod structured;
mod vendor_meta;
