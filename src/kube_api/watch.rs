//! Provisional watch.
#![allow(missing_docs)]
use crate::random::Random;
use futures::StreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

pub trait Observer<K>: Send {
    fn list_begins(&mut self);
    fn seen(&mut self, object: K, fresh: bool);
    fn gone(&mut self, object: K);
    fn list_ends(&mut self);
}
pub struct WatchSettings;
impl WatchSettings {
    pub fn new(_: &'static str, _: Random) -> Self {
        Self
    }
}
pub struct Readiness(tokio_util::task::TaskTracker);
impl Readiness {
    pub fn new() -> Self {
        Self(tokio_util::task::TaskTracker::new())
    }
    pub fn handle(&self) -> tokio_util::task::task_tracker::TaskTrackerToken {
        self.0.token()
    }
    pub async fn all_ready(&self) {
        self.0.close();
        self.0.wait().await;
    }
}
pub async fn watch<K>(
    api: Api<K>,
    mut observer: impl Observer<K>,
    _: WatchSettings,
    ready: tokio_util::task::task_tracker::TaskTrackerToken,
    cancel: CancellationToken,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let mut stream = Box::pin(watcher::watcher(api, watcher::Config::default().streaming_lists()));
    let mut ready = Some(ready);
    loop {
        let event = tokio::select! { biased; () = cancel.cancelled() => return, e = stream.next() => e };
        match event {
            Some(Ok(Event::Init)) => observer.list_begins(),
            Some(Ok(Event::InitApply(o))) => observer.seen(o, false),
            Some(Ok(Event::InitDone)) => {
                observer.list_ends();
                ready.take();
            }
            Some(Ok(Event::Apply(o))) => observer.seen(o, true),
            Some(Ok(Event::Delete(o))) => observer.gone(o),
            Some(Err(e)) => {
                tracing::warn!("watch: {e}");
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
            None => return,
        }
    }
}

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
}
