//! Names and keys of the migrated plug-ins (migration.md 1 and 2). Holds data only; no other plug-in has a translation.

use serde_json::Value;

/// Zone key of labels and affinities, stable spelling.
pub const STABLE_ZONE: &str = "topology.kubernetes.io/zone";
/// Region key of labels and affinities, stable spelling.
pub const STABLE_REGION: &str = "topology.kubernetes.io/region";
/// Zone key of labels and affinities, beta spelling.
pub const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
/// Region key of labels and affinities, beta spelling.
pub const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
/// Stands between the zones of one label value.
pub const ZONE_SEPARATOR: &str = "__";
/// CSI spelling of the file system parameter of a class.
pub const FSTYPE_PARAMETER: &str = "csi.storage.k8s.io/fstype";
/// Region key of vSphere volumes in their CSI form.
pub const VSPHERE_REGION: &str = "topology.csi.vmware.com/region";
/// Annotation with the resource group of an azure-file volume.
pub const AZURE_FILE_RESOURCE_GROUP: &str = "kubernetes.io/azure-file-resource-group";
/// Class parameter and volume annotation: name of the Portworx secret.
pub const PORTWORX_SECRET_NAME: &str = "openstorage.io/auth-secret-name";
/// Class parameter and volume annotation: namespace of the Portworx secret.
pub const PORTWORX_SECRET_NAMESPACE: &str = "openstorage.io/auth-secret-namespace";

/// An in-tree plug-in that a CSI driver replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plugin {
    /// `kubernetes.io/aws-ebs`
    AwsEbs,
    /// `kubernetes.io/gce-pd`
    GcePd,
    /// `kubernetes.io/azure-disk`
    AzureDisk,
    /// `kubernetes.io/azure-file`
    AzureFile,
    /// `kubernetes.io/cinder`
    Cinder,
    /// `kubernetes.io/vsphere-volume`
    Vsphere,
    /// `kubernetes.io/portworx-volume`
    Portworx,
}

impl Plugin {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::AwsEbs, Self::GcePd, Self::AzureDisk, Self::AzureFile, Self::Cinder, Self::Vsphere, Self::Portworx];

    /// Provisioner name in classes.
    pub fn in_tree_name(self) -> &'static str {
        match self {
            Self::AwsEbs => "kubernetes.io/aws-ebs",
            Self::GcePd => "kubernetes.io/gce-pd",
            Self::AzureDisk => "kubernetes.io/azure-disk",
            Self::AzureFile => "kubernetes.io/azure-file",
            Self::Cinder => "kubernetes.io/cinder",
            Self::Vsphere => "kubernetes.io/vsphere-volume",
            Self::Portworx => "kubernetes.io/portworx-volume",
        }
    }

    /// Name of the CSI driver that took over.
    pub fn driver_name(self) -> &'static str {
        match self {
            Self::AwsEbs => "ebs.csi.aws.com",
            Self::GcePd => "pd.csi.storage.gke.io",
            Self::AzureDisk => "disk.csi.azure.com",
            Self::AzureFile => "file.csi.azure.com",
            Self::Cinder => "cinder.csi.openstack.org",
            Self::Vsphere => "csi.vsphere.vmware.com",
            Self::Portworx => "pxd.portworx.com",
        }
    }

    /// Field of `spec` (and of a pod volume) that holds the in-tree source.
    pub fn source_field(self) -> &'static str {
        match self {
            Self::AwsEbs => "awsElasticBlockStore",
            Self::GcePd => "gcePersistentDisk",
            Self::AzureDisk => "azureDisk",
            Self::AzureFile => "azureFile",
            Self::Cinder => "cinder",
            Self::Vsphere => "vsphereVolume",
            Self::Portworx => "portworxVolume",
        }
    }

    /// Topology key under which the driver reports zones.
    pub fn zone_key(self) -> Option<&'static str> {
        match self {
            Self::AwsEbs => Some("topology.ebs.csi.aws.com/zone"),
            Self::GcePd => Some("topology.gke.io/zone"),
            Self::AzureDisk => Some("topology.disk.csi.azure.com/zone"),
            Self::Cinder => Some("topology.cinder.csi.openstack.org/zone"),
            Self::Vsphere => Some("topology.csi.vmware.com/zone"),
            Self::AzureFile | Self::Portworx => None,
        }
    }

    /// The plug-in that this driver replaced.
    pub fn by_driver(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plugin| plugin.driver_name() == name)
    }

    /// The plug-in with this provisioner name.
    pub fn by_in_tree(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|plugin| plugin.in_tree_name() == name)
    }

    /// The plug-in whose source the volume object holds; `None` when it also holds a CSI source or that of a second
    /// plug-in, because then nothing says which of them is the volume.
    pub fn of_volume(pv: &Value) -> Option<Self> {
        let spec = pv.get("spec")?;
        match spec.get("csi") {
            None | Some(Value::Null) => Self::of_source_holder(spec),
            Some(_) => None,
        }
    }

    /// The one plug-in whose source field is set in a `spec` or in a pod volume.
    pub(super) fn of_source_holder(holder: &Value) -> Option<Self> {
        let is_set = |plugin: &Self| holder.get(plugin.source_field()).is_some_and(|source| !source.is_null());
        let mut set = Self::ALL.into_iter().filter(is_set);
        match (set.next(), set.next()) {
            (only, None) => only,
            (_, Some(_)) => None,
        }
    }
}
