//! Errors of stores: their text, and the secrets that must not be in it.

use vellum_ship::store::{self, StoreErrorKind};

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[test]
fn plain_http_has_to_be_asked_for() {
    let endpoint = ("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    let error = store::open_with("s3://bucket/p", &variables(&[endpoint])).err().unwrap();
    assert!(error.to_string().contains("AWS_ALLOW_HTTP=true"), "{error}");
    let allowed = variables(&[endpoint, ("AWS_ALLOW_HTTP", "true")]);
    assert!(store::open_with("s3://bucket/p", &allowed).is_ok());
}

#[test]
fn wrong_faults_are_refused() {
    let error = store::open_with("file:///tmp", &variables(&[("VELLUM_SHIP_FAULTS", "x")]));
    assert!(error.err().unwrap().to_string().contains("seed:N"));
}

#[test]
fn azure_without_an_account_says_which_variable_is_missing() {
    let error = store::open_with("az://container/p", &[]).err().unwrap();
    assert!(error.to_string().contains("AZURE_STORAGE_ACCOUNT_NAME"), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_transient() {
    let nobody = variables(&[
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "not-a-secret-at-all"),
    ]);
    let error = store::open_with("s3://bucket/p", &nobody).unwrap().get("log").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Transient, "{error}");
}
