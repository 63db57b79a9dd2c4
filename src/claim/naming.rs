//! The volume's name: what the driver recognises a repeated request by, and the name of the volume object.
//!
//! Promises: the same claim and flags give the same name, whoever computes it (provisioning.md 4.4); the check for an
//! existing volume object uses this very name (weak point W8 of the reference).

use crate::model::meta::MetaExt;
use crate::model::{Claim, Options};

/// Why there is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// `--volume-name-prefix` is empty.
    #[error(
        "--volume-name-prefix of the provisioner is empty; set it (the default is pvc) and restart the provisioner"
    )]
    PrefixEmpty,
    /// The claim has no UID, so it did not come from an API server.
    #[error("the claim has no metadata.uid, from which the volume name is made; create it through the API server")]
    UidMissing,
    /// `--volume-name-uuid-length` is neither -1 nor 0 to 32.
    #[error("--volume-name-uuid-length of the provisioner is {0}; use -1 for the whole UID or 0 to 32 characters")]
    LengthOutOfRange(i32),
    /// The API server would refuse a volume object of this name, after the storage was made.
    #[error(
        "the volume would be named {0:?}, which is no valid object name; \
         change --volume-name-prefix or --volume-name-uuid-length of the provisioner"
    )]
    Unusable(String),
}

impl NameFault {
    /// Identifier of the condition.
    pub fn condition(&self) -> &'static str {
        match self {
            Self::PrefixEmpty => "volume-name-prefix-empty",
            Self::UidMissing => "claim-uid-missing",
            Self::LengthOutOfRange(_) => "flag-value-out-of-range",
            Self::Unusable(_) => "volume-name-unusable",
        }
    }
}

/// `<prefix>-<UID>` for length -1, else `<prefix>-<first characters of the UID without dashes>`.
pub fn volume_name(prefix: &str, length: i32, uid: &str) -> Result<String, NameFault> {
    if prefix.is_empty() {
        return Err(NameFault::PrefixEmpty);
    }
    if uid.is_empty() {
        return Err(NameFault::UidMissing);
    }
    match length {
        -1 => Ok(format!("{prefix}-{uid}")),
        0..=32 => {
            let kept = usize::try_from(length).unwrap_or_default();
            let short: String = uid.chars().filter(|letter| *letter != '-').take(kept).collect();
            Ok(format!("{prefix}-{short}"))
        }
        _ => Err(NameFault::LengthOutOfRange(length)),
    }
}

/// Name of the claim's volume under these options.
pub fn name_for(claim: &Claim, options: &Options) -> Result<String, NameFault> {
    volume_name(&options.volume_name_prefix, options.volume_name_uuid_length, claim.metadata.uid())
}

/// [`name_for`], refused if a volume object of that name could not be saved.
pub fn storable_name_for(claim: &Claim, options: &Options) -> Result<String, NameFault> {
    let name = name_for(claim, options)?;
    if is_dns_subdomain(&name) { Ok(name) } else { Err(NameFault::Unusable(super::refusal::cut(&name))) }
}

/// Lower-case letters, digits and dashes, alphanumeric at both ends, at most 63 characters (RFC 1123 label).
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_label_of_any_length(text)
}

/// Labels joined by dots, at most 253 characters in all (RFC 1123 subdomain, as the API server checks it).
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label_of_any_length)
}

fn is_label_of_any_length(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().all(|byte| inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(inner)
        && text.bytes().next_back().is_some_and(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_cannot_be_stored_is_refused_before_anything_is_made() {
        let mut claim = Claim::default();
        claim.metadata.uid = Some("1b4e28ba".to_owned());
        let options = |prefix: &str, length| Options {
            volume_name_prefix: prefix.to_owned(),
            volume_name_uuid_length: length,
            ..Options::default()
        };
        assert_eq!(storable_name_for(&claim, &options("pvc", 0)), Err(NameFault::Unusable("pvc-".to_owned())));
        assert_eq!(storable_name_for(&claim, &options("PVC", 4)), Err(NameFault::Unusable("PVC-1b4e".to_owned())));
        assert_eq!(storable_name_for(&claim, &options("a.b", 4)), Ok("a.b-1b4e".to_owned()));
    }

    #[test]
    fn labels_and_subdomains_follow_the_api_server() {
        assert!(is_dns_label("a") && is_dns_label("0-a") && !is_dns_label("a.b") && !is_dns_label(""));
        assert!(is_dns_label(&"a".repeat(63)) && !is_dns_label(&"a".repeat(64)));
        assert!(is_dns_subdomain("a.b-c") && !is_dns_subdomain("a..b") && !is_dns_subdomain("a.-b"));
        assert!(is_dns_subdomain(&"a".repeat(253)) && !is_dns_subdomain(&"a".repeat(254)));
        assert!(!is_dns_subdomain("A") && !is_dns_subdomain("ä"));
    }
}
