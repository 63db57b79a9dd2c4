//! Runs the table of the in-tree migration; see `cases/migration.rs`.

#[path = "cases/migration.rs"]
mod migration;

#[test]
fn every_migration_row_holds_and_fails_when_falsified() {
    migration::run();
}
