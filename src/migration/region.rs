//! Which region a zone lies in, by the naming rules of two clouds (migration.md 12). Knows nothing about objects.

use super::error::TranslateError;
use std::collections::BTreeSet;

/// Naming rule of a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionRule {
    /// `us-west-2a`, `us-gov-east-1a`, local zones `us-west-2-lax-1a`, wavelength zones `us-east-1-wl1-bos-wlz-1`.
    Aws,
    /// `us-central1-a`.
    Gce,
}

impl RegionRule {
    /// The one region of these zones. `object` names their carrier in errors.
    ///
    /// Fails without zones, with a zone that the rule does not understand (two-digit AWS regions among them, as in the
    /// cluster's own rule) and with zones of several regions.
    pub fn region_of<'z>(
        self,
        zones: impl IntoIterator<Item = &'z str>,
        object: &str,
    ) -> Result<String, TranslateError> {
        let mut regions = BTreeSet::new();
        for zone in zones {
            regions.insert(self.region(zone).ok_or_else(|| TranslateError::ZoneInvalid {
                object: object.to_owned(),
                zone: zone.to_owned(),
                expected: self.form(),
            })?);
        }
        match regions.len() {
            0 | 1 => regions.pop_first().ok_or_else(|| TranslateError::ZonesMissing { object: object.to_owned() }),
            _ => Err(TranslateError::SeveralRegions {
                object: object.to_owned(),
                regions: regions.into_iter().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    fn form(self) -> &'static str {
        match self {
            Self::Aws => "{locale}-{region}-{number}{letter}, {region}-{local zone} or {region}-{wavelength zone}",
            Self::Gce => "{locale}-{region}-{zone}",
        }
    }

    fn region(self, zone: &str) -> Option<String> {
        let parts: Vec<&str> = zone.split('-').collect();
        match (self, parts.as_slice()) {
            (Self::Gce, [locale, region, _zone]) => Some(format!("{locale}-{region}")),
            (Self::Aws, [front @ .., last]) if matches!(front.len(), 2 | 3) && last.len() == 2 => {
                Some(format!("{}-{}", front.join("-"), last.get(..1)?))
            }
            (Self::Aws, [a, b, c, _, _] | [a, b, c, _, _, _, _]) => Some(format!("{a}-{b}-{c}")),
            (Self::Gce | Self::Aws, _) => None,
        }
    }
}
