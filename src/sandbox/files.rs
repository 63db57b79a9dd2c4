//! The user's YAML files: read, understood as objects of the API, put into it.
//!
//! Every mistake is told with file, number of the document (from 1), field and the next step.

use super::apiserver::ApiServer;
use super::apiserver::refusal::{Reason, Refusal};
use super::apiserver::resources::{RESOURCES, Resource};
use super::binder::objects::{class, name, text};
use serde_json::Value;
use std::fmt;
use std::io::Read;
use std::path::Path;

/// One object of a file.
#[derive(Clone, Debug)]
pub struct Document {
    /// Where it stands.
    pub origin: Origin,
    /// Its kind.
    pub resource: &'static Resource,
    /// Its namespace; empty for kinds without one.
    pub namespace: String,
    /// The object.
    pub object: Value,
}

/// Where a document stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// File as given; `-` is standard input.
    pub file: String,
    /// Number of the document, from 1.
    pub number: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.file, self.number)
    }
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{file}: {reason}; give the path of a YAML file, or - for standard input")]
    Unreadable {
        /// As given.
        file: String,
        /// Why not.
        reason: std::io::Error,
    },
    /// It is no YAML.
    #[error("{origin}{place}: not valid YAML: {reason}; correct that line")]
    Syntax {
        /// Document.
        origin: Origin,
        /// Line and column, if known.
        place: String,
        /// Why not.
        reason: String,
    },
    /// It has no objects.
    #[error("{0}: no object in it; write at least a PersistentVolumeClaim, as examples/claim.yaml does")]
    Empty(String),
    /// A field that every object needs.
    #[error("{origin}: {field}: {what}; {next}")]
    Field {
        /// Document.
        origin: Origin,
        /// Path of the field.
        field: String,
        /// What is wrong.
        what: String,
        /// What to do.
        next: String,
    },
    /// The API server refused the object.
    #[error("{origin}: {}", refused(.refusal))]
    Refused {
        /// Document.
        origin: Origin,
        /// Its answer.
        refusal: Box<Refusal>,
    },
}

/// Fields and texts of a refusal, and what to do.
fn refused(refusal: &Refusal) -> String {
    let next = match refusal.reason {
        Reason::AlreadyExists => "give it another name, or remove one of the two documents",
        Reason::NotFound => "create what is missing in a document before this one",
        _ => "correct the document",
    };
    if refusal.details.causes.is_empty() {
        return format!("{}; {next}", refusal.message);
    }
    let causes: Vec<String> =
        refusal.details.causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    format!("{}; correct the field", causes.join(", "))
}

/// Reads the objects of a file.
pub fn read(file: &str) -> Result<Vec<Document>, FileError> {
    let unreadable = |reason| FileError::Unreadable { file: file.to_owned(), reason };
    let mut content = String::new();
    if file == "-" {
        std::io::stdin().read_to_string(&mut content).map_err(unreadable)?;
    } else {
        content = std::fs::read_to_string(Path::new(file)).map_err(unreadable)?;
    }
    let documents = parse(file, &content)?;
    if documents.is_empty() { Err(FileError::Empty(file.to_owned())) } else { Ok(documents) }
}

/// Understands the text of a file.
pub fn parse(file: &str, content: &str) -> Result<Vec<Document>, FileError> {
    let mut documents = Vec::new();
    for (part, first_line) in split(content) {
        let origin = Origin { file: file.to_owned(), number: documents.len() + 1 };
        let value: Value = serde_saphyr::from_str(&part).map_err(|error| FileError::Syntax {
            origin: origin.clone(),
            place: error
                .location()
                .map(|place| format!(", line {}", (first_line + place.line()).saturating_sub(1)))
                .unwrap_or_default(),
            reason: error.without_snippet().to_string(),
        })?;
        match value.get("items").and_then(Value::as_array) {
            Some(items) if text(&value, "/kind").ends_with("List") => {
                for item in items {
                    documents.push(understand(origin.clone(), item.clone())?);
                }
            }
            _ => documents.push(understand(origin, value)?),
        }
    }
    Ok(documents)
}

/// The documents of a stream with the line that each begins on; empty ones are left out.
fn split(content: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 1)];
    for (number, line) in (0..).zip(content.lines()) {
        if line == "---" {
            parts.push((String::new(), number + 2));
        } else if let Some(rest) = line.strip_prefix("--- ") {
            parts.push((format!("{rest}\n"), number + 1));
        } else if let Some((part, _)) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    let says_something = |part: &str| part.lines().any(|line| !line.trim().is_empty() && !line.trim().starts_with('#'));
    parts.retain(|(part, _)| says_something(part));
    parts
}

