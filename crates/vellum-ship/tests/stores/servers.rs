//! The contract of stores on real servers, and their errors.

use std::path::Path;
use std::process::Command;

use futures_util::future::join_all;
use vellum_ship::store::{self, PutOutcome, StoreErrorKind};

use crate::contract;
use crate::server::{SECRET, start, versitygw};

/// Runs a program of Python to its end, for requests to a server that a store does not make.
fn python(program: &str, arguments: &[&str]) {
    let ran = Command::new("python3").arg("-c").arg(program).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[tokio::test]
async fn versitygw_keeps_the_contract() {
    let Some(server) = versitygw() else { return };
    contract::check(server.s3("s3://bucket/some/prefix", SECRET).as_ref()).await;
}

/// Versions before 1.8 let several win: they looked, and then wrote.
#[tokio::test]
async fn one_of_thirty_two_wins_at_versitygw() {
    let Some(server) = versitygw() else { return };
    let store = server.s3("s3://bucket", SECRET);
    for round in 0..8 {
        let key = format!("race/{round}");
        let creates = (0..32_u8).map(|writer| store.create(&key, vec![writer; 4096].into()));
        let outcomes = join_all(creates).await;
        let winners = outcomes.iter().filter(|outcome| matches!(outcome, Ok(PutOutcome::Created)));
        assert_eq!(winners.count(), 1, "{outcomes:?}");
    }
}

#[tokio::test]
async fn versitygw_says_what_is_wrong_and_nothing_secret() {
    let Some(server) = versitygw() else { return };
    let error = server.s3("s3://bucket", "some-wrong-secret").get("log").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
    assert!(!error.to_string().contains("some-wrong-secret"), "{error}");
    let error = server.s3("s3://no-such-bucket", SECRET).get("log").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NoBucket, "{error}");
}

#[tokio::test]
#[ignore = "make test-ship-servers installs the server"]
async fn moto_keeps_the_contract() {
    let serve = |port: u16, _: &Path| {
        ["-H", "127.0.0.1", "-p", &port.to_string()].map(String::from).to_vec()
    };
    let Some(server) = start("venv-ship/bin/moto_server", serve) else { return };
    let bucket = format!("http://127.0.0.1:{}/bucket", server.port);
    let create = "import sys, urllib.request as r; \
                  r.urlopen(r.Request(sys.argv[1], method='PUT'), timeout=60)";
    python(create, &[&bucket]);
    contract::check(server.s3("s3://bucket/prefix", SECRET).as_ref()).await;
}

/// The key that the emulator of Azure has in every installation.
const AZURITE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Makes a container; `object_store` cannot.
const CREATE_CONTAINER: &str = r#"
import sys, hmac, hashlib, base64, email.utils, urllib.request as r
port, key = sys.argv[1:]
date = email.utils.formatdate(usegmt=True)
headers = f"x-ms-date:{date}\nx-ms-version:2021-08-06\n"
resource = "/devstoreaccount1/devstoreaccount1/container\nrestype:container"
text = "PUT" + "\n" * 12 + headers + resource
sign = base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest())
url = f"http://127.0.0.1:{port}/devstoreaccount1/container?restype=container"
r.urlopen(r.Request(url, method="PUT", headers={
    "x-ms-date": date, "x-ms-version": "2021-08-06", "Content-Length": "0",
    "Authorization": "SharedKey devstoreaccount1:" + sign.decode()}), timeout=60)
"#;

#[tokio::test]
#[ignore = "make test-ship-servers installs the server"]
async fn azurite_keeps_the_contract() {
    let serve = |port: u16, directory: &Path| {
        let location = directory.display().to_string();
        let words = ["--blobPort", &port.to_string(), "--location", &location, "--silent"];
        [words.map(String::from).to_vec(), vec!["--skipApiVersionCheck".into()]].concat()
    };
    let Some(server) = start("azurite/node_modules/.bin/azurite-blob", serve) else { return };
    python(CREATE_CONTAINER, &[&server.port.to_string(), AZURITE_KEY]);
    let endpoint = format!("http://127.0.0.1:{}/devstoreaccount1", server.port);
    let pairs = [
        ("AZURE_STORAGE_ENDPOINT", endpoint.as_str()),
        ("AZURE_ALLOW_HTTP", "true"),
        ("AZURE_STORAGE_ACCOUNT_NAME", "devstoreaccount1"),
        ("AZURE_STORAGE_ACCOUNT_KEY", AZURITE_KEY),
    ];
    let environment = pairs.map(|(name, value)| (name.to_string(), value.to_string()));
    let store = store::open_with("az://container/prefix", &environment).unwrap();
    contract::check(store.as_ref()).await;
}
