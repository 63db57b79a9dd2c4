//! What watch events of volume objects and attachments mean for the volume room.

use super::attachments;
use super::book::{Book, Noticed};
use crate::kube_api::queue::Queue;
use crate::kube_api::sweep::Sweep;
use crate::kube_api::watch::Observer;
use crate::model::driver::DriverCell;
use crate::model::meta::MetaExt;
use crate::model::{Attachment, Volume};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::time::Instant;

/// Feeds the book and the queue from the watch of volume objects.
pub struct VolumeObserver {
    book: Arc<Book>,
    queue: Queue<String>,
    driver: DriverCell,
    sweep: Sweep,
}

impl VolumeObserver {
    /// Writes into `book` and wakes keys of `queue`.
    pub fn new(book: Arc<Book>, queue: Queue<String>, driver: DriverCell) -> Self {
        Self { book, queue, driver, sweep: Sweep::default() }
    }

    fn act(&self, name: &str, noticed: Noticed) {
        match noticed {
            Noticed::Look => self.queue.add(name.to_owned()),
            Noticed::Left => self.queue.drop_key(&name.to_owned()),
            Noticed::Nothing => {}
        }
    }
}

impl Observer<Volume> for VolumeObserver {
    fn list_begins(&mut self) {
        self.sweep.begin();
    }

    fn seen(&mut self, volume: Volume, fresh: bool) {
        let name = volume.metadata.name().to_owned();
        let noticed = self.book.notice(volume, fresh, &self.driver.get(), Instant::now());
        if self.book.get(&name).is_some() {
            self.sweep.saw(&name);
        }
        self.act(&name, noticed);
    }

    fn gone(&mut self, volume: Volume) {
        let name = volume.metadata.name();
        let noticed = self.book.gone(name);
        self.act(name, noticed);
    }

    fn list_ends(&mut self) {
        for name in self.sweep.end(self.book.names()) {
            let noticed = self.book.gone(&name);
            self.act(&name, noticed);
        }
    }
}

/// Feeds the attachment index and wakes volumes that wait for their detach.
pub struct AttachmentObserver {
    book: Arc<Book>,
    queue: Queue<String>,
    driver: DriverCell,
    /// What a list under way has not shown yet.
    unseen: Option<BTreeSet<u64>>,
}

impl AttachmentObserver {
    /// Writes into `book` and wakes keys of `queue`.
    pub fn new(book: Arc<Book>, queue: Queue<String>, driver: DriverCell) -> Self {
        Self { book, queue, driver, unseen: None }
    }

    fn detached(&self, attachment: u64) {
        if let Some(volume) = self.book.detached(attachment) {
            self.queue.add(volume);
        }
    }
}

impl Observer<Attachment> for AttachmentObserver {
    fn list_begins(&mut self) {
        self.unseen = Some(self.book.attachment_keys());
    }

    fn seen(&mut self, attachment: Attachment, _fresh: bool) {
        // Only our driver attaches our volumes; the rest of the cluster's attachments costs nothing.
        let Some(volume) = &attachment.spec.source.persistent_volume_name else { return };
        if !self.driver.get().is_known_as(&attachment.spec.attacher) {
            return;
        }
        let name = attachment.metadata.name();
        if let Some(unseen) = &mut self.unseen {
            unseen.remove(&attachments::hash(name));
        }
        self.book.attached(name, volume, &attachment.spec.node_name);
    }

    fn gone(&mut self, attachment: Attachment) {
        self.detached(attachments::hash(attachment.metadata.name()));
    }

    fn list_ends(&mut self) {
        for attachment in self.unseen.take().unwrap_or_default() {
            self.detached(attachment);
        }
        self.book.attachments_listed();
    }
}
