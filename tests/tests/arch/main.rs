//! The architecture as tests: who may use whom, what a file may be called and hold, and that
//! documents name what exists.

mod cases;
mod documents;
mod edges;
mod sources;
mod tree;
