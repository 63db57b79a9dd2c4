//! The claim's volume attributes class (provisioning.md 4.14).

use super::refusal::{Refusal, cut};
use crate::model::Claim;
use crate::model::class::AttributesClass;
use crate::model::meta::MetaExt;
use std::collections::BTreeMap;

/// Name of the claim's attributes class, if it names one and the gate is on.
pub fn class_name(claim: &Claim, gate: bool) -> Option<&str> {
    claim.spec.volume_attributes_class_name.as_deref().filter(|name| gate && !name.is_empty())
}

/// The parameters that go to the driver as they are, or the refusal of a class that is for another driver.
pub fn mutable_parameters(class: AttributesClass, driver: &str) -> Result<BTreeMap<String, String>, Refusal> {
    if class.driver_name != driver {
        return Err(Refusal::AttributesClassOfOtherDriver {
            class: cut(class.metadata.name()),
            driver: cut(&class.driver_name),
            ours: driver.to_owned(),
        });
    }
    Ok(class.parameters)
}
