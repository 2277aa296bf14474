//! What `prepare` makes of pictures, seen from outside.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "test support fails the test, and draws with small numbers"
)]

mod budget;
mod cases;
mod drawing;
mod geometry;
