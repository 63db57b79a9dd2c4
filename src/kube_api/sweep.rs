//! Finds out what a list no longer contains.

use std::collections::BTreeSet;

/// Keys seen since a list began. Two beginnings in a row are normal: a list can be cut and started again.
#[derive(Debug, Default)]
pub struct Sweep(Option<BTreeSet<String>>);

impl Sweep {
    /// A list begins.
    pub fn begin(&mut self) {
        self.0 = Some(BTreeSet::new());
    }

    /// An object that is held was seen. Costs nothing outside a list.
    pub fn saw(&mut self, key: &str) {
        if let Some(seen) = &mut self.0 {
            seen.insert(key.to_owned());
        }
    }

    /// The list ended: which of the held keys were not in it. Empty if no list was under way.
    pub fn end(&mut self, held: Vec<String>) -> Vec<String> {
        match self.0.take() {
            Some(seen) => held.into_iter().filter(|key| !seen.contains(key)).collect(),
            None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sweep;

    #[test]
    fn what_a_restarted_list_does_not_contain_is_gone() {
        let mut sweep = Sweep::default();
        sweep.begin();
        sweep.saw("a");
        sweep.begin();
        sweep.saw("b");
        assert_eq!(sweep.end(vec!["a".into(), "b".into()]), ["a"]);
    }

    #[test]
    fn nothing_is_gone_without_a_list() {
        let mut sweep = Sweep::default();
        sweep.saw("a");
        assert!(sweep.end(vec!["a".into()]).is_empty());
    }
}
