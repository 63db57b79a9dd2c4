//! Class parameters: which go to the driver, which are ours (provisioning.md 4.5 and 4.7).

use super::refusal::{Refusal, cut};
use super::secrets::{RESERVED_PREFIX, Role, reserved_keys};
use std::collections::BTreeMap;

/// Key of the file system type.
pub const FSTYPE_KEY: &str = "csi.storage.k8s.io/fstype";
/// Keys that `--extra-create-metadata` adds: claim name, claim namespace, volume name.
pub const METADATA_KEYS: [&str; 3] =
    ["csi.storage.k8s.io/pvc/name", "csi.storage.k8s.io/pvc/namespace", "csi.storage.k8s.io/pv/name"];

/// The parameters that the driver gets: everything outside the reserved prefix. A reserved key that nobody knows is
/// refused, because a misspelt secret key would otherwise be dropped in silence.
pub fn strip(parameters: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Refusal> {
    let mut sent = BTreeMap::new();
    for (key, value) in parameters {
        if !key.starts_with(RESERVED_PREFIX) {
            sent.insert(key.clone(), value.clone());
        } else if key != FSTYPE_KEY && !reserved_keys().any(|known| known == key) {
            return Err(Refusal::ReservedParameter { key: cut(key) });
        }
    }
    Ok(sent)
}

/// File system type: the class's, else `default`; may be empty (the driver's choice then). Every spelling of `fstype`
/// counts, and more than one key is refused.
pub fn fs_type(parameters: &BTreeMap<String, String>, default: &str) -> Result<String, Refusal> {
    let mut hits = parameters.iter().filter(|(key, _)| *key == FSTYPE_KEY || is_plain_fstype(key));
    let first = hits.next();
    let mut keys: Vec<String> = hits.map(|(key, _)| cut(key)).collect();
    let Some((key, value)) = first else { return Ok(default.to_owned()) };
    if !keys.is_empty() {
        keys.insert(0, cut(key));
        return Err(Refusal::FsTypeTwice { keys });
    }
    Ok(if value.is_empty() { default } else { value }.to_owned())
}

fn is_plain_fstype(key: &str) -> bool {
    key.eq_ignore_ascii_case("fstype")
}

/// Deprecated keys that the class uses, each with the key to use instead; for a warning in the log.
pub fn deprecated_keys(parameters: &BTreeMap<String, String>) -> Vec<(String, &'static str)> {
    let secrets = Role::ALL.into_iter().filter_map(|role| Some((role.deprecated_keys()?, role.keys())));
    let pairs = secrets.flat_map(|(old, new)| [(old.0, new.0), (old.1, new.1)]);
    let used = pairs.filter(|(old, _)| parameters.contains_key(*old)).map(|(old, new)| (old.to_owned(), new));
    let plain = parameters.keys().filter(|key| is_plain_fstype(key)).map(|key| (key.clone(), FSTYPE_KEY));
    used.chain(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn known_reserved_keys_are_dropped_and_deprecated_ones_kept() {
        let all = map(&[
            ("csi.storage.k8s.io/fstype", "x"),
            ("csi.storage.k8s.io/secret-name", "x"),
            ("csi.storage.k8s.io/controller-modify-secret-namespace", "x"),
            ("csiNodeStageSecretName", "kept"),
        ]);
        assert_eq!(strip(&all), Ok(map(&[("csiNodeStageSecretName", "kept")])));
        let metadata = strip(&map(&[(METADATA_KEYS[0], "x")]));
        assert_eq!(metadata, Err(Refusal::ReservedParameter { key: METADATA_KEYS[0].to_owned() }));
    }

    #[test]
    fn every_spelling_of_fstype_counts_once() {
        assert_eq!(fs_type(&map(&[("FSType", "xfs")]), "ext4"), Ok("xfs".to_owned()));
        assert_eq!(fs_type(&map(&[("fstype", "")]), "ext4"), Ok("ext4".to_owned()));
        assert_eq!(
            fs_type(&map(&[("FSType", "xfs"), ("fstype", "")]), ""),
            Err(Refusal::FsTypeTwice { keys: vec!["FSType".to_owned(), "fstype".to_owned()] })
        );
    }

    #[test]
    fn deprecated_keys_name_their_successor() {
        let used = deprecated_keys(&map(&[("csiProvisionerSecretName", "s"), ("fsType", "xfs"), ("other", "x")]));
        assert_eq!(
            used,
            [
                ("csiProvisionerSecretName".to_owned(), "csi.storage.k8s.io/provisioner-secret-name"),
                ("fsType".to_owned(), FSTYPE_KEY)
            ]
        );
    }
}
