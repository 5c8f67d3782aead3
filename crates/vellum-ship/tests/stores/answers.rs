//! What servers of each service refuse with, and what that means, by a server that only refuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use vellum_ship::store::{self, PutOutcome, Store, StoreErrorKind};

use StoreErrorKind::{Denied, NoBucket, Other, Transient};

/// Status and code of an answer, and what it means to a read.
type Answer = (u16, &'static str, StoreErrorKind);

const OF_S3: [Answer; 12] = [
    (400, "ExpiredToken", Denied),
    (400, "InvalidToken", Denied),
    (400, "TokenRefreshRequired", Denied),
    (400, "RequestTimeout", Transient),
    (403, "RequestTimeTooSkewed", Denied),
    (404, "NoSuchBucket", NoBucket),
    (409, "OperationAborted", Transient),
    (503, "SlowDown", Transient),
    (400, "AuthorizationHeaderMalformed", Other),
    (400, "IllegalLocationConstraintException", Other),
    (405, "MethodNotAllowed", Other),
    (501, "NotImplemented", Other),
];

const OF_GOOGLE: [Answer; 10] = [
    (400, "ExpiredToken", Denied),
    (401, "AuthenticationRequired", Denied),
    (403, "AccessDenied", Denied),
    (403, "UserProjectAccountProblem", Denied),
    (404, "NoSuchBucket", NoBucket),
    (429, "SlowDown", Transient),
    (500, "InternalError", Transient),
    (503, "ServiceUnavailable", Transient),
    (400, "InvalidBucketName", Other),
    (405, "MethodNotAllowed", Other),
];

const OF_AZURE: [Answer; 14] = [
    (400, "InvalidAuthenticationInfo", Denied),
    (401, "NoAuthenticationInformation", Denied),
    (403, "AuthenticationFailed", Denied),
    (403, "AuthorizationPermissionMismatch", Denied),
    (403, "AccountIsDisabled", Denied),
    (404, "ContainerNotFound", NoBucket),
    (409, "ContainerBeingDeleted", Transient),
    (409, "AccountBeingCreated", Transient),
    (500, "InternalError", Transient),
    (500, "OperationTimedOut", Transient),
    (503, "ServerBusy", Transient),
    (400, "InvalidResourceName", Other),
    (400, "UnsupportedHeader", Other),
    (405, "UnsupportedHttpVerb", Other),
];

/// A server that refuses every request in the same way.
#[derive(Clone)]
struct Refusing {
    answer: Arc<Mutex<(u16, &'static str)>>,
    port: u16,
}

impl Refusing {
    fn start() -> Refusing {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Refusing { answer: Arc::default(), port };
        let own = server.clone();
        // It ends with the test.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let answer = *own.answer.lock().unwrap();
                // A client that is gone needs no answer.
                let _ = refuse(stream.unwrap(), answer);
            }
        });
        server
    }
}

/// Reads one request, and answers it as all three services do, with a document of XML.
fn refuse(stream: TcpStream, (status, code): (u16, &str)) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line)? > 2 {
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Error><Code>{code}</Code>\
         <Message>by the test</Message></Error>"
    );
    write!(
        reader.get_mut(),
        "HTTP/1.1 {status} Refused\r\ncontent-length: {}\r\nx-ms-error-code: {code}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}

fn open(url: &str, pairs: &[(&str, &str)]) -> Arc<dyn Store> {
    let text = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
    store::open_with(url, &pairs.iter().map(text).collect::<Vec<_>>()).unwrap()
}

/// Checks what each answer means to a read, a list and a create.
async fn check(server: &Refusing, store: Arc<dyn Store>, answers: &[Answer]) {
    for (status, code, kind) in answers.iter().copied() {
        *server.answer.lock().unwrap() = (status, code);
        let error = store.get("log").await.unwrap_err();
        assert_eq!(error.kind(), kind, "{status} {code}: {error}");
        assert!(!error.to_string().contains('<'), "{status} {code}: {error}");
        let error = store.list("", None).await.unwrap_err();
        assert_eq!(error.kind(), kind, "list: {status} {code}: {error}");
        match store.create("log", vec![1].into()).await {
            // The shipper reads the object then, and is answered as above.
            Ok(outcome) => {
                assert_eq!((outcome, status), (PutOutcome::Exists, 409), "{status} {code}");
            }
            Err(error) => assert_eq!(error.kind(), kind, "create: {status} {code}: {error}"),
        }
    }
    // What is not there is no error.
    *server.answer.lock().unwrap() = (404, "NoSuchKey");
    assert!(store.get("log").await.unwrap().is_none());
    *server.answer.lock().unwrap() = (412, "ConditionNotMet");
    assert_eq!(store.create("log", vec![1].into()).await.unwrap(), PutOutcome::Exists);
}

#[tokio::test]
async fn answers_of_s3_mean_what_the_page_says() {
    let server = Refusing::start();
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let store = open(
        "s3://bucket/prefix",
        &[
            ("AWS_ENDPOINT_URL", &endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "user"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ],
    );
    check(&server, store, &OF_S3).await;
}

#[tokio::test]
async fn answers_of_google_mean_what_the_page_says() {
    let server = Refusing::start();
    let account = format!(
        "{{\"gcs_base_url\": \"http://127.0.0.1:{}\", \"disable_oauth\": true, \
         \"client_email\": \"\", \"private_key\": \"\", \"private_key_id\": \"\"}}",
        server.port
    );
    let store = open(
        "gs://bucket/prefix",
        &[("GOOGLE_SERVICE_ACCOUNT_KEY", &account), ("GOOGLE_ALLOW_HTTP", "true")],
    );
    check(&server, store, &OF_GOOGLE).await;
}

#[tokio::test]
async fn answers_of_azure_mean_what_the_page_says() {
    let server = Refusing::start();
    let endpoint = format!("http://127.0.0.1:{}/account", server.port);
    let store = open(
        "az://container/prefix",
        &[
            ("AZURE_STORAGE_ENDPOINT", &endpoint),
            ("AZURE_ALLOW_HTTP", "true"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
            ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0"),
        ],
    );
    check(&server, store, &OF_AZURE).await;
}
