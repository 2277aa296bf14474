//! The Talaria service and its command line.

fn main() {}
