//! stub
/// stub
pub trait Observer<K>: Send {
    /// a
    fn list_begins(&mut self);
    /// a
    fn seen(&mut self, object: K, fresh: bool);
    /// a
    fn gone(&mut self, object: K);
    /// a
    fn list_ends(&mut self);
}
