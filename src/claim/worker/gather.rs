//! Reads what a draft needs: secret, attributes class, source.

use super::ClaimRoom;
use crate::claim::clone_source;
use crate::claim::plan::{self, Attempt, Draft, Gathered, VolumeFacts};
use crate::claim::refusal::{Refusal, cut};
use crate::claim::snapshot_source;
use crate::claim::source::{DataSource, Found, SourceKind};
use crate::kube_api::error::{ApiError, ApiErrorKind};
use crate::kube_api::objects::Path;
use crate::model::class::AttributesClass;
use crate::model::request::ContentSource;
use crate::model::snapshot::{SNAPSHOT_GROUP, Snapshot, SnapshotContent};
use crate::model::{Claim, Class, Volume};
use serde::de::DeserializeOwned;

impl ClaimRoom {
    /// The complete request, or why there is none. Everything is checked before anything is written (W35).
    pub(super) async fn gather(&self, claim: &Claim, class: &Class, draft: Draft) -> Result<Attempt, Refusal> {
        let mut gathered =
            Gathered { accessibility: self.surroundings.accessibility(claim, class)?, ..Gathered::default() };
        if let Some(name) = &draft.attributes_class {
            gathered.attributes = Some(self.attributes_class(name).await?);
        }
        if let Some(secret) = &draft.refs.provisioner {
            let read = self.secrets.read(secret).await;
            let secrets =
                read.map_err(|error| Refusal::SecretUnreadable { secret: secret.clone(), why: error.to_string() })?;
            gathered.secrets = Some(secrets);
        }
        if let Some(source) = &draft.source {
            gathered.source = Some(self.source(claim, source, draft.required_bytes).await?);
        }
        plan::finish(draft, gathered)
    }

    /// The driver did not accept the secret of this attempt: it is read again next time.
    pub(super) fn forget_secret(&self, facts: &VolumeFacts) {
        if let Some(secret) = &facts.refs.provisioner {
            self.secrets.forget(secret);
        }
    }

    async fn attributes_class(&self, name: &str) -> Result<AttributesClass, Refusal> {
        let path = Path::group("storage.k8s.io", "v1", "volumeattributesclasses").name(name);
        self.objects
            .get(&path)
            .await
            .map_err(|error: ApiError| Refusal::AttributesClassUnreadable { class: cut(name), why: error.to_string() })
    }

    async fn source(&self, claim: &Claim, source: &DataSource, required_bytes: i64) -> Result<ContentSource, Refusal> {
        let driver = self.driver.get();
        let wanted = clone_source::Wanted { claim, source, required_bytes, driver: &driver.name };
        match source.kind {
            SourceKind::Claim => {
                let path = Path::core("persistentvolumeclaims").namespace(&source.namespace).name(&source.name);
                let found: Found<Claim> = self.find(&path).await;
                let volume = match &found {
                    Found::Object(of) => self.volume_of(of).await,
                    Found::Missing | Found::Unreadable(_) => Found::Missing,
                };
                Ok(clone_source::check(&wanted, &found, &volume)?)
            }
            SourceKind::Snapshot => {
                let snapshots = |resource| Path::group(SNAPSHOT_GROUP, "v1", resource);
                let path = snapshots("volumesnapshots").namespace(&source.namespace).name(&source.name);
                let found: Found<Snapshot> = self.find(&path).await;
                let content = match &found {
                    Found::Object(snapshot) => match snapshot_source::content_to_read(snapshot) {
                        Some(name) => {
                            self.find::<SnapshotContent>(&snapshots("volumesnapshotcontents").name(name)).await
                        }
                        None => Found::Missing,
                    },
                    Found::Missing | Found::Unreadable(_) => Found::Missing,
                };
                let prevent = self.options.prevent_volume_mode_conversion;
                Ok(snapshot_source::check(&wanted, &found, &content, prevent)?)
            }
        }
    }

    async fn volume_of(&self, source: &Claim) -> Found<Volume> {
        match clone_source::volume_to_read(source) {
            Some(name) => self.find(&Path::core("persistentvolumes").name(name)).await,
            None => Found::Missing,
        }
    }

    async fn find<T: DeserializeOwned>(&self, path: &Path) -> Found<T> {
        match self.objects.get(path).await {
            Ok(object) => Found::Object(object),
            Err(error) if error.kind == ApiErrorKind::NotFound => Found::Missing,
            Err(error) => Found::Unreadable(error.to_string()),
        }
    }
}
