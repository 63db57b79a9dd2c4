//! Who hears of the objects of a kind.

use crate::kube_api::error::ApiError;

/// What a room does with the objects it watches. Calls come in the order of the stream, from one task, and must return
/// quickly.
pub trait Observer<K>: Send {
    /// A list begins; two in a row are normal.
    fn list_begins(&mut self);
    /// An object exists in this state. `fresh`: a live event, not part of a list.
    fn seen(&mut self, object: K, fresh: bool);
    /// An object was deleted; `object` is its last state.
    fn gone(&mut self, object: K);
    /// A list ended: what was held and not seen since it began is gone.
    fn list_ends(&mut self);
    /// The kind cannot be listed or watched now; called for each failed try. For rooms that can do without.
    fn unavailable(&mut self, _error: &ApiError) {}
}

/// Two observers of one stream.
pub struct Both<A, B>(pub A, pub B);

impl<K: Clone, A: Observer<K>, B: Observer<K>> Observer<K> for Both<A, B> {
    fn list_begins(&mut self) {
        self.0.list_begins();
        self.1.list_begins();
    }

    fn seen(&mut self, object: K, fresh: bool) {
        self.0.seen(object.clone(), fresh);
        self.1.seen(object, fresh);
    }

    fn gone(&mut self, object: K) {
        self.0.gone(object.clone());
        self.1.gone(object);
    }

    fn list_ends(&mut self) {
        self.0.list_ends();
        self.1.list_ends();
    }

    fn unavailable(&mut self, error: &ApiError) {
        self.0.unavailable(error);
        self.1.unavailable(error);
    }
}
