//! Shell-style expansion of `$word` and `${word}` (provisioning.md 4.13).
//!
//! Promises, all of which class authors may have come to rely on:
//! - a word is letters, digits (not first) and underscores; inside braces everything up to the closing one;
//! - one of `* # $ @ ! ? -` or a digit right after the dollar (or alone in braces) is a token of that one character;
//! - `${}` vanishes, of an unclosed `${` only these two characters vanish;
//! - any other dollar stays, and what is put in is not expanded again.

/// Replaces each token by what `value` returns for it.
pub fn expand<'a>(template: &'a str, mut value: impl FnMut(&'a str) -> &'a str) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = match read_token(after) {
            Token::Named(name, rest) => {
                out.push_str(value(name));
                rest
            }
            Token::Nothing(rest) => rest,
            Token::PlainDollar => {
                out.push('$');
                after
            }
        };
    }
    out.push_str(rest);
    out
}

/// What follows a dollar, and what is left after it.
enum Token<'a> {
    Named(&'a str, &'a str),
    Nothing(&'a str),
    PlainDollar,
}

fn read_token(after: &str) -> Token<'_> {
    if let Some(inside) = after.strip_prefix('{') {
        return match inside.split_once('}') {
            Some(("", rest)) => Token::Nothing(rest),
            Some((name, rest)) => Token::Named(name, rest),
            None => Token::Nothing(inside),
        };
    }
    let special = |letter: char| matches!(letter, '*' | '#' | '$' | '@' | '!' | '?' | '-' | '0'..='9');
    let end = if after.starts_with(special) {
        1
    } else {
        after.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(after.len())
    };
    match after.split_at(end) {
        ("", _) => Token::PlainDollar,
        (name, rest) => Token::Named(name, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dollars_follow_the_shell_rules() {
        for (template, result) in [
            ("plain", "plain"),
            ("a${x}b", "a<x>b"),
            ("$x.y", "<x>.y"),
            ("${x.y}", "<x.y>"),
            ("a$-b", "a<->b"),
            ("$$", "<$>"),
            ("$12", "<1>2"),
            ("${}", ""),
            ("a${b", "ab"),
            ("end$", "end$"),
            ("$.a $ä", "$.a $ä"),
            ("${*}${1}", "<*><1>"),
            ("$_a1-", "<_a1>-"),
        ] {
            let mut names = Vec::new();
            // Values come back as the names themselves; the brackets are added to see where they were put.
            let out = expand(template, |name| {
                names.push(name);
                "\u{0}"
            });
            let shown = names.iter().fold(out, |text, name| text.replacen('\u{0}', &format!("<{name}>"), 1));
            assert_eq!(shown, result, "{template}");
        }
    }

    #[test]
    fn values_are_not_expanded_again() {
        assert_eq!(expand("${a}", |_| "${b}"), "${b}");
    }

    proptest! {
        #[test]
        fn texts_without_dollar_stay(text in "[^$]*") {
            prop_assert_eq!(expand(&text, |_| "never"), text.clone());
        }

        #[test]
        fn no_template_panics(text in "[${}a*1.ä-]{0,20}") {
            let _ = expand(&text, |_| "");
        }
    }
}
