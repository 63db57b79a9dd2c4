//! Requests about stored objects, once their path is known.

use super::answer::{self, Form};
use super::protobuf;
use super::query::Query;
use super::route::Target;
use super::service::Body;
use crate::sandbox::apiserver::ApiServer;
use crate::sandbox::apiserver::delete::Deleted;
use crate::sandbox::apiserver::faults::Call;
use crate::sandbox::apiserver::listing::{Page, list};
use crate::sandbox::apiserver::patch::PatchKind;
use crate::sandbox::apiserver::refusal::{Reason, Refusal};
use crate::sandbox::apiserver::selectors::Selection;
use crate::sandbox::apiserver::update::Part;
use crate::sandbox::apiserver::watching::Watch;
use crate::sandbox::apiserver::world::{Place, meta, set_field};
use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

/// A request about objects, read.
pub struct Asked<'a> {
    /// The server.
    pub server: &'a ApiServer,
    /// The objects.
    pub target: &'a Target,
    /// Verb and caller.
    pub call: &'a Call,
    /// The query.
    pub query: &'a Query,
    /// The form of the answer.
    pub form: Form,
    /// Content type of the body.
    pub content_type: &'a str,
    /// The body.
    pub body: &'a Bytes,
    /// How many revisions a list lags behind (a fault).
    pub stale_by: u64,
}

impl Asked<'_> {
    /// Carries the request out.
    pub fn carry_out(&self) -> Result<Response<Body>, Refusal> {
        match self.call.verb.as_str() {
            "get" => self.get(),
            "list" => self.list(),
            "watch" => self.watch(),
            "create" if self.target.subresource == "binding" => self.bind(),
            "create" => self.create(),
            "update" => self.update(),
            "patch" => self.patch(),
            "delete" => self.delete(),
            _ => self.delete_collection(),
        }
    }

    fn place(&self) -> Place {
        Place::new(self.target.resource, &self.target.namespace, &self.target.name)
    }

    fn part(&self) -> Part {
        match self.target.subresource.as_str() {
            "status" => Part::Status,
            "finalize" => Part::Finalize,
            _ => Part::Main,
        }
    }

    fn selection(&self) -> Result<Selection, Refusal> {
        let (labels, fields) = (self.query.text("labelSelector"), self.query.text("fieldSelector"));
        Ok(Selection::parse(self.target.resource, labels, fields)?.within(&self.target.namespace))
    }

    fn object(&self, code: u16, object: Value) -> Response<Body> {
        let now = self.server.world().clock.now();
        answer::object(code, self.target.resource, object, self.form, now)
    }

    fn get(&self) -> Result<Response<Body>, Refusal> {
        let object = self.server.world().read(&self.place())?;
        Ok(self.object(200, (*object).clone()))
    }

    fn list(&self) -> Result<Response<Body>, Refusal> {
        self.query.check_list()?;
        let (selection, options) = (self.selection()?, self.query.list_options(self.stale_by)?);
        let (page, now) = {
            let world = self.server.world();
            (list(&world.store, self.target.resource, &selection, &options)?, world.clock.now())
        };
        Ok(answer::list(self.target.resource, &page, self.form, now))
    }

    fn watch(&self) -> Result<Response<Body>, Refusal> {
        let options = self.query.watch_options(self.stale_by)?;
        let opened = Watch::open(self.server, self.target.resource, self.selection()?, &options, self.call.clone())?;
        let clock = self.server.world().clock.clone();
        Ok(answer::watch(self.target.resource, opened, self.form, move || clock.now()))
    }

    fn create(&self) -> Result<Response<Body>, Refusal> {
        let object = self.json()?;
        let created =
            self.server.world().create(self.target.resource, &self.target.namespace, object, self.query.dry_run())?;
        Ok(self.object(201, created))
    }

    fn update(&self) -> Result<Response<Body>, Refusal> {
        let updated = self.server.world().update(&self.place(), self.part(), self.json()?, self.query.dry_run())?;
        Ok(self.object(if updated.created { 201 } else { 200 }, updated.object))
    }

    fn patch(&self) -> Result<Response<Body>, Refusal> {
        let kind = PatchKind::of_content_type(self.content_type)?;
        let patch = self.parse()?;
        let patched = self.server.world().patch(&self.place(), self.part(), kind, &patch, self.query.dry_run())?;
        Ok(self.object(200, patched))
    }

    fn delete(&self) -> Result<Response<Body>, Refusal> {
        let body = if self.body.is_empty() { Value::Null } else { self.json()? };
        let options = self.query.delete_options(&body)?;
        let resource = self.target.resource;
        match self.server.world().delete(&self.place(), &options)? {
            Deleted::Gone(object) if !resource.returns_deleted => {
                let mut details =
                    json!({"name": self.target.name, "kind": resource.plural, "uid": meta(&object, "uid")});
                if !resource.group.is_empty() {
                    set_field(&mut details, "group", Some(json!(resource.group)));
                }
                Ok(answer::json(
                    200,
                    &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}),
                ))
            }
            Deleted::Gone(object) | Deleted::Waiting(object) => Ok(answer::json(200, &object)),
        }
    }

    fn delete_collection(&self) -> Result<Response<Body>, Refusal> {
        let body = if self.body.is_empty() { Value::Null } else { self.json()? };
        let (selection, options) = (self.selection()?, self.query.delete_options(&body)?);
        let (items, revision, now) = {
            let mut world = self.server.world();
            let items = world.delete_collection(self.target.resource, &selection, &options)?;
            (items, world.store.revision(), world.clock.now())
        };
        let items = items.into_iter().map(std::sync::Arc::new).collect();
        let page = Page { items, revision, token: None, remaining: None };
        Ok(answer::list(self.target.resource, &page, self.form, now))
    }

    /// A scheduler puts a pod on a node.
    fn bind(&self) -> Result<Response<Body>, Refusal> {
        let binding = self.json()?;
        let node = binding.pointer("/target/name").and_then(Value::as_str).unwrap_or_default();
        let place = self.place();
        let mut world = self.server.world();
        let pod = world.read(&place)?;
        let taken = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        if node.is_empty() {
            return Err(Refusal::bad_request("a binding names its target"));
        }
        if !taken.is_empty() {
            let why = format!("pod {} is already assigned to node \"{taken}\"", self.target.name);
            return Err(Refusal::conflict(place.resource, &self.target.name, &why));
        }
        let patch = json!({"spec": {"nodeName": node}});
        world.patch(&place, Part::Main, PatchKind::Merge, &patch, self.query.dry_run())?;
        Ok(answer::json(
            201,
            &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
        ))
    }

    fn json(&self) -> Result<Value, Refusal> {
        if let Some(object) = protobuf::decode(self.body) {
            return Ok(object);
        }
        let media = self.content_type.split(';').next().unwrap_or_default().trim();
        if !matches!(media, "" | "application/json" | "*/*") {
            let message = format!(
                "the body of the request was in an unknown format - accepted media types include: application/json \
                 (found {media})"
            );
            return Err(Refusal::plain(Reason::UnsupportedMediaType, message));
        }
        self.parse()
    }

    fn parse(&self) -> Result<Value, Refusal> {
        serde_json::from_slice(self.body).map_err(|error| {
            let kind = self.target.resource.kind;
            Refusal::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {error}"))
        })
    }
}
