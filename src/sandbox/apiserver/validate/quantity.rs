//! Quantities such as `1Gi` or `1500m`: enough of them to compare sizes and to write them in their canonical form.

/// A quantity in billionths, with the family of its suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    nanos: i128,
    family: Family,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Binary,
    Decimal,
    Exponent,
}

const NANOS: i128 = 1_000_000_000;
const BINARY: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
const DECIMAL: [(&str, i32); 10] =
    [("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3), ("u", -6), ("n", -9)];

impl Quantity {
    /// Reads a quantity; `None` for what is none or too large to hold.
    pub fn parse(text: &str) -> Option<Self> {
        let end = text.find(|letter: char| !(letter.is_ascii_digit() || matches!(letter, '.' | '+' | '-')));
        let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
        let (family, multiplier) = unit(suffix)?;
        let (negative, digits) = match number.as_bytes().first()? {
            b'-' => (true, number.get(1..)?),
            b'+' => (false, number.get(1..)?),
            _ => (false, number),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|it| it.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let fraction = fraction.get(..fraction.len().min(9))?;
        let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let units: i128 = format!("0{whole}{fraction}").parse().ok()?;
        // Smaller than a billionth is rounded up, as the real type does.
        let scaled = multiplier.checked_mul(units)?;
        let nanos = scaled.checked_add(scale - 1)?.checked_div(scale)?;
        Some(Self { nanos: if negative { -nanos } else { nanos }, family })
    }

    /// Its size in billionths, to compare.
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// The canonical text: the largest suffix of the same family that leaves a whole number.
    pub fn canonical(self) -> String {
        if self.nanos == 0 {
            return "0".to_owned();
        }
        let whole = self.nanos % NANOS == 0;
        if self.family == Family::Binary && whole && (self.nanos / NANOS).abs() >= 1024 {
            let value = self.nanos / NANOS;
            let suffix = BINARY.iter().find(|(_, shift)| value % (1_i128 << shift) == 0);
            return suffix.map_or(value.to_string(), |(suffix, shift)| format!("{}{suffix}", value >> shift));
        }
        for (suffix, power) in DECIMAL {
            let unit = 10_i128.pow(u32::try_from(power + 9).unwrap_or(0));
            if self.nanos % unit == 0 {
                let value = self.nanos / unit;
                return match (self.family, power) {
                    (Family::Exponent, 0) => value.to_string(),
                    (Family::Exponent, power) => format!("{value}e{power}"),
                    _ => format!("{value}{suffix}"),
                };
            }
        }
        self.nanos.to_string()
    }
}

fn unit(suffix: &str) -> Option<(Family, i128)> {
    if let Some((_, shift)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((Family::Binary, NANOS << shift));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Family::Decimal, 10_i128.pow(u32::try_from(power + 9).ok()?)));
    }
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Family::Exponent, 10_i128.checked_pow(u32::try_from(power + 9).ok()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_is_the_real_servers() {
        let cases = [
            ("1Gi", "1Gi"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000Mi", "1000Mi"),
            ("1073741824", "1073741824"),
            ("1000", "1k"),
            ("1500m", "1500m"),
            ("2000m", "2"),
            ("1e3", "1e3"),
            ("0.5", "500m"),
            ("0", "0"),
            ("5Ki", "5Ki"),
            ("0.5Ki", "512"),
            ("+1G", "1G"),
        ];
        for (text, wanted) in cases {
            assert_eq!(Quantity::parse(text).map(Quantity::canonical).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "Gi", "1gi", "1 Gi", "one", "1.2.3", "1-2", "--1"] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }
}
