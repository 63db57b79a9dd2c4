//! Marks of migrated in-tree plug-ins and the finalizers that follow from them (cluster-volume-controllers.md A.11,
//! A.12).

use super::names::{self, IN_TREE_FINALIZER, IN_TREE_PREFIX, MIGRATED_TO, PROVISIONER_FINALIZER};
use super::objects::{annotate, annotation, finalizers, remove_annotation, set_finalizers, text};
use serde_json::Value;

const MIGRATED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];

/// The CSI driver that took over from an in-tree plug-in.
pub fn csi_name(in_tree: &str) -> Option<&'static str> {
    MIGRATED.iter().find(|(name, _)| *name == in_tree).map(|(_, csi)| *csi)
}

/// Sets or removes the mark on a claim; says whether that changed anything.
pub fn mark_claim(claim: &mut Value) -> bool {
    let provisioner = annotation(claim, names::STORAGE_PROVISIONER)
        .or_else(|| annotation(claim, names::BETA_STORAGE_PROVISIONER))
        .map(str::to_owned);
    mark(claim, provisioner.as_deref())
}

/// Sets or removes mark and finalizers of a volume; says whether that changed anything.
pub fn mark_volume(volume: &mut Value) -> bool {
    let provisioner = annotation(volume, names::PROVISIONED_BY).map(str::to_owned);
    let marked = mark(volume, provisioner.as_deref());
    let guarded = provisioner.is_some_and(|provisioner| guard(volume, &provisioner));
    marked || guarded
}

fn mark(object: &mut Value, provisioner: Option<&str>) -> bool {
    let Some(provisioner) = provisioner else { return false };
    match (csi_name(provisioner), annotation(object, MIGRATED_TO)) {
        (Some(csi), _) => annotate(object, MIGRATED_TO, csi),
        (None, Some(old)) if !old.is_empty() => remove_annotation(object, MIGRATED_TO),
        (None, _) => false,
    }
}

/// Which of the two deletion finalizers a volume keeps.
fn guard(volume: &mut Value, provisioner: &str) -> bool {
    let before: Vec<String> = finalizers(volume).into_iter().map(str::to_owned).collect();
    let mut after = before.clone();
    if csi_name(provisioner).is_some() {
        after.retain(|finalizer| finalizer != IN_TREE_FINALIZER);
    } else if provisioner.starts_with(IN_TREE_PREFIX) {
        let deletes = text(volume, "/spec/persistentVolumeReclaimPolicy") == "Delete";
        after.retain(|finalizer| finalizer != PROVISIONER_FINALIZER && (deletes || finalizer != IN_TREE_FINALIZER));
        if deletes && !after.iter().any(|finalizer| finalizer == IN_TREE_FINALIZER) {
            after.push(IN_TREE_FINALIZER.to_owned());
        }
    }
    let changed = after != before;
    if changed {
        set_finalizers(volume, &after);
    }
    changed
}
