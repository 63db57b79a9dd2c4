//! Properties of the translations over arbitrary input, and rules that the table of rows does not hold.

mod properties;
mod rules;
