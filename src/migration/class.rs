//! What all plug-ins share in translating a class (migration.md 8). Which parameter becomes what is in their files.
//!
//! Promises that name, binding mode, mount options and reclaim policy never change, and that the result does not depend
//! on the order of parameters: where two of them would set the same thing to different values, the class is refused
//! (migration.md 17, W2).

use super::error::TranslateError;
use super::tables::Plugin;
use super::{aws_ebs, azure_disk, cinder, gce_pd, portworx, topology, vsphere};
use crate::model::Class;
use crate::model::class::{TopologyExpression, TopologyTerm};
use crate::model::meta::MetaExt;
use std::collections::BTreeMap;

/// Kind and name, for error texts.
pub(super) fn title(class: &Class) -> String {
    format!("StorageClass \"{}\"", class.metadata.name())
}

/// The class as the plug-in's driver understands it.
pub(super) fn translate(plugin: Plugin, class: &Class) -> Result<Class, TranslateError> {
    let parameter = match plugin {
        Plugin::AzureFile => return Ok(class.clone()),
        Plugin::AwsEbs => aws_ebs::parameter,
        Plugin::GcePd => gce_pd::parameter,
        Plugin::AzureDisk => azure_disk::parameter,
        Plugin::Cinder => cinder::parameter,
        Plugin::Vsphere => vsphere::parameter,
        Plugin::Portworx => portworx::parameter,
    };
    let mut draft = Draft { class: title(class), ..Draft::default() };
    for (key, value) in &class.parameters {
        parameter(&mut draft, &Given { name: key.to_lowercase(), key, value })?;
    }
    let mut out = class.clone();
    match plugin {
        Plugin::Vsphere => draft.put(vsphere::MARKER, "true", vsphere::MARKER)?,
        Plugin::Portworx => plugin.driver_name().clone_into(&mut out.provisioner),
        Plugin::AwsEbs | Plugin::GcePd | Plugin::AzureDisk | Plugin::AzureFile | Plugin::Cinder => {}
    }
    if let Some(zone_key) = plugin.zone_key() {
        out.allowed_topologies = draft.topologies(&class.allowed_topologies, zone_key)?;
    }
    if plugin == Plugin::AzureDisk {
        azure_disk::blank_numeric_zones(&mut out.allowed_topologies);
    }
    out.parameters = draft.parameters.into_iter().map(|(key, set)| (key, set.value)).collect();
    Ok(out)
}

/// One parameter of the class.
pub(super) struct Given<'a> {
    /// The key in lower case, by which parameters are recognised.
    pub(super) name: String,
    /// The key as spelled.
    pub(super) key: &'a str,
    /// The value.
    pub(super) value: &'a str,
}

/// What the parameters read so far turn into.
#[derive(Default)]
pub(super) struct Draft {
    class: String,
    parameters: BTreeMap<String, Set>,
    zones: Option<(Vec<String>, String)>,
}

/// A parameter of the result and the one of the class that it came from.
struct Set {
    value: String,
    from: String,
}

impl Draft {
    /// Keeps the parameter as it is.
    pub(super) fn keep(&mut self, given: &Given<'_>) -> Result<(), TranslateError> {
        self.put(given.key, given.value, given.key)
    }

    /// Sets a parameter of the result; `from` is the one of the class that asked for it.
    pub(super) fn put(&mut self, key: &str, value: &str, from: &str) -> Result<(), TranslateError> {
        match self.parameters.get(key) {
            Some(set) if set.value != value => Err(self.contradiction(&set.from, from)),
            _ => {
                self.parameters.insert(key.to_owned(), Set { value: value.to_owned(), from: from.to_owned() });
                Ok(())
            }
        }
    }

    /// Chooses zones in place of allowed topologies.
    pub(super) fn choose_zones(&mut self, zones: Vec<String>, from: &str) -> Result<(), TranslateError> {
        match &self.zones {
            Some((chosen, first)) if *chosen != zones => Err(self.contradiction(first, from)),
            _ => {
                self.zones = Some((zones, from.to_owned()));
                Ok(())
            }
        }
    }

    /// `zone` and `zones` choose zones, the latter separated by commas with blanks kept; says whether it was one of them.
    pub(super) fn takes_zones(&mut self, given: &Given<'_>) -> Result<bool, TranslateError> {
        match given.name.as_str() {
            "zone" => self.choose_zones(vec![given.value.to_owned()], given.key)?,
            "zones" => self.choose_zones(given.value.split(',').map(str::to_owned).collect(), given.key)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn contradiction(&self, first: &str, second: &str) -> TranslateError {
        TranslateError::ParametersContradict {
            object: self.class.clone(),
            first: first.to_owned(),
            second: second.to_owned(),
        }
    }

    fn topologies(&self, allowed: &[TopologyTerm], zone_key: &str) -> Result<Vec<TopologyTerm>, TranslateError> {
        match &self.zones {
            None => Ok(topology::allowed_topologies(allowed, zone_key)),
            Some((_, parameter)) if !allowed.is_empty() => {
                Err(TranslateError::ZonesGivenTwice { object: self.class.clone(), parameter: parameter.clone() })
            }
            Some((zones, _)) => {
                let expression = TopologyExpression { key: zone_key.to_owned(), values: zones.clone() };
                Ok(vec![TopologyTerm { match_label_expressions: vec![expression] }])
            }
        }
    }
}
