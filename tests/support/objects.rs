//! Objects that read as sentences: `claim("data").class("fast").wants("10Gi")`.

use super::world::World;
use serde_json::{Value, json};

/// Something that can be created in a world.
pub trait Object {
    /// Where, and what.
    fn manifest(&self, world: &World) -> (String, Value);
}

/// A claim: 1 Gi, one writer, unless said otherwise.
pub struct Claim {
    name: String,
    spec: Value,
    annotations: Value,
}

/// A claim of the class "fast".
pub fn claim(name: &str) -> Claim {
    let spec = json!({
        "storageClassName": "fast",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    });
    Claim { name: name.to_owned(), spec, annotations: json!({}) }
}

impl Claim {
    /// Of another class of this world.
    pub fn class(mut self, name: &str) -> Self {
        self.spec["storageClassName"] = name.into();
        self
    }

    /// At least that large.
    pub fn wants(mut self, size: &str) -> Self {
        self.spec["resources"]["requests"]["storage"] = size.into();
        self
    }

    /// With these access modes.
    pub fn access(mut self, modes: &[&str]) -> Self {
        self.spec["accessModes"] = json!(modes);
        self
    }

    /// As a device instead of a file system.
    pub fn block(mut self) -> Self {
        self.spec["volumeMode"] = "Block".into();
        self
    }

    /// With the content of another claim.
    pub fn clone_of(mut self, name: &str) -> Self {
        self.spec["dataSource"] = json!({"kind": "PersistentVolumeClaim", "name": name});
        self
    }

    /// With the content of a snapshot.
    pub fn restored_from(mut self, name: &str) -> Self {
        let group = "snapshot.storage.k8s.io";
        self.spec["dataSource"] = json!({"apiGroup": group, "kind": "VolumeSnapshot", "name": name});
        self
    }

    /// With the content of a source in another namespace: a claim, or a snapshot.
    pub fn source_in(mut self, namespace: &str, kind: &str, name: &str) -> Self {
        let group = if kind == "VolumeSnapshot" { json!("snapshot.storage.k8s.io") } else { Value::Null };
        self.spec["dataSourceRef"] = json!({"apiGroup": group, "kind": kind, "name": name, "namespace": namespace});
        self
    }

    /// With a volume attributes class; its name is taken as it is.
    pub fn attributes(mut self, class: &str) -> Self {
        self.spec["volumeAttributesClassName"] = class.into();
        self
    }

    /// With an annotation.
    pub fn annotated(mut self, key: &str, value: &str) -> Self {
        self.annotations[key] = value.into();
        self
    }
}

impl Object for Claim {
    fn manifest(&self, world: &World) -> (String, Value) {
        let mut spec = self.spec.clone();
        spec["storageClassName"] = world.class_name(spec["storageClassName"].as_str().unwrap_or_default()).into();
        let metadata = json!({"name": self.name, "annotations": self.annotations});
        (world.claims(), json!({"metadata": metadata, "spec": spec}))
    }
}

/// A storage class of the world's driver, with immediate binding and reclaim policy Delete unless said otherwise.
pub struct Class {
    name: String,
    provisioner: Option<String>,
    rest: Value,
}

/// A class; its name gets the world's in front.
pub fn class(name: &str) -> Class {
    let rest = json!({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", "parameters": {}});
    Class { name: name.to_owned(), provisioner: None, rest }
}

impl Class {
    /// Volumes outlive their claims.
    pub fn retain(mut self) -> Self {
        self.rest["reclaimPolicy"] = "Retain".into();
        self
    }

    /// Volumes wait until a node is selected for their claims.
    pub fn waits(mut self) -> Self {
        self.rest["volumeBindingMode"] = "WaitForFirstConsumer".into();
        self
    }

    /// Of another driver.
    pub fn provisioner(mut self, name: &str) -> Self {
        self.provisioner = Some(name.to_owned());
        self
    }

    /// Mounted with these options.
    pub fn mounted_with(mut self, options: &[&str]) -> Self {
        self.rest["mountOptions"] = json!(options);
        self
    }

    /// With a parameter.
    pub fn parameter(mut self, key: &str, value: &str) -> Self {
        self.rest["parameters"][key] = value.into();
        self
    }
}

impl Object for Class {
    fn manifest(&self, world: &World) -> (String, Value) {
        let mut object = self.rest.clone();
        object["metadata"] = json!({"name": world.class_name(&self.name)});
        object["provisioner"] = self.provisioner.clone().unwrap_or_else(|| world.driver_name()).into();
        (super::api::CLASSES.to_owned(), object)
    }
}
