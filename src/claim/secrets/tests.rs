//! What users read when a template is wrong: the class parameter, the token and what may be used instead.

use super::*;

fn text(name: &str, namespace: &str) -> String {
    let parameters = BTreeMap::from([
        ("csi.storage.k8s.io/secret-name".to_owned(), name.to_owned()),
        ("csi.storage.k8s.io/secret-namespace".to_owned(), namespace.to_owned()),
    ]);
    let claim = TemplateClaim { namespace: "ns", name: "data", annotations: None };
    resolve(Role::NodeStage, &parameters, "pvc-1", Some(claim)).unwrap_err().to_string()
}

#[test]
fn unknown_tokens_are_named_with_the_parameter_and_the_known_ones() {
    assert_eq!(
        text("s", "${pvc.name}"),
        "class parameter csi.storage.k8s.io/secret-namespace = \"${pvc.name}\" uses the token \"pvc.name\", unknown here; \
         available: ${pv.name}, ${pvc.namespace}"
    );
    assert!(text("$b-${a}", "n").contains("uses the tokens \"a\", \"b\", unknown here"));
}

#[test]
fn result_that_is_no_name_is_shown_with_its_template() {
    assert_eq!(
        text("${pvc.name}_", "n"),
        "class parameter csi.storage.k8s.io/secret-name = \"${pvc.name}_\" gives the secret name \"data_\", which is no valid \
         one; use lower-case letters, digits and dashes"
    );
}
