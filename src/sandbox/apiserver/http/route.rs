//! Paths.

use crate::sandbox::apiserver::resources::{Resource, by_path};
use http::Method;

/// What a path leads to.
#[derive(Debug)]
pub enum Route {
    /// Stored objects.
    Objects(Target),
    /// A document about the server.
    Document(Document),
    /// A question that is answered and not stored; its kind.
    Review(&'static str),
    /// A group and version that is served, but not this kind or subresource.
    UnknownKind,
    /// Nothing.
    Nowhere,
}

/// Documents about the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// `/api`
    Core,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`
    Kinds(String, String),
    /// `/version`
    Version,
    /// `/healthz`, `/livez`, `/readyz` and what is below them
    Health,
    /// `/openapi/v3`
    OpenApi,
    /// `/openapi/v3/...`
    OpenApiOf(String, String),
}

/// Objects in a path.
#[derive(Debug)]
pub struct Target {
    /// Their kind.
    pub resource: &'static Resource,
    /// Their namespace, or empty.
    pub namespace: String,
    /// The name, or empty.
    pub name: String,
    /// The subresource, or empty.
    pub subresource: String,
}

impl Target {
    /// The verb of a request to here, or nothing if the method makes no sense.
    pub fn verb(&self, method: &Method, watch: bool) -> Option<&'static str> {
        let everywhere = self.resource.namespaced && self.namespace.is_empty();
        let named = !self.name.is_empty();
        match *method {
            Method::GET if named => Some("get"),
            Method::GET if watch => Some("watch"),
            Method::GET => Some("list"),
            Method::POST if self.subresource == "binding" => Some("create"),
            _ if everywhere => None,
            Method::POST if !named => Some("create"),
            Method::PUT if named => Some("update"),
            Method::PATCH if named && self.subresource != "finalize" => Some("patch"),
            Method::DELETE if named && self.subresource.is_empty() => Some("delete"),
            Method::DELETE if !named => Some("deletecollection"),
            _ => None,
        }
    }
}

/// Finds out what a path leads to.
pub fn route(path: &str) -> Route {
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["api"] => Route::Document(Document::Core),
        ["apis"] => Route::Document(Document::Groups),
        ["apis", group] => Route::Document(Document::Group((*group).to_owned())),
        ["api", version] => Route::Document(Document::Kinds(String::new(), (*version).to_owned())),
        ["apis", group, version] => Route::Document(Document::Kinds((*group).to_owned(), (*version).to_owned())),
        ["api", version, rest @ ..] => objects("", version, rest),
        ["apis", group, version, rest @ ..] => objects(group, version, rest),
        ["version"] => Route::Document(Document::Version),
        ["healthz" | "livez" | "readyz", ..] => Route::Document(Document::Health),
        ["openapi", "v3"] => Route::Document(Document::OpenApi),
        ["openapi", "v3", "api", version] => Route::Document(Document::OpenApiOf(String::new(), (*version).to_owned())),
        ["openapi", "v3", "apis", group, version] => {
            Route::Document(Document::OpenApiOf((*group).to_owned(), (*version).to_owned()))
        }
        _ => Route::Nowhere,
    }
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Route {
    if let ([plural], "v1") = (rest, version)
        && let Some(kind) = review(group, plural)
    {
        return Route::Review(kind);
    }
    let (namespace, rest) = match rest {
        // A namespace is itself an object: /namespaces/<name>[/status].
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        rest => ("", rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, subresource] => (*plural, *name, *subresource),
        _ => return Route::UnknownKind,
    };
    let Some(resource) = by_path(group, version, plural) else { return Route::UnknownKind };
    let placed = resource.namespaced != namespace.is_empty() || (name.is_empty() && namespace.is_empty());
    if !placed || (!subresource.is_empty() && !resource.has_subresource(subresource)) {
        return Route::UnknownKind;
    }
    let text = |part: &str| part.to_owned();
    Route::Objects(Target { resource, namespace: text(namespace), name: text(name), subresource: text(subresource) })
}

fn review(group: &str, plural: &str) -> Option<&'static str> {
    let known = crate::sandbox::apiserver::discovery::REVIEWS;
    known.into_iter().find(|(of, name, _)| *of == group && *name == plural).map(|(_, _, kind)| kind)
}

/// Undoes percent-encoding; what is no encoding stays.
fn decode(part: &str) -> String {
    let bytes = part.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *byte == b'%');
        decoded.push(code.unwrap_or(*byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str) -> String {
        match route(path) {
            Route::Objects(it) => format!("{} {} {} {}", it.resource.plural, it.namespace, it.name, it.subresource),
            Route::Document(document) => format!("{document:?}"),
            Route::Review(kind) => kind.to_owned(),
            Route::UnknownKind => "unknown".to_owned(),
            Route::Nowhere => "nowhere".to_owned(),
        }
    }

    #[test]
    fn paths_lead_where_the_real_server_leads() {
        let cases = [
            ("/api/v1/namespaces", "namespaces   "),
            ("/api/v1/namespaces/a", "namespaces  a "),
            ("/api/v1/namespaces/a/status", "namespaces  a status"),
            ("/api/v1/namespaces/a/finalize", "namespaces  a finalize"),
            ("/api/v1/namespaces/a/secrets", "secrets a  "),
            ("/api/v1/namespaces/a/secrets/x%2Ey", "secrets a x.y "),
            ("/api/v1/secrets", "secrets   "),
            ("/api/v1/secrets/x", "unknown"),
            ("/api/v1/persistentvolumes/x/status", "persistentvolumes  x status"),
            ("/apis/storage.k8s.io/v1/storageclasses/x/status", "unknown"),
            ("/apis/storage.k8s.io/v2/storageclasses", "unknown"),
            ("/apis/storage.k8s.io", "Group(\"storage.k8s.io\")"),
            ("/readyz/ping", "Health"),
            ("/openapi/v3/api/v1", "OpenApiOf(\"\", \"v1\")"),
            ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "SelfSubjectAccessReview"),
            ("/metrics", "nowhere"),
        ];
        for (path, wanted) in cases {
            assert_eq!(told(path), wanted, "{path}");
        }
    }
}
