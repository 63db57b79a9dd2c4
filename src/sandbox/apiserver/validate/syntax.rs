//! Syntax of names, label keys and label values.
//!
//! Each function answers a complaint or nothing.

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                         and must start and end with an alphanumeric character";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                     start and end with an alphanumeric character";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                         with an alphanumeric character, with an optional DNS subdomain prefix and '/'";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                     must start and end with an alphanumeric character";

fn is_label(text: &str) -> bool {
    let ends = |end: Option<char>| end.is_some_and(|end| end.is_ascii_lowercase() || end.is_ascii_digit());
    ends(text.chars().next())
        && ends(text.chars().next_back())
        && text.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-')
}

fn is_name_part(text: &str) -> bool {
    let ends = |end: Option<char>| end.is_some_and(|end| end.is_ascii_alphanumeric());
    ends(text.chars().next())
        && ends(text.chars().next_back())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'))
}

/// A DNS subdomain, the usual name of an object.
pub fn subdomain(text: &str) -> Option<&'static str> {
    if text.len() > 253 {
        return Some("must be no more than 253 bytes");
    }
    (!text.split('.').all(is_label)).then_some(SUBDOMAIN)
}

/// A DNS label, the name of a namespace.
pub fn label(text: &str) -> Option<&'static str> {
    if text.len() > 63 {
        return Some("must be no more than 63 bytes");
    }
    (!is_label(text)).then_some(LABEL)
}

/// A qualified name: the key of a label or annotation, a finalizer.
pub fn qualified_name(text: &str) -> Option<&'static str> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            return Some("prefix part must be non-empty");
        }
        if subdomain(prefix).is_some() {
            return Some("prefix part must be a lowercase RFC 1123 subdomain");
        }
    }
    match name.len() {
        0 => Some("name part must be non-empty"),
        64.. => Some("name part must be no more than 63 bytes"),
        _ => (!is_name_part(name)).then_some(QUALIFIED),
    }
}

/// The value of a label.
pub fn label_value(text: &str) -> Option<&'static str> {
    if text.len() > 63 {
        return Some("must be no more than 63 bytes");
    }
    (!text.is_empty() && !is_name_part(text)).then_some(VALUE)
}
