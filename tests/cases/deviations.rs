//! Rows where this implementation differs on purpose beyond the table's own recommendations.

use super::table::Row;

/// Rows about something that does not exist here, and why not.
pub const WITHOUT_COUNTERPART: &[(&[&str], &str)] = &[
    (
        &[
            "claim-topology-memory-002",
            "claim-topology-memory-006",
            "claim-topology-memory-007",
            "claim-topology-memory-011",
            "claim-topology-memory-012",
        ],
        "W12, W20: labels and keys of a node are not remembered per claim, only the terms of a request that was sent",
    ),
    (
        &["library-controller-003", "library-can-provision-003", "library-can-provision-006"],
        "3.5 point 3: whether the plug-in takes block volumes is the driver's own answer, there is no switch for it",
    ),
    (
        &["library-controller-012"],
        "3.8: there is one way of saving; a volume is never deleted because saving takes long",
    ),
    (
        &["library-controller-032"],
        "7.3: the finalizer is no option, it always stands on volumes that are to be deleted",
    ),
];

/// Why the row has no counterpart here, if it has none.
pub fn without_counterpart(row: &Row) -> Option<&'static str> {
    WITHOUT_COUNTERPART.iter().find(|(rows, _)| rows.contains(&row.id.as_str())).map(|(_, because)| *because)
}

/// A row, what is expected here (laid over the table), and why.
pub struct Deviation {
    pub row: &'static str,
    pub expected: &'static str,
    /// Weak point of the reference or rule of ours behind it.
    pub because: &'static str,
}

/// All of them.
pub const DEVIATIONS: &[Deviation] = &[
    Deviation {
        row: "provision-018",
        expected: r#"{"error": {"condition": "class-not-found"}}"#,
        because: "W42: a claim without class object is told at the first look; there is no second, later check",
    },
    Deviation {
        row: "provision-019",
        expected: r#"{"error": {"condition": "class-not-found"}}"#,
        because: "W42, as provision-018",
    },
    Deviation {
        row: "restore-from-snapshot-011",
        expected: r#"{"error": {"condition": "claim-not-annotated-for-driver", "reason": null, "ignored": true}}"#,
        because: "3.5 point 5: a claim whose class is another provisioner's never gets as far as the source checks",
    },
    Deviation {
        row: "provision-049",
        expected: r#"{"calls": {"DeleteVolume": 1}}"#,
        because: "W15: one try per turn, repeated with pauses until the driver confirms, instead of five back to back",
    },
    Deviation {
        row: "helper-log-secret-stripping-001",
        expected: r#"{"log_json": {"volume_capabilities": [
            {"access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"},
             "mount": {"fs_type": "ext4", "mount_flags": "***stripped***"}}]}}"#,
        because: "csi-rules.md 1.5: mount flags count as sensitive",
    },
    Deviation {
        row: "library-controller-013",
        expected: r#"{"metrics": [{"name": "controller_persistentvolume_delete_total", "labels": {"class": ""}, "value": 1}]}"#,
        because: "W32: the storage is deleted once and counted when the driver confirms it; only the object is left for later tries",
    },
    Deviation {
        row: "library-controller-038",
        expected: r#"{"metrics": [{"name": "controller_persistentvolume_delete_total", "labels": {"class": ""}, "value": 1}]}"#,
        because: "W32: the storage is deleted once and counted when the driver confirms it; only the object is left for later tries",
    },
    Deviation {
        row: "library-controller-021",
        expected: r#"{"events": [{"object": "claim-1", "type": "Warning", "reason": "ProvisioningFailed"}]}"#,
        because: "W44: the second try is not announced again",
    },
    Deviation {
        row: "library-controller-022",
        expected: r#"{"events": [{"object": "claim-1", "type": "Warning", "reason": "ProvisioningFailed"}]}"#,
        because: "W44: the second try is not announced again",
    },
    Deviation {
        row: "library-controller-023",
        expected: r#"{"events": [{"object": "claim-1", "type": "Warning", "reason": "ProvisioningFailed"}]}"#,
        because: "W44: the second try is not announced again",
    },
    Deviation {
        row: "library-controller-024",
        expected: r#"{"events": []}"#,
        because: "W44: the second try is not announced again",
    },
    Deviation {
        row: "library-controller-025",
        expected: r#"{"metrics": [{"name": "controller_persistentvolumeclaim_provision_failed_total", "labels": {"class": "class-1", "source": ""}, "value": 1}]}"#,
        because: "W42: an attempt is a success once its object is saved, a failure before",
    },
    Deviation {
        row: "library-controller-026",
        expected: r#"{"metrics": [{"name": "controller_persistentvolumeclaim_provision_failed_total", "labels": {"class": "class-1", "source": ""}, "value": 2}, {"name": "controller_persistentvolumeclaim_provision_total", "labels": {"class": "class-1", "source": ""}, "value": 1}],
            "events": [{"object": "claim-1", "type": "Normal", "reason": "Provisioning"},
                       {"object": "claim-1", "type": "Warning", "reason": "ProvisioningFailed"},
                       {"object": "claim-1", "type": "Normal", "reason": "ProvisioningSucceeded"}]}"#,
        because: "W42: saving that fails is told and counted, as in library-controller-025",
    },
    Deviation {
        row: "library-controller-042",
        expected: r#"{"calls": {"provision_step": 1}, "claims_in_progress_after": [],
            "metrics": [{"name": "controller_persistentvolumeclaim_provision_total", "labels": {"class": "class-1", "source": ""}, "value": 1}],
            "volumes_after": [{"metadata": {"name": "pvc-uid-1-1"}, "spec": {"claimRef": {"uid": "uid-1-1"}}}],
            "events": [{"object": "claim-1", "type": "Normal", "reason": "ProvisioningSucceeded"}]}"#,
        because: "W3: the open request is repeated until it is answered; its object is saved and goes the way of a released volume",
    },
    Deviation {
        row: "library-controller-043",
        expected: r#"{"events": [{"object": "claim-1", "type": "Warning", "reason": "ProvisioningFailed"}]}"#,
        because: "W3, W44: nobody asks any more whether an open request should have been made; it is repeated, not announced again",
    },
    Deviation {
        row: "library-controller-044",
        expected: r#"{"calls": {"provision_step": 1}, "claims_in_progress_after": [],
            "metrics": [{"name": "controller_persistentvolumeclaim_provision_total", "labels": {"class": "class-1", "source": ""}, "value": 1}],
            "volumes_after": [{"metadata": {"name": "pvc-uid-1-1"}, "spec": {"claimRef": {"uid": "uid-1-1"}}}], "events": [{"object": "claim-1", "type": "Normal", "reason": "ProvisioningSucceeded"}]}"#,
        because: "W3: as library-controller-042; the claim binds the volume, wherever its next pod is put",
    },
    Deviation {
        row: "volume-save-005",
        expected: r#"{"worker_result": "error"}"#,
        because: "W4: saving is tried again by the claim's own queue; there is no second one",
    },
    Deviation {
        row: "volume-save-006",
        expected: r#"{"retained_in_memory": false, "volumes_in_backend": 0}"#,
        because: "W7: the volume is deleted, so that nothing is left to remember",
    },
];
