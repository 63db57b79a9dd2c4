//! What holds for any command line and any duration.

use super::super::duration::GoDuration;
use super::super::raw::SPECS;
use super::super::suggest::nearest;
use super::super::{Parsed, parse_with};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::sample::select;

/// Anything, but often near a real flag.
fn argument() -> impl Strategy<Value = String> {
    let name = || select(SPECS.iter().map(|spec| spec.name).collect::<Vec<_>>());
    prop_oneof![
        any::<String>(),
        "-{0,3}[a-z=_-]{0,8}",
        name().prop_map(|name| format!("--{name}")),
        (name(), any::<String>()).prop_map(|(name, value)| format!("--{name}={value}")),
        (name(), "[-+]?[0-9_.xe]{0,6}[a-zµ]{0,2}").prop_map(|(name, value)| format!("--{name}={value}")),
        Just("--".to_owned()),
    ]
}

proptest! {
    #[test]
    fn any_command_line_is_answered_and_refusals_are_one_line(args in proptest::collection::vec(argument(), 0..8)) {
        match parse_with(&args, &|name| Some(format!("{name}\n")), &|| Some("\u{0}".to_owned())) {
            Ok(Parsed::Run(_) | Parsed::Help(_) | Parsed::Version(_)) => {}
            Err(exit) => {
                assert!([1, 2, 255].contains(&exit.code));
                assert!(!exit.line.is_empty() && !exit.line.contains(char::is_control), "{:?}", exit.line);
            }
        }
    }

    #[test]
    fn shown_duration_reads_back_as_itself(nanos in any::<i64>()) {
        let duration = GoDuration::from_nanos(nanos);
        assert_eq!(GoDuration::parse(&duration.to_string()), Ok(duration));
    }

    #[test]
    fn parts_of_a_duration_add_up(hours in 0_i64..1_000, minutes in 0_i64..1_000, millis in 0_i64..100_000) {
        let expected = ((hours * 60 + minutes) * 60_000 + millis) * 1_000_000;
        let text = format!("{hours}h{minutes}m{millis}ms");
        assert_eq!(GoDuration::parse(&text).map(GoDuration::nanos), Ok(expected));
    }

    #[test]
    fn any_text_is_a_duration_or_an_error(text in "[-+]?[0-9.]{0,25}[a-zµμ]{0,3}[0-9.]{0,25}[a-z]{0,2}") {
        let _ = GoDuration::parse(&text).map(|duration| duration.to_string());
    }

    #[test]
    fn known_name_is_nearest_to_itself_with_one_letter_less(
        (name, at) in select(SPECS.iter().map(|spec| spec.name).filter(|name| name.len() > 4).collect::<Vec<_>>())
            .prop_flat_map(|name| (Just(name), 0..name.len())),
    ) {
        let typo: String = name.chars().enumerate().filter(|(index, _)| *index != at).map(|(_, c)| c).collect();
        assert!(nearest(&typo, SPECS.iter().map(|spec| spec.name)).is_some_and(|near| near == name || near == typo));
    }
}
