//! The HTTP side: paths, queries, content negotiation, answers, and the service itself.

mod answer;
mod objects;
mod protobuf;
mod query;
mod reviews;
mod route;
pub mod serve;
pub mod service;