fn understand(origin: Origin, mut object: Value) -> Result<Document, FileError> {
    let wrong = |field: &str, what: &str, next: &str| FileError::Field {
        origin: origin.clone(),
        field: field.to_owned(),
        what: what.to_owned(),
        next: next.to_owned(),
    };
    if !object.is_object() {
        return Err(wrong("(whole document)", "not a map", "write fields such as kind: PersistentVolumeClaim"));
    }
    let (version, kind) = (text(&object, "/apiVersion"), text(&object, "/kind"));
    if version.is_empty() {
        return Err(wrong("apiVersion", "missing", "add it, for example apiVersion: v1"));
    }
    if kind.is_empty() {
        return Err(wrong("kind", "missing", "add it, for example kind: PersistentVolumeClaim"));
    }
    let Some(resource) = RESOURCES.iter().find(|known| known.kind == kind && known.api_version() == version) else {
        let what = format!("{kind} of {version} is not known here");
        let kinds: Vec<String> =
            RESOURCES.iter().filter(|known| known.kind == kind).map(Resource::api_version).collect();
        let next = match kinds.first() {
            Some(version) => format!("write apiVersion: {version}"),
            None => "remove the document; `csi-sandbox up` and `kubectl api-resources` show what is served".to_owned(),
        };
        return Err(wrong("kind", &what, &next));
    };
    if name(&object).is_empty() && text(&object, "/metadata/generateName").is_empty() {
        return Err(wrong("metadata.name", "missing", "give the object a name"));
    }
    let mut namespace = String::new();
    if resource.namespaced {
        namespace = match text(&object, "/metadata/namespace") {
            "" => "default".to_owned(),
            namespace => namespace.to_owned(),
        };
        if let Some(metadata) = super::binder::objects::child(&mut object, "metadata") {
            metadata.insert("namespace".to_owned(), Value::from(namespace.clone()));
        }
    }
    Ok(Document { origin, resource, namespace, object })
}

/// Puts objects into the API, namespaces and classes before claims, claims before pods, and returns them as stored.
/// Namespaces are made as needed.
pub fn apply(server: &ApiServer, documents: &[Document]) -> Result<Vec<(&'static Resource, Value)>, FileError> {
    let mut stored = Vec::new();
    let mut ordered: Vec<&Document> = documents.iter().collect();
    ordered.sort_by_key(|document| match document.resource.plural {
        "namespaces" => 0,
        "persistentvolumeclaims" => 2,
        "pods" => 3,
        _ => 1,
    });
    for document in ordered {
        if !document.namespace.is_empty() {
            server.ensure_namespace(&document.namespace);
        }
        let refused = |refusal| FileError::Refused { origin: document.origin.clone(), refusal: Box::new(refusal) };
        let created =
            server.create(document.resource.plural, &document.namespace, document.object.clone()).map_err(refused)?;
        stored.push((document.resource, created));
    }
    Ok(stored)
}

/// Refuses claims that nobody would ever bind: their class is neither in the files nor in the API, or it is another
/// driver's. A class that a volume in the files has is left alone.
pub fn check_classes(server: &ApiServer, documents: &[Document], driver: &str) -> Result<(), FileError> {
    let of_kind = |plural: &'static str| documents.iter().filter(move |document| document.resource.plural == plural);
    for claim in of_kind("persistentvolumeclaims") {
        let wanted = class(&claim.object);
        if wanted.is_empty() || of_kind("persistentvolumes").any(|volume| class(&volume.object) == wanted) {
            continue;
        }
        let in_files = of_kind("storageclasses").find(|class| name(&class.object) == wanted);
        let found =
            in_files.map(|class| class.object.clone()).or_else(|| server.get("storageclasses", "", wanted).ok());
        let provisioner = found.as_ref().map(|class| text(class, "/provisioner"));
        let (what, next) = match provisioner {
            Some(provisioner) if provisioner == driver => continue,
            None => (
                format!("StorageClass {wanted:?} of claim {:?} does not exist", name(&claim.object)),
                "add the class to a file, correct its name, or leave the field out to get a class made for you"
                    .to_owned(),
            ),
            Some(provisioner) => (
                format!(
                    "StorageClass {wanted:?} belongs to provisioner {provisioner:?}, and the driver here is {driver:?}"
                ),
                format!("give --driver-name {provisioner}, or --driver with the address of that driver"),
            ),
        };
        return Err(FileError::Field {
            origin: claim.origin.clone(),
            field: "spec.storageClassName".to_owned(),
            what,
            next,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(content: &str) -> String {
        parse("a.yaml", content).map(|_| ()).expect_err("must be refused").to_string()
    }

    #[test]
    fn documents_count_without_empty_ones() {
        let content = "# only a comment\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n---\n\
                       apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: b}\n";
        let documents = parse("a.yaml", content).expect("valid");
        assert_eq!(documents.iter().map(|document| document.origin.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(documents[1].namespace, "default");
    }

    #[test]
    fn broken_yaml_is_told_with_its_line_in_the_file() {
        let text = error("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\nkind: [\n");
        assert!(text.starts_with("a.yaml, document 2, line "), "{text}");
    }

    #[test]
    fn missing_kind_names_the_field() {
        assert_eq!(
            error("apiVersion: v1\n"),
            "a.yaml, document 1: kind: missing; add it, for example kind: PersistentVolumeClaim"
        );
    }

    #[test]
    fn wrong_version_of_a_known_kind_tells_the_right_one() {
        let text = error("apiVersion: v1\nkind: StorageClass\nmetadata: {name: a}\n");
        assert!(text.ends_with("write apiVersion: storage.k8s.io/v1"), "{text}");
    }

    #[test]
    fn object_without_a_name_is_refused() {
        assert!(error("apiVersion: v1\nkind: Pod\n").starts_with("a.yaml, document 1: metadata.name: missing"));
    }
}
