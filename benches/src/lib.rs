//! What the load driver and the benches share: building the programs, driving closed loops of
//! clients, a Prometheus server that scrapes meanwhile, and workers that make pictures ready.

pub mod drive;
pub mod pictures;
pub mod programs;
pub mod prometheus;
