//! The help as people read it.

use super::super::Parsed;
use super::super::raw::SPECS;
use super::parse;

fn help() -> String {
    match parse(&["--help"]) {
        Ok(Parsed::Help(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn help_reads_like_this() {
    insta::assert_snapshot!(help());
}

#[test]
fn help_names_every_flag() {
    let help = help();
    let missing: Vec<_> =
        SPECS.iter().map(|spec| spec.name).filter(|name| !help.contains(&format!("  --{name}"))).collect();
    assert_eq!(missing, [""; 0]);
}
