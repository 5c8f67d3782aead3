//! From a URL to its store, with the options of the environment.

use std::ffi::OsString;
use std::str::FromStr;
use std::sync::{Arc, Once};
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};

use super::directory::Directory;
use super::fault::FaultStore;
use super::location::{Location, Service};
use super::objects::Objects;
use super::patience::patience;
use super::{MAX_OBJECT, Store, StoreError, StoreErrorKind};

/// Variables and their values.
pub type Environment = [(String, String)];

/// The variables of this process, those that are text.
fn environment() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Opens the store at a URL, with the options of the environment. A directory has to exist; a
/// bucket is not asked for yet.
pub fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    open_with(url, &environment())
}

/// As [`open`], with these options and not those of the environment.
pub fn open_with(url: &str, environment: &Environment) -> Result<Arc<dyn Store>, StoreError> {
    open_at(&Location::parse(url)?, environment)
}

/// As [`open`], but the directory of a `file://` URL is made if its parent is there.
pub fn open_or_create(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    let location = Location::parse(url)?;
    if let Location::Directory(path) = &location {
        Directory::make(path)?;
    }
    open_at(&location, &environment())
}

fn open_at(location: &Location, environment: &Environment) -> Result<Arc<dyn Store>, StoreError> {
    let store: Arc<dyn Store> = match location {
        Location::Directory(path) => Arc::new(Directory::open(path)?),
        Location::Bucket { service, bucket, prefix } => {
            let store = bucket_store(*service, bucket, environment)?;
            let word = if *service == Service::Azure { "container" } else { "bucket" };
            Arc::new(Objects::new(store, format!("{word} {bucket}"), prefix.clone()))
        }
    };
    FaultStore::from_environment(store, environment)
}

/// Anything wrong with the options, before a request is made.
fn unusable(error: object_store::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Other, error.to_string())
}

fn bucket_store(
    service: Service,
    bucket: &str,
    environment: &Environment,
) -> Result<Box<dyn ObjectStore>, StoreError> {
    install_crypto();
    match service {
        Service::S3 => s3(bucket, environment),
        Service::Gcs => gcs(bucket, environment),
        Service::Azure => azure(bucket, environment),
    }
}

/// TLS by `ring`, in the whole process.
fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error: the program has chosen another one before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Repeats a little, for a dropped connection. The caller repeats for longer, and reports it.
fn retries() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(5),
        base: 2.0,
    };
    RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(30), backoff }
}

/// The options of one service: those of the environment whose names the service knows, then ours.
/// The timeout of the client is that of the largest object; `Objects` has a shorter one for others.
fn options<K: FromStr>(
    environment: &Environment,
    begin: &str,
    client: impl Fn(ClientConfigKey) -> K,
) -> Vec<(K, String)> {
    let known = environment.iter().filter(|(name, _)| name.starts_with(begin));
    let known = known
        .filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value.clone())));
    let timeout = format!("{} seconds", patience(MAX_OBJECT).as_secs());
    known
        .chain([
            (client(ClientConfigKey::Timeout), timeout),
            (client(ClientConfigKey::ConnectTimeout), "10 seconds".to_string()),
        ])
        .collect()
}

fn s3(bucket: &str, environment: &Environment) -> Result<Box<dyn ObjectStore>, StoreError> {
    check_plain_http(environment)?;
    let options = options(environment, "AWS_", AmazonS3ConfigKey::Client);
    let builder = options
        .into_iter()
        .fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(key, value))
        .with_bucket_name(bucket)
        .with_retry(retries())
        // Whatever AWS_CONDITIONAL_PUT says: nothing is safe without it.
        .with_conditional_put(S3ConditionalPut::ETagMatch);
    Ok(Box::new(builder.build().map_err(unusable)?))
}

/// Says what is missing before the HTTP library says it in its own words.
fn check_plain_http(environment: &Environment) -> Result<(), StoreError> {
    let value = |name: &str| environment.iter().find(|(of, _)| of == name).map(|(_, value)| value);
    let names = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
    let endpoint = names.iter().find_map(|name| value(name));
    let is_plain = endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"));
    let is_allowed = value("AWS_ALLOW_HTTP").is_some_and(|value| value == "true" || value == "1");
    if is_plain && !is_allowed {
        let text = "the endpoint is plain http, which anybody on the way can read and change; \
                    use https, or set AWS_ALLOW_HTTP=true for a test";
        return Err(StoreError::new(StoreErrorKind::Other, text));
    }
    Ok(())
}

fn gcs(bucket: &str, environment: &Environment) -> Result<Box<dyn ObjectStore>, StoreError> {
    let builder = options(environment, "GOOGLE_", GoogleConfigKey::Client)
        .into_iter()
        .fold(GoogleCloudStorageBuilder::new(), |builder, (key, value)| {
            builder.with_config(key, value)
        })
        .with_bucket_name(bucket)
        .with_retry(retries());
    Ok(Box::new(builder.build().map_err(unusable)?))
}

fn azure(container: &str, environment: &Environment) -> Result<Box<dyn ObjectStore>, StoreError> {
    let builder = options(environment, "AZURE_", AzureConfigKey::Client)
        .into_iter()
        .fold(MicrosoftAzureBuilder::new(), |builder, (key, value)| builder.with_config(key, value))
        .with_container_name(container)
        .with_retry(retries());
    let store = builder.build().map_err(|error| {
        let text = format!("{error}; the account is read from AZURE_STORAGE_ACCOUNT_NAME");
        StoreError::new(StoreErrorKind::Other, text)
    })?;
    Ok(Box::new(store))
}
