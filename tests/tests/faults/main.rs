//! Servers that fail, lie, hang and die: what it costs, and that it costs nobody else anything.

mod callbacks;
mod deadlines;
mod deaths;
mod http_faults;
mod http_oddities;
mod messages;
mod modern;
mod orphans;
mod replays;
mod stage;
mod unclear;
