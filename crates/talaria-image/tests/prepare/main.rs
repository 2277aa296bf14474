//! What `prepare` makes of pictures, seen from outside.

mod budget;
mod cases;
mod drawing;
mod geometry;
