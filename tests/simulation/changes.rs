//! What changes while a volume is made, and what is written to objects of others.

use crate::support::*;
use csi_provisioner::sandbox::apiserver::faults::{Effect, Match};
use csi_provisioner::sandbox::driver::DriverOptions;
use csi_provisioner::sandbox::driver::script::Fault;
use csi_provisioner::sandbox::simulate::World;
use csi_provisioner::sandbox::simulate::check::Finding;
use csi_provisioner::sandbox::simulate::objects::{CLAIMS, NAMESPACE, SELECTED_NODE, VOLUMES, claim, text};
use csi_provisioner::sandbox::simulate::seat::Running;
use csi_provisioner::sandbox::simulate::socket::Twist;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::time::sleep;

const CLONE_FINALIZER: &str = "provisioner.storage.kubernetes.io/cloning-protection";
const SNAPSHOT_FINALIZER: &str = "provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection";

/// W2 and W3: nothing that makes a new request impossible ends one that may be running.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn unresolved_creation_is_finished_whatever_changes() {
    let changes: [&dyn Fn(&World); 3] =
        [
            &|world| world.remove("storageclasses", "late"),
            &|world| {
                drop(world.edit(CLAIMS, NAMESPACE, "data", |claim| {
                    claim["metadata"]["annotations"].as_object_mut().expect("some").remove(SELECTED_NODE);
                }));
            },
            &|world| {
                drop(world.edit(CLAIMS, NAMESPACE, "data", |claim| {
                    claim["metadata"]["annotations"][SELECTED_NODE] = json!("n2")
                }))
            },
        ];
    for change in changes {
        let world = world(&[]);
        add_class(&world, "late", &json!({"volumeBindingMode": "WaitForFirstConsumer"}));
        script(&world, "CreateVolume", 1, Fault::Slow(secs(60)));
        script(&world, "CreateVolume", 2, fails(UNAVAILABLE));
        let _sidecar = world.start();
        world.add_claim("data", "late");
        sleep(secs(1)).await;
        world.edit(CLAIMS, NAMESPACE, "data", |claim| claim["metadata"]["annotations"][SELECTED_NODE] = json!("n1"));
        comes(&world, secs(60), "the second call", |world| world.calls.of("CreateVolume").len() > 1).await;
        change(&world);
        sleep(secs(5)).await;
        world.remove(CLAIMS, "data");
        comes(&world, LONG, "the end", |world| !succeeded(world, "DeleteVolume").is_empty() && empty(world)).await;
        assert!(all_equal(&world.calls.of("CreateVolume")), "the request changed");
        comes_to_rest(&world).await;
    }
}

/// W6: shortened names collide. Nobody gets the volume of another claim, and who has to wait is told why.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claims_with_one_volume_name_never_share_a_volume() {
    let world = world(&["--volume-name-uuid-length=1"]);
    script(&world, "CreateVolume", 30, Fault::Slow(secs(2)));
    let _sidecar = world.start();
    (0..30).for_each(|number| drop(world.add_claim(&format!("data-{number}"), CLASS)));
    sleep(secs(60)).await;
    let names = (0..30).map(|number| format!("data-{number}"));
    let (bound, waiting): (Vec<String>, Vec<String>) = names.partition(|name| world.is_bound(name));
    let handles: BTreeSet<String> =
        world.all(VOLUMES).iter().map(|volume| text(volume, "/spec/csi/volumeHandle").to_owned()).collect();
    assert!(bound.len() <= 16 && handles.len() == bound.len(), "{bound:?} {handles:?}");
    assert_eq!(world.calls.overlaps(), Vec::<String>::new(), "two claims asked for one volume at once");
    assert!(!world.findings().iter().any(|finding| matches!(finding, Finding::Doubled(_))), "{:?}", world.findings());
    for name in waiting {
        let told = world.events_about(&name);
        assert!(told.iter().any(|(_, text, _)| text.contains("belongs to another claim")), "{name}: {told:?}");
        assert!(!told.iter().any(|(reason, ..)| reason == "ProvisioningSucceeded"), "{name}: {told:?}");
    }
}

