//! Properties of the translations over arbitrary input, and rules that the table of rows does not hold.

mod ownership;
mod properties;
mod rules;
