//! Kubernetes quantities: parsing, rounding and the canonical text.
//!
//! Promises:
//! - [`ceil_bytes`] reads every quantity that the API server accepts (decimal and binary suffixes, exponents, signs)
//!   exactly, whatever its length, and rounds to whole bytes away from zero, as the API's own arithmetic does;
//! - a value beyond 64 bits becomes the largest or smallest one, never a wrapped one;
//! - [`format_bytes`] writes what the reference provisioner writes (provisioning.md 5.2).

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// No digit where the number should be.
    #[error("it has no digits")]
    NoDigits,
    /// What follows the number is neither a suffix nor an exponent.
    #[error("its suffix is unknown (known: n u m k M G T P E Ki Mi Gi Ti Pi Ei and exponents such as e3)")]
    UnknownSuffix,
}

/// What the suffix stands for.
enum Scale {
    /// Power of ten.
    Ten(i64),
    /// Power of 1024.
    Kibi(u32),
}

/// Bytes of a quantity, rounded away from zero to a whole number.
///
/// Rounds up because the driver treats the request as a lower limit: rounding down would hand out a volume that is
/// smaller than the claim.
pub fn ceil_bytes(quantity: &str) -> Result<i64, QuantityError> {
    let (negative, rest) = match quantity.as_bytes().first() {
        Some(b'-') => (true, &quantity[1..]),
        Some(b'+') => (false, &quantity[1..]),
        _ => (false, quantity),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') {
        return Err(QuantityError::UnknownSuffix);
    }
    if whole.is_empty() && fraction.is_empty() {
        return Err(QuantityError::NoDigits);
    }
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
    let point = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    let size = match scale(suffix)? {
        Scale::Ten(power) => round_up(&digits, point.saturating_add(power)),
        Scale::Kibi(power) => {
            let (digits, grown) = times_1024(digits, power);
            round_up(&digits, point.saturating_add(grown))
        }
    };
    Ok(if negative { 0_i64.saturating_sub_unsigned(size) } else { i64::try_from(size).unwrap_or(i64::MAX) })
}

fn scale(suffix: &str) -> Result<Scale, QuantityError> {
    Ok(match suffix {
        "" => Scale::Ten(0),
        "n" => Scale::Ten(-9),
        "u" => Scale::Ten(-6),
        "m" => Scale::Ten(-3),
        "k" => Scale::Ten(3),
        "M" => Scale::Ten(6),
        "G" => Scale::Ten(9),
        "T" => Scale::Ten(12),
        "P" => Scale::Ten(15),
        "E" => Scale::Ten(18),
        "Ki" => Scale::Kibi(1),
        "Mi" => Scale::Kibi(2),
        "Gi" => Scale::Kibi(3),
        "Ti" => Scale::Kibi(4),
        "Pi" => Scale::Kibi(5),
        "Ei" => Scale::Kibi(6),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::UnknownSuffix)?;
            Scale::Ten(exponent.parse().map_err(|_| QuantityError::UnknownSuffix)?)
        }
    })
}

/// Multiplies decimal digits by a power of 1024. The second value is how many digits longer the number became.
fn times_1024(digits: Vec<u8>, power: u32) -> (Vec<u8>, i64) {
    let mut reversed: Vec<u8> = digits.into_iter().rev().collect();
    let before = reversed.len();
    for _ in 0..power {
        let mut carry = 0_u32;
        for digit in &mut reversed {
            let product = u32::from(*digit) * 1024 + carry;
            // The remainder of a division by ten always fits.
            *digit = u8::try_from(product % 10).unwrap_or_default();
            carry = product / 10;
        }
        while carry > 0 {
            reversed.push(u8::try_from(carry % 10).unwrap_or_default());
            carry /= 10;
        }
    }
    let grown = i64::try_from(reversed.len() - before).unwrap_or(i64::MAX);
    (reversed.into_iter().rev().collect(), grown)
}

