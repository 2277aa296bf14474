//! The cases of the specification and of the field, run through the whole of the rules: plan,
//! store, finish, spill, settle, render.

#[cfg(test)]
mod attached_words;
#[cfg(test)]
mod attaching;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod conversion;
#[cfg(test)]
mod describing;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod downgrades;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod field;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod guarded;
#[cfg(test)]
mod payloads;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod spills;
#[cfg(test)]
mod utilities;
