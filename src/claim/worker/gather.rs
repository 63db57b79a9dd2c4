//! Reads what a draft needs: attributes class, secret, source ([`super::sources`]).

use super::{ClaimRoom, Hindrance};
use crate::claim::plan::{self, Attempt, Draft, Gathered, VolumeFacts};
use crate::claim::refusal::{Refusal, cut};
use crate::kube_api::error::ApiError;
use crate::kube_api::objects::Path;
use crate::model::class::AttributesClass;
use crate::model::{Claim, Class};

impl ClaimRoom {
    /// The complete request, or why there is none. Writes nothing.
    pub(super) async fn gather(&self, claim: &Claim, class: &Class, draft: Draft) -> Result<Attempt, Hindrance> {
        let mut gathered =
            Gathered { accessibility: self.surroundings.accessibility(claim, class)?, ..Gathered::default() };
        if let Some(name) = &draft.attributes_class {
            gathered.attributes = Some(self.attributes_class(name).await?);
        }
        if let Some(secret) = &draft.refs.provisioner {
            let read = self.secrets.read(secret).await;
            let unreadable = |error: ApiError| {
                let refusal = Refusal::SecretUnreadable { secret: secret.clone(), why: error.to_string() };
                Hindrance::by(&error, refusal)
            };
            gathered.secrets = Some(read.map_err(unreadable)?);
        }
        if let Some(source) = &draft.source {
            gathered.source = Some(self.checked_source(claim, source, draft.required_bytes).await?);
        }
        Ok(plan::finish(draft, gathered)?)
    }

    /// The request, once its source is protected: everything was checked before anything is written (W35).
    pub(super) async fn protected(&self, gathered: Result<Attempt, Hindrance>) -> Result<Attempt, Hindrance> {
        let attempt = gathered?;
        if let Some(source) = &attempt.facts.source {
            self.protect(source, &attempt.facts.claim.uid).await?;
        }
        Ok(attempt)
    }

    /// The driver did not accept the secret of this attempt: it is read again next time.
    pub(super) fn forget_secret(&self, facts: &VolumeFacts) {
        if let Some(secret) = &facts.refs.provisioner {
            self.secrets.forget(secret);
        }
    }

    async fn attributes_class(&self, name: &str) -> Result<AttributesClass, Hindrance> {
        let path = Path::group("storage.k8s.io", "v1", "volumeattributesclasses").name(name);
        self.objects.get(&path).await.map_err(|error: ApiError| {
            let refusal = Refusal::AttributesClassUnreadable { class: cut(name), why: error.to_string() };
            Hindrance::by(&error, refusal)
        })
    }
}
