//! Every row of the provisioning case table, run through the pure functions that the workers call.
//!
//! The table says what the reference implementation does; `recommended` and [`deviations`] say where this one differs
//! on purpose, always with the weak point or rule behind it. Each row is also run with every expected value falsified,
//! one at a time, and must fail then: a comparison that cannot fail would prove nothing.

#[path = "cases/asking.rs"]
mod asking;
#[path = "cases/chain.rs"]
mod chain;
#[path = "cases/compare.rs"]
mod compare;
#[path = "cases/deletion.rs"]
mod deletion;
#[path = "cases/deviations.rs"]
mod deviations;
#[path = "cases/library.rs"]
mod library;
#[path = "cases/memory.rs"]
mod memory;
#[path = "cases/migration.rs"]
mod migration;
#[path = "cases/protecting.rs"]
mod protecting;
#[path = "cases/sharing.rs"]
mod sharing;
#[path = "cases/simulated.rs"]
mod simulated;
#[path = "cases/single.rs"]
mod single;
#[path = "cases/stage.rs"]
mod stage;
#[path = "cases/table.rs"]
mod table;
#[path = "cases/words.rs"]
mod words;

use serde_json::Value;
use table::Row;

/// What a row gives here, in the words of the table.
fn observed(row: &Row) -> Value {
    let input = &row.input;
    match row.group.as_str() {
        "parameter-stripping" => single::parameter_stripping(input),
        "capacity-quantity-format" => single::quantity_format(input),
        "secret-reference" => single::secret_reference(input),
        "volume-name" => single::volume_name(input),
        "helper-lease-name" => single::lease_name(input),
        "helper-access-modes" => single::access_modes(input),
        "reference-grant" => single::reference_grant(input),
        "helper-slow-set" => single::slow_set(input),
        "default-fstype"
        | "provision"
        | "capacity-response"
        | "restore-from-snapshot"
        | "provision-topology"
        | "create-error-classification"
        | "clone-from-claim"
        | "provision-migration" => chain::provision(input),
        "should-provision" => chain::qualifier(input),
        "driver-name" => asking::driver_name(input),
        "helper-probe-until-ready" => asking::probe(input),
        "metrics-migrated-label" => asking::migrated_label(input),
        "helper-log-secret-stripping" => asking::log_form(input),
        "delete" | "delete-migration" => deletion::delete(input),
        "cloning-finalizer-removal" => protecting::clone_finalizer(input),
        "cloning-queue-filter" => protecting::clone_queue(input),
        "snapshot-orphan-sweep" => protecting::sweep(input),
        "snapshot-sweep-enabled" => protecting::sweep_enabled(input),
        "is-snapshot-restore-claim" => protecting::is_restore(input),
        "snapshot-key-of-claim" => protecting::snapshot_key(input),
        "claim-topology-memory" => memory::operations(input),
        "claim-ownership-delay" => sharing::ownership_delay(input),
        "owner-lookup" => sharing::owner(input),
        "managed-by-name" => sharing::managed_by(input),
        "library-controller" => simulated::controller(input),
        "library-delete-errors" => simulated::delete_errors(input),
        "library-should-provision" => library::should_provision(input),
        "library-should-delete" => library::should_delete(input),
        "library-volume-ownership" => library::ownership(input),
        "library-finalizer-remove" => library::finalizer_remove(input),
        "library-finalizer-add" => library::finalizer_add(input),
        "library-can-provision" => library::can_provision(input),
        "library-infeasible-retry" => library::infeasible_retry(input),
        "library-topology-options" => library::topology_options(input),
        "volume-save" => simulated::volume_save(input),
        group => panic!("{}: nobody runs group {group}", row.id),
    }
}

/// Runs one row; the texts say what is wrong with it.
fn complaints(row: &Row) -> Vec<String> {
    let observed = observed(row);
    if let Some(difference) = compare::difference(&row.expected, &observed) {
        return vec![format!("{} ({}): {difference}", row.id, row.name)];
    }
    compare::falsified(&row.expected)
        .into_iter()
        .filter(|(_, expected)| compare::difference(expected, &observed).is_none())
        .map(|(path, _)| format!("{}: passes although {path} is falsified", row.id))
        .collect()
}

#[test]
fn every_row_of_the_provisioning_table_holds() {
    let rows = table::rows();
    let run = rows.iter().filter(|row| deviations::without_counterpart(row).is_none());
    let wrong: Vec<String> = run.clone().flat_map(complaints).collect();
    let skipped = rows.len() - run.count();
    println!("provisioning: {} rows, {skipped} of them about what does not exist here", rows.len());
    assert!(wrong.is_empty(), "{} complaints:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((rows.len(), skipped), (620, 10));
}

#[test]
fn every_row_of_the_migration_table_holds() {
    migration::run();
}

#[test]
fn rows_that_differ_on_purpose_do_not_hold_as_recorded() {
    let rows = table::rows_as_recorded();
    for deviation in deviations::DEVIATIONS {
        let row = rows.iter().find(|row| row.id == deviation.row).expect("the row is in the table");
        let holds = compare::difference(&row.expected, &observed(row)).is_none();
        assert!(!holds, "{} holds as recorded, so it does not differ by {}", deviation.row, deviation.because);
    }
}

#[test]
fn rows_without_a_counterpart_are_in_the_table() {
    let rows = table::rows();
    for id in deviations::WITHOUT_COUNTERPART.iter().flat_map(|(rows, _)| *rows) {
        assert!(rows.iter().any(|row| row.id == *id), "{id} is in no table");
    }
}
