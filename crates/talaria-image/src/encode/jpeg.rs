//! JPEG, baseline, with colours at half resolution: at equal bytes that reads better than colours
//! at full resolution.

#[cfg(not(feature = "c-decoders"))]
mod plain;
#[cfg(feature = "c-decoders")]
mod turbo;

#[cfg(not(feature = "c-decoders"))]
pub(crate) use plain::jpeg;
#[cfg(feature = "c-decoders")]
pub(crate) use turbo::jpeg;
