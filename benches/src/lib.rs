//! What the load driver and the benches share: building the programs, driving closed loops of
//! clients, and a Prometheus server that scrapes meanwhile.

pub mod drive;
pub mod programs;
pub mod prometheus;