/// W6: with short names a driver may answer with another claim's volume; unusable as it is for this claim, it is not ours to
/// delete.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_behind_another_claims_object_is_never_deleted_as_unusable() {
    let world = world(&["--volume-name-uuid-length=1"]);
    let _sidecar = world.start();
    bound(&world, "first").await;
    let first = text(&world.volume_of("first").expect("bound"), "/spec/csi/volumeHandle").to_owned();
    let told = |world: &World, name: &str| {
        world.events_about(name).iter().any(|(_, text, _)| text.contains("belongs to another claim"))
    };
    for number in 0..48 {
        world.socket.twist_next(Twist::Size(1 << 20));
        world.add_claim(&format!("data-{number}"), CLASS);
        sleep(secs(2)).await;
    }
    assert!((0..48).any(|number| told(&world, &format!("data-{number}"))), "no claim had the name of the first");
    assert!(!world.calls.of("DeleteVolume").iter().any(|call| call.subject == first), "the first claim's data is gone");
    assert!(!world.calls.of("DeleteVolume").is_empty(), "unusable volumes of nobody are deleted");
}

/// W7: the API server will never take the volume object.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_whose_object_is_refused_for_good_is_told_and_deleted() {
    let world = world(&[]);
    let refused = Effect::Refuse { code: 422, retry_after_secs: None };
    world.server.faults().add_times(Match::any().verb("create").resource(VOLUMES), refused, 1);
    let _sidecar = world.start();
    world.add_claim("data", CLASS);
    comes(&world, secs(30), "the bound claim", |world| world.is_bound("data")).await;
    let told = world.events_about("data");
    assert!(
        told.iter().any(|(reason, text, _)| reason == "ProvisioningFailed" && text.contains("refused")),
        "{told:?}"
    );
    assert_eq!((succeeded(&world, "DeleteVolume").len(), world.volumes_in_backend()), (1, 1));
    comes_to_rest(&world).await;
}

/// W14: the volume cannot be told in the terms of the plug-in that the driver replaced.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn volume_that_has_no_in_tree_form_is_told_and_deleted_with_its_own_id() {
    let driver = DriverOptions { name: "pd.csi.storage.gke.io".to_owned(), ..DriverOptions::default() };
    let world = world_with(driver, &[]);
    // The handles of this driver have six parts; those of the mock have one.
    add_class(&world, "old", &json!({"provisioner": "kubernetes.io/gce-pd"}));
    script(&world, "DeleteVolume", 1, fails(UNAVAILABLE));
    let _sidecar = world.start();
    world.add_claim("data", "old");
    comes(&world, secs(30), "the clean-up", |world| !succeeded(world, "DeleteVolume").is_empty()).await;
    let told = world.events_about("data");
    assert!(told.iter().any(|(_, text, _)| text.contains("is not of the form")), "{told:?}");
    let deleted: BTreeSet<String> = world.calls.of("DeleteVolume").into_iter().map(|call| call.subject).collect();
    assert!(!deleted.contains("") && deleted.len() <= succeeded(&world, "CreateVolume").len(), "{deleted:?}");
    world.remove(CLAIMS, "data");
    comes(&world, LONG, "the end", empty).await;
    comes_to_rest(&world).await;
}

