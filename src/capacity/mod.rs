//! What capacity objects are marked with: who owns them ([`owner`]) and who manages them ([`labels`]). [`worker`] looks
//! the owner up at start.

pub mod labels;
pub mod owner;
pub mod worker;