/// The number `digits`, with the decimal point before index `point`, rounded up; saturates at `u64::MAX`.
fn round_up(digits: &[u8], point: i64) -> u64 {
    let Some(first) = digits.iter().position(|digit| *digit != 0) else { return 0 };
    let length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let first = i64::try_from(first).unwrap_or(i64::MAX);
    if point <= first {
        return 1;
    }
    if point.saturating_sub(first) > 20 {
        return u64::MAX;
    }
    let mut whole = 0_u64;
    for index in first..point {
        let digit = usize::try_from(index).ok().and_then(|index| digits.get(index)).copied().unwrap_or_default();
        whole = whole.saturating_mul(10).saturating_add(u64::from(digit));
    }
    let rest = point < length
        && usize::try_from(point).ok().and_then(|at| digits.get(at..)).is_some_and(|rest| rest.iter().any(|d| *d != 0));
    whole.saturating_add(u64::from(rest))
}

/// A size as `spec.capacity.storage` shows it: the largest binary suffix that divides it exactly; below 1024 bytes
/// the decimal form, in which 1000 is `1k` (provisioning.md 5.2).
pub fn format_bytes(bytes: i64) -> String {
    if bytes < 1024 {
        return if bytes == 1000 { "1k".to_owned() } else { bytes.to_string() };
    }
    let (mut value, mut power) = (bytes, 0);
    let suffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    while value % 1024 == 0 && power + 1 < suffixes.len() {
        value /= 1024;
        power += 1;
    }
    format!("{value}{}", suffixes.get(power).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_suffix_scales() {
        for (text, bytes) in [
            ("0", 0),
            ("100", 100),
            ("+5", 5),
            ("1k", 1000),
            ("1Ki", 1024),
            ("1.5Gi", 1_610_612_736),
            ("1.5G", 1_500_000_000),
            (".5Ki", 512),
            ("5.", 5),
            ("2M", 2_000_000),
            ("3Mi", 3_145_728),
            ("1T", 1_000_000_000_000),
            ("1Ti", 1_099_511_627_776),
            ("1P", 1_000_000_000_000_000),
            ("1Pi", 1_125_899_906_842_624),
            ("1E", 1_000_000_000_000_000_000),
            ("1Ei", 1_152_921_504_606_846_976),
            ("1e3", 1000),
            ("1E3", 1000),
            ("1.25e1", 13),
            ("12e-1", 2),
        ] {
            assert_eq!(ceil_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn fractions_round_away_from_zero() {
        for (text, bytes) in
            [("1m", 1), ("1500m", 2), ("1n", 1), ("999999u", 1), ("0.0000000000000001Ki", 1), ("-0.5", -1)]
        {
            assert_eq!(ceil_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_saturates() {
        for (text, bytes) in [
            ("8Ei", i64::MAX),
            ("9223372036854775807", i64::MAX),
            ("9223372036854775808", i64::MAX),
            ("1e400", i64::MAX),
            ("-1e400", i64::MIN),
            ("-9223372036854775808", i64::MIN),
            ("1e-400", 1),
            ("0e400", 0),
        ] {
            assert_eq!(ceil_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "-", "Gi", ".", "1.2.3"] {
            assert!(ceil_bytes(text).is_err(), "{text}");
        }
        for text in ["1gi", "1 Gi", "1KiB", "1e", "1e1.5", "ten", "1\u{664}", "1e99999999999999999999"] {
            assert!(ceil_bytes(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(bytes in 0_i64..) {
            prop_assert_eq!(ceil_bytes(&format_bytes(bytes)), Ok(bytes));
        }

        #[test]
        fn binary_suffixes_multiply_exactly(number in 0_u32..1_000_000, fraction in 0_u32..1000, power in 0_usize..4) {
            let text = format!("{number}.{fraction:03}{}", ["Ki", "Mi", "Gi", "Ti"][power]);
            let thousandths = u128::from(number) * 1000 + u128::from(fraction);
            let bytes = (thousandths * 1024_u128.pow(u32::try_from(power).unwrap() + 1)).div_ceil(1000);
            prop_assert_eq!(ceil_bytes(&text), Ok(i64::try_from(bytes).unwrap_or(i64::MAX)));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = ceil_bytes(&text);
        }

        #[test]
        fn number_like_texts_do_not_panic(text in "[-+]?[0-9.]{0,40}[eEmkKMGTPin]{0,2}[-+]?[0-9]{0,6}") {
            let _ = ceil_bytes(&text);
        }
    }
}
