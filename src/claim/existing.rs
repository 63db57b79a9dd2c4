//! What a volume object is that already has the name of the one to be saved (weak point W6).

use super::volume::same_volume;
use serde_json::Value;

/// The object that was found under the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The very volume for the very claim: an earlier save got through.
    Same,
    /// The same storage for another claim. It must not be deleted: it is somebody's data.
    SameStorage,
    /// Other storage.
    OtherStorage,
}

/// Compares the object in the API with the one that was to be saved.
pub fn compare(existing: &Value, wanted: &Value) -> Existing {
    if same_volume(existing, wanted) {
        return Existing::Same;
    }
    // With the claim taken from the existing object, only the storage is left to differ.
    let mut of_that_claim = wanted.clone();
    if let (Some(spec), Some(claim)) = (of_that_claim["spec"].as_object_mut(), existing.pointer("/spec/claimRef")) {
        spec.insert("claimRef".to_owned(), claim.clone());
    }
    if same_volume(existing, &of_that_claim) { Existing::SameStorage } else { Existing::OtherStorage }
}

/// Whether the object may have this volume behind it, whoever's it is: then the volume is not to be deleted because of
/// another creation. An object without a CSI source does not tell.
pub fn may_hold(existing: &Value, volume_id: &str) -> bool {
    existing
        .pointer("/spec/csi")
        .is_none_or(|csi| csi["volumeHandle"].as_str().is_none_or(|handle| handle == volume_id))
}

#[cfg(test)]
mod tests {
    use super::{Existing, compare, may_hold};
    use serde_json::{Value, json};

    fn volume(handle: &str, claim_uid: &str) -> Value {
        json!({"spec": {"csi": {"driver": "d", "volumeHandle": handle}, "claimRef": {"uid": claim_uid}}})
    }

    #[test]
    fn volume_of_another_claim_is_told_apart_from_another_volume() {
        assert_eq!(compare(&volume("h", "u"), &volume("h", "u")), Existing::Same);
        assert_eq!(compare(&volume("h", "v"), &volume("h", "u")), Existing::SameStorage);
        assert_eq!(compare(&volume("g", "u"), &volume("h", "u")), Existing::OtherStorage);
        assert_eq!(compare(&volume("g", "v"), &volume("h", "u")), Existing::OtherStorage);
        assert_eq!(compare(&json!({"spec": {"nfs": {}}}), &volume("h", "u")), Existing::OtherStorage);
    }

    #[test]
    fn volume_behind_an_object_is_held_by_it() {
        assert!(may_hold(&volume("h", "u"), "h") && !may_hold(&volume("g", "u"), "h"));
        assert!(may_hold(&json!({"spec": {"awsElasticBlockStore": {}}}), "h"));
    }
}
