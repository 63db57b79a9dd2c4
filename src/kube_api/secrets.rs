//! Secrets, read by name and kept for half a minute.
//!
//! A burst of claims of one class reads its secret once (weak points W24, W25). Only the named secret is read, never a
//! list (field fault X05). Entries are dropped when the driver does not accept them and when they are older than 30 s.

use super::error::{ApiError, ApiErrorKind};
use super::objects::{Objects, Path};
use crate::model::Secrets;
use crate::model::secret::SecretRef;
use k8s_openapi::ByteString;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a secret may be used without reading it again.
const FRESH: Duration = Duration::from_secs(30);

/// Reads secrets and keeps them for a short time.
pub struct SecretReader {
    objects: Objects,
    kept: Mutex<BTreeMap<SecretRef, (Instant, Secrets)>>,
}

/// The part of a Secret that is read. No `Debug`: the values must not be printable.
#[derive(Deserialize)]
struct SecretObject {
    #[serde(default)]
    data: Option<BTreeMap<String, ByteString>>,
}

impl SecretReader {
    /// Reads through `objects`.
    pub fn new(objects: Objects) -> Self {
        Self { objects, kept: Mutex::default() }
    }

    /// The decoded entries. Bytes that are no UTF-8 are an error of kind `Unreadable`: the interface carries strings.
    pub async fn read(&self, wanted: &SecretRef) -> Result<Secrets, ApiError> {
        let now = Instant::now();
        if let Some(secrets) = self.with(|kept| {
            kept.retain(|_, (read, _)| now.duration_since(*read) < FRESH);
            kept.get(wanted).map(|(_, secrets)| secrets.clone())
        }) {
            return Ok(secrets);
        }
        let path = Path::core("secrets").namespace(&wanted.namespace).name(&wanted.name);
        let object: SecretObject = self.objects.get(&path).await?;
        let mut entries = BTreeMap::new();
        for (key, value) in object.data.unwrap_or_default() {
            let text = String::from_utf8(value.0).map_err(|_| ApiError {
                kind: ApiErrorKind::Unreadable,
                message: format!(
                    "entry {key} of secret {} in namespace {} is not UTF-8 text: encode it",
                    wanted.name, wanted.namespace
                ),
            })?;
            entries.insert(key, text);
        }
        let secrets = Secrets::new(entries);
        self.with(|kept| kept.insert(wanted.clone(), (Instant::now(), secrets.clone())));
        Ok(secrets)
    }

    /// How many secrets are kept.
    pub fn entries(&self) -> usize {
        self.with(|kept| kept.len())
    }

    /// The driver refused these credentials: the next use reads again.
    pub fn forget(&self, refused: &SecretRef) {
        self.with(|kept| kept.remove(refused));
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<SecretRef, (Instant, Secrets)>) -> T) -> T {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
