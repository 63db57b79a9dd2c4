//! Where a volume must be reachable from, shared and compact.
//!
//! Many claims ask for the same list of places, and a list may hold one place per node of a large cluster. So the list
//! is shared between claims, the preferred order is only where it begins, and the stored form names each key once.

use super::request::Segments;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Requested accessibility: at least one of `requisite`, better in the order that begins at `first` and wraps round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accessibility {
    /// The places, never empty.
    pub requisite: Arc<Vec<Segments>>,
    /// Index of the place to prefer.
    pub first: usize,
}

impl Accessibility {
    /// The same places, best first.
    pub fn preferred(&self) -> impl Iterator<Item = &Segments> {
        let list = &self.requisite;
        list.iter().cycle().skip(self.first).take(list.len())
    }
}

/// The stored form: runs of places with the same keys, values row by row.
#[derive(Serialize, Deserialize)]
struct Compact {
    runs: Vec<Run>,
    first: usize,
}

#[derive(Serialize, Deserialize)]
struct Run {
    keys: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Serialize for Accessibility {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut runs: Vec<Run> = Vec::new();
        for place in self.requisite.iter() {
            let keys: Vec<String> = place.keys().cloned().collect();
            if runs.last().is_none_or(|run| run.keys != keys) {
                runs.push(Run { keys, rows: Vec::new() });
            }
            if let Some(run) = runs.last_mut() {
                run.rows.push(place.values().cloned().collect());
            }
        }
        Compact { runs, first: self.first }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Accessibility {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Compact { runs, first } = Compact::deserialize(from)?;
        let places = |run: Run| {
            let keys = run.keys;
            run.rows.into_iter().map(move |row| keys.iter().cloned().zip(row).collect::<Segments>())
        };
        Ok(Self { requisite: Arc::new(runs.into_iter().flat_map(places).collect()), first })
    }
}

#[cfg(test)]
mod tests {
    use super::Accessibility;
    use crate::model::Segments;
    use std::sync::Arc;

    fn place(pairs: &[(&str, &str)]) -> Segments {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn stored_form_gives_the_same_places_in_the_same_order() {
        let requisite = vec![place(&[("zone", "a")]), place(&[("zone", "b")]), place(&[("host", "h1"), ("zone", "a")])];
        let asked = Accessibility { requisite: Arc::new(requisite), first: 1 };
        let text = serde_json::to_string(&asked).expect("serialisable");
        let back: Accessibility = serde_json::from_str(&text).expect("readable");
        assert_eq!(back, asked);
        assert_eq!(text.matches("zone").count(), 2);
    }

    #[test]
    fn preferred_begins_at_the_first_and_wraps_round() {
        let asked = Accessibility { requisite: Arc::new(vec![place(&[("z", "a")]), place(&[("z", "b")])]), first: 1 };
        let order: Vec<&str> = asked.preferred().map(|one| one["z"].as_str()).collect();
        assert_eq!(order, ["b", "a"]);
    }
}
