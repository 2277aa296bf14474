//! Pixels through the whole service: the gate by configuration and route, what is attached, one
//! picture by itself, what is taken out again, and what happens when the pool is busy.

mod attaching;
mod drawings;
mod formats;
mod gate;
mod load;
mod look_up;
mod metrics;
mod refusals;
mod scene;
mod single;
mod table;