/// W37 and R11: others write to the source at the same time. Nothing of theirs is lost, and the user hears of no failure.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn source_keeps_what_others_write_while_it_is_protected() {
    let world = world_with(capable(), &[]);
    let _sidecar = world.start();
    bound(&world, "source").await;
    let conflict = Effect::Refuse { code: 409, retry_after_secs: None };
    let writing = Match::any().verb("update").resource(CLAIMS);
    world.server.faults().add_times(writing.clone(), conflict, 2);
    // Between our read and our write there is time for others.
    world.server.faults().add_times(writing.clone(), Effect::Delay(std::time::Duration::from_millis(3)), 3);
    script(&world, "CreateVolume", 8, Fault::Slow(secs(5)));
    for number in 0..8 {
        add_claim(&world, &format!("copy-{number}"), CLASS, &clone_of("source"));
        world.edit(CLAIMS, NAMESPACE, "source", |claim| {
            claim["metadata"]["labels"][format!("label-{number}")] = json!("x");
            claim["metadata"]["finalizers"]
                .as_array_mut()
                .expect("some")
                .push(json!(format!("foreign.example/f-{number}")));
        });
        sleep(std::time::Duration::from_millis(1)).await;
    }
    comes(&world, secs(60), "the copies", World::all_bound).await;
    let source = world.claim("source").expect("there");
    assert_eq!(source["metadata"]["labels"].as_object().map(serde_json::Map::len), Some(8));
    let finalizers: Vec<&str> =
        source["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(finalizers.iter().filter(|one| one.starts_with("foreign.example/")).count(), 8, "{finalizers:?}");
    assert!(finalizers.contains(&CLONE_FINALIZER), "{finalizers:?}");
    assert!(world.all("events").iter().all(|event| event["type"] != "Warning"), "a conflict was told");
    world.server.faults().add_times(writing, Effect::Delay(secs(2)), 1);
    world.remove(CLAIMS, "source");
    sleep(secs(1)).await;
    world.edit(CLAIMS, NAMESPACE, "source", |claim| claim["metadata"]["labels"]["late"] = json!("x"));
    comes(&world, secs(30), "the end of our finalizer", |world| {
        !world.claim("source").expect("held by others")["metadata"]["finalizers"].to_string().contains(CLONE_FINALIZER)
    })
    .await;
    assert_eq!(world.claim("source").expect("held by others")["metadata"]["labels"]["late"], "x");
}

/// W35 and B15: a class that can never work is found out before anything is written to the source.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn unusable_class_is_refused_before_anything_is_written_to_a_source() {
    for key in ["foo", "provisioner-secret-name"] {
        let world = world_with(capable(), &[]);
        let _sidecar = world.start();
        bound(&world, "source").await;
        let key = format!("csi.storage.k8s.io/{key}");
        add_class(&world, "wrong", &json!({"parameters": {&key: "x"}}));
        add_claim(&world, "copy", "wrong", &clone_of("source"));
        sleep(secs(60)).await;
        assert_eq!((world.requests_of("update", CLAIMS, None), world.calls.of("CreateVolume").len()), (0, 1));
        let told = world.events_about("copy");
        assert!(told.iter().any(|(reason, text, _)| reason == "ProvisioningFailed" && text.contains(&key)), "{told:?}");
    }
}

/// W13: a clone in another namespace protects its source too.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn clone_in_another_namespace_keeps_its_source() {
    for killed in [false, true] {
        let (world, sidecar) = copying_from_another_namespace().await;
        if killed {
            // The next process knows of the copy only what the claim says.
            sidecar.kill().await;
            let _next = world.start();
            sleep(secs(60)).await;
            assert!(world.claim("source").is_some(), "the source went before its copy was finished or hopeless");
            continue;
        }
        comes(&world, secs(20), "the end of the source", |world| world.claim("source").is_none()).await;
        assert!(world.server.get(CLAIMS, "other", "copy").is_ok_and(|copy| text(&copy, "/status/phase") == "Bound"));
        let metrics = sidecar.metrics();
        assert!(metrics.contains("source=\"PersistentVolumeClaim\""), "{metrics}");
    }
}

