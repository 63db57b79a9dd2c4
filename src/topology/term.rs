//! One place: pairs of topology key and value, all of which must hold.
//!
//! Promises: terms have one order (fewer pairs first, then pairwise by key, then value, byte by byte), so that equal
//! clusters give equal lists.

use crate::model::Segments;
use crate::model::class::TopologyTerm;
use std::cmp::Ordering;

/// Compares two terms: fewer pairs first, then pair by pair.
pub fn compare(one: &Segments, other: &Segments) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.iter().cmp(other.iter()))
}

/// Sorts and removes exact duplicates and terms without pairs. A term that another contains is kept.
pub fn sorted(mut terms: Vec<Segments>) -> Vec<Segments> {
    terms.retain(|term| !term.is_empty());
    terms.sort_by(compare);
    terms.dedup();
    terms
}

/// Whether each pair of `part` is in `whole`.
pub fn is_within(part: &Segments, whole: &Segments) -> bool {
    part.iter().all(|(key, value)| whole.get(key) == Some(value))
}

/// All combinations of the class's `allowedTopologies`, in the order of the class (1.6 point 1).
///
/// An expression without values resets the product, as in the reference; the API server refuses such classes.
pub fn flattened(allowed: &[TopologyTerm]) -> Vec<Segments> {
    allowed.iter().flat_map(combinations).collect()
}

fn combinations(term: &TopologyTerm) -> Vec<Segments> {
    let mut partial: Vec<Segments> = Vec::new();
    for expression in &term.match_label_expressions {
        let bases = if partial.is_empty() { vec![Segments::new()] } else { partial };
        partial = Vec::new();
        for value in &expression.values {
            for base in &bases {
                let mut next = base.clone();
                next.insert(expression.key.clone(), value.clone());
                partial.push(next);
            }
        }
    }
    partial
}

/// Terms for a message: `{key=value,key=value} ...`, at most a handful.
pub fn shown(terms: &[Segments]) -> String {
    const MOST: usize = 5;
    let mut text: Vec<String> = terms.iter().take(MOST).map(shown_one).collect();
    if terms.len() > MOST {
        text.push(format!("and {} more", terms.len() - MOST));
    }
    text.join(" ")
}

/// One term for a message.
pub fn shown_one(term: &Segments) -> String {
    let pairs: Vec<String> = term.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{{{}}}", pairs.join(","))
}
