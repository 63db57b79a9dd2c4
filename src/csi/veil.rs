//! Takes the secrets of a call out of what the driver said to it (field fault X01): some drivers put the failed command
//! line or the request that they sent on into their error text. Pure.
//!
//! Promises:
//! - each secret value is replaced by [`HIDDEN`], as it is, as its single lines, as a JSON or Go string would show it, and
//!   in base64, also inside a longer encoded text such as `user:password`;
//! - a value of less than four characters is hidden only where it stands alone, so that the text stays readable.
//!
//! It does not know other encodings, and keys are no secrets.

use super::redact::HIDDEN;
use crate::model::Secrets;

/// Shortest value that is hidden inside of words, in bytes.
const SHORT: usize = 4;
/// Shortest line of a longer value, and shortest piece of base64, that is looked for, in bytes.
const TELLING: usize = 8;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What must not be shown. No `Debug`: it is made of secrets.
#[derive(Clone, Default)]
pub(super) struct Veil(Vec<String>);

impl Veil {
    /// Hides the values of these secrets.
    pub(super) fn over(secrets: &Secrets) -> Self {
        let mut hidden: Vec<String> = secrets.reveal().values().flat_map(|value| forms(value)).collect();
        // The longest first: what is part of another value must not keep that from being found.
        hidden.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        hidden.dedup();
        Self(hidden)
    }

    /// The text without what must not be shown.
    pub(super) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| without(&text, secret))
    }
}

/// The ways in which a value may be written.
fn forms(value: &str) -> Vec<String> {
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= TELLING).map(str::to_owned);
    let mut plain: Vec<String> = [value.to_owned(), value.trim().to_owned()].into_iter().chain(lines).collect();
    plain.retain(|one| !one.is_empty());
    plain.sort();
    plain.dedup();
    let quoted = plain.iter().map(|one| serde_json::Value::from(one.as_str()).to_string());
    let quoted: Vec<String> = quoted.map(|one| one.trim_matches('"').to_owned()).collect();
    let encoded: Vec<String> = plain.iter().flat_map(|one| encoded(one.as_bytes())).collect();
    [plain, quoted, encoded].concat()
}

/// Base64 of a value that begins at any place of a longer text, in both alphabets.
fn encoded(value: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    for before in 0..3 {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(value.iter().copied()).collect();
        let text = base64(&padded);
        // Letters that also hold bits of the neighbours are left out.
        let inner = text.get((before * 8).div_ceil(6)..padded.len() * 8 / 6).unwrap_or_default();
        let whole = if before == 0 { text.as_str() } else { "" };
        for one in [whole, inner].into_iter().filter(|one| one.len() >= TELLING || *one == whole && one.len() >= SHORT)
        {
            all.extend([one.to_owned(), one.replace('+', "-").replace('/', "_")]);
        }
    }
    all
}

/// Base64 without padding.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        let letter = |at: usize| ALPHABET.get((bits >> (18 - 6 * at)) as usize & 63).copied().map_or('A', char::from);
        text.extend((0..=chunk.len()).map(letter));
    }
    text
}

fn without(text: &str, secret: &str) -> String {
    if secret.len() >= SHORT {
        return text.replace(secret, HIDDEN);
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(secret) {
        let alone = !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric);
        shown.push_str(before);
        shown.push_str(if alone { HIDDEN } else { secret });
        rest = after;
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn veil(values: &[&str]) -> Veil {
        let entries = values.iter().enumerate().map(|(at, value)| (at.to_string(), (*value).to_owned()));
        Veil::over(&Secrets::new(entries.collect::<BTreeMap<_, _>>()))
    }

    #[test]
    fn value_is_hidden_inside_of_words() {
        assert_eq!(veil(&["hunter2"]).hide("mount -o pass=hunter2,rw"), "mount -o pass=***stripped***,rw");
    }

    #[test]
    fn encoded_value_is_hidden() {
        // hunter2 and user:hunter2, as `base64` of the shell prints them.
        let hidden = veil(&["hunter2"]).hide("a aHVudGVyMg== b Basic dXNlcjpodW50ZXIy");
        assert!(!hidden.contains("aHVudGVyMg") && !hidden.contains("dW50ZXIy"), "{hidden}");
    }

    #[test]
    fn lines_of_a_value_are_hidden_one_by_one() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n-----END KEY-----\n";
        let hidden = veil(&[key]).hide("bad key: MIIEvQIBADAN BgkqhkiG9w0B");
        assert_eq!(hidden, "bad key: ***stripped*** ***stripped***");
        let hidden =
            veil(&[key]).hide(r#"{"key":"-----BEGIN KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n-----END KEY-----\n"}"#);
        assert_eq!(hidden, r#"{"key":"***stripped***"}"#);
    }

    #[test]
    fn quoted_value_is_hidden() {
        assert_eq!(veil(&[r#"a"b\c"#]).hide(r#"pass="a\"b\\c""#), r#"pass="***stripped***""#);
    }

    #[test]
    fn short_value_is_hidden_only_where_it_stands_alone() {
        assert_eq!(
            veil(&["u"]).hide("user u of unit=u: unknown"),
            "user ***stripped*** of unit=***stripped***: unknown"
        );
    }

    #[test]
    fn longer_value_is_not_kept_by_a_part_of_it() {
        assert_eq!(veil(&["swordfish", "sword"]).hide("swordfish, sword"), "***stripped***, ***stripped***");
    }

    #[test]
    fn nothing_is_hidden_without_secrets() {
        assert_eq!(veil(&[]).hide("no space left"), "no space left");
        assert_eq!(veil(&[""]).hide("no space left"), "no space left");
    }

    proptest! {
        #[test]
        fn no_value_shows_through_wherever_it_stands(secret in "[ -~]{4,40}", around in "[a-z]{0,9}") {
            let hidden = veil(&[&secret]).hide(&format!("{around}{secret}{around}"));
            prop_assert!(!hidden.replace(HIDDEN, "").contains(&secret));
        }

        #[test]
        fn no_encoded_value_shows_through(secret in "[ -~]{9,40}", user in "[a-z]{0,5}") {
            let text = base64(format!("{user}:{secret}").as_bytes());
            let hidden = veil(&[&secret]).hide(&text);
            prop_assert!(hidden.contains(HIDDEN), "{}", hidden);
            prop_assert!(hidden.replace(HIDDEN, "").len() <= (user.len() + 1).div_ceil(3) * 4 + 4, "{}", hidden);
        }
    }
}