/// A source that is being deleted while a claim of another namespace is made from it.
async fn copying_from_another_namespace() -> (World, Running) {
    let world = world_with(capable(), &["--feature-gates=CrossNamespaceVolumeDataSource=true"]);
    world.add("namespaces", json!({"metadata": {"name": "other"}}));
    let grant = json!({
        "from": [{"group": "", "kind": "PersistentVolumeClaim", "namespace": "other"}],
        "to": [{"group": "", "kind": "PersistentVolumeClaim"}],
    });
    world.add("referencegrants", json!({"metadata": {"name": "grant", "namespace": NAMESPACE}, "spec": grant}));
    let sidecar = world.start();
    bound(&world, "source").await;
    script(&world, "CreateVolume", 1, Fault::Slow(secs(8)));
    let mut copy = claim("copy", CLASS);
    copy["metadata"]["namespace"] = json!("other");
    copy["spec"]["dataSourceRef"] = json!({"kind": "PersistentVolumeClaim", "name": "source", "namespace": NAMESPACE});
    world.add(CLAIMS, copy);
    sleep(secs(1)).await;
    world.remove(CLAIMS, "source");
    sleep(secs(3)).await;
    assert!(world.claim("source").is_some(), "the source went while it was copied");
    (world, sidecar)
}

/// W10 and W40: the sweep frees what was left behind by this driver and nothing else, and one refusal does not end it.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn sweep_frees_only_unused_snapshots_of_this_driver() {
    let world = world_with(capable(), &["--snapshot-orphan-sweep-interval=20s"]);
    let first = world.start();
    bound(&world, "source").await;
    add_snapshot(&world);
    first.kill().await;
    let protected = |name: &str, content: &str| {
        let spec = json!({"source": {"volumeSnapshotContentName": content}});
        let metadata = json!({"name": name, "namespace": NAMESPACE, "finalizers": [SNAPSHOT_FINALIZER]});
        let status = json!({"boundVolumeSnapshotContentName": content, "readyToUse": true, "restoreSize": "1Gi"});
        add_with_status(&world, "volumesnapshots", json!({"metadata": metadata, "spec": spec}), status);
    };
    protected("left-behind", "content");
    protected("foreign", "foreign-content");
    let content = json!({
        "metadata": {"name": "foreign-content"},
        "spec": {
            "driver": "other.example", "deletionPolicy": "Delete", "source": {"snapshotHandle": "x"},
            "volumeSnapshotRef": {"namespace": NAMESPACE, "name": "foreign"},
        },
    });
    world.add("volumesnapshotcontents", content);
    let refused = Effect::Refuse { code: 403, retry_after_secs: None };
    world.server.faults().add_times(Match::any().verb("list").resource("volumesnapshots"), refused, 2);
    let _second = world.start();
    // A restore that runs on although its claim is gone.
    script(&world, "CreateVolume", 1, Fault::Slow(secs(120)));
    script(&world, "CreateVolume", 100, fails(UNAVAILABLE));
    add_claim(&world, "copy", CLASS, &restore());
    sleep(secs(10)).await;
    world.remove(CLAIMS, "copy");
    sleep(secs(60)).await;
    let is_protected = |name: &str| {
        let snapshot = world.server.get("volumesnapshots", NAMESPACE, name).expect("there");
        snapshot["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == SNAPSHOT_FINALIZER))
    };
    assert_eq!(["left-behind", "foreign", "snap"].map(is_protected), [false, true, true]);
}

/// B10 a: the attributes class comes later; its parameters are passed on and its name is on the volume object.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn claim_gets_its_attributes_when_their_class_appears() {
    let world = world_with(capable(), &[]);
    let _sidecar = world.start();
    add_claim(&world, "data", CLASS, &json!({"volumeAttributesClassName": "gold"}));
    sleep(secs(10)).await;
    assert_eq!(world.calls.of("CreateVolume").len(), 0);
    let told = world.events_about("data");
    assert!(told.iter().any(|(_, text, _)| text.contains("gold")), "{told:?}");
    let class = json!({"metadata": {"name": "gold"}, "driverName": world.driver.name(), "parameters": {"iops": "9"}});
    world.add("volumeattributesclasses", class);
    comes(&world, secs(60), "the bound claim", |world| world.is_bound("data")).await;
    assert_eq!(text(&world.volume_of("data").expect("bound"), "/spec/volumeAttributesClassName"), "gold");
}
