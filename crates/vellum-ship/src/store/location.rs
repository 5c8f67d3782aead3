//! The parts of a URL: the service, the bucket and the prefix.

use std::path::PathBuf;

use url::Url;

use super::{StoreError, StoreErrorKind};

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory: `file:///absolute/path`.
    Directory(PathBuf),
    /// `s3://`, `gs://` or `az://`, the bucket or container, and the prefix without slashes around
    /// it.
    Bucket {
        /// Which service.
        service: Service,
        /// The bucket or container.
        bucket: String,
        /// The start of all keys; perhaps empty.
        prefix: String,
    },
}

/// A service that keeps objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Amazon S3, and other stores with its protocol.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
}

/// The forms that are taken; the end of every error about a URL.
const FORMS: &str =
    "give s3://BUCKET/PREFIX, az://CONTAINER/PREFIX, gs://BUCKET/PREFIX or file:///DIRECTORY";

impl Location {
    /// Reads a URL. The errors explain the form of a URL, and never repeat a password in it.
    pub fn parse(text: &str) -> Result<Location, StoreError> {
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(refused(format!("{text} is a path and not a URL: {}", as_file_url(text))));
        };
        if !rest.starts_with("//") {
            return Err(refused(format!("{scheme}: needs two slashes: {FORMS}")));
        }
        let url = Url::parse(text).map_err(|error| refused(format!("{error}: {FORMS}")))?;
        check_plain(&url)?;
        match scheme {
            "file" => directory(&url),
            "s3" | "s3a" => bucket(Service::S3, &url),
            "gs" => bucket(Service::Gcs, &url),
            "az" | "abfs" | "azure" => bucket(Service::Azure, &url),
            "http" | "https" => Err(refused(format!(
                "{scheme}:// names no bucket: {FORMS}, and the server in AWS_ENDPOINT_URL"
            ))),
            "kafka" => Err(refused(
                "a topic of Kafka can be shipped to, and is read by a consumer of Kafka".into(),
            )),
            _ => Err(refused(format!("{scheme}:// is not known: {FORMS}"))),
        }
    }
}

fn as_file_url(path: &str) -> String {
    match path.strip_prefix('/') {
        Some(_) => format!("give file://{path}"),
        None => FORMS.to_string(),
    }
}

/// Credentials belong into the environment: a URL is seen in lists of processes and in state files.
fn check_plain(url: &Url) -> Result<(), StoreError> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(
            "the URL holds credentials; put them into the environment".to_string(),
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused(
            "the URL holds a `?` or a `#`; options come from the environment".into(),
        ));
    }
    Ok(())
}

fn directory(url: &Url) -> Result<Location, StoreError> {
    if url.host().is_some() {
        return Err(refused("a directory needs three slashes: file:///absolute/path".to_string()));
    }
    let path = url.to_file_path().map_err(|()| refused("this is no path of a file".to_string()))?;
    Ok(Location::Directory(path))
}

fn bucket(service: Service, url: &Url) -> Result<Location, StoreError> {
    let bucket = url.host_str().unwrap_or_default().to_string();
    if bucket.is_empty() {
        return Err(refused(format!("the bucket is missing: {FORMS}")));
    }
    let parts: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    if parts.iter().any(|part| !is_plain_name(part)) {
        return Err(refused(
            "a prefix has letters, digits and -_.=~+@, no spaces, no `..`".to_string(),
        ));
    }
    Ok(Location::Bucket { service, bucket, prefix: parts.join("/") })
}

/// Whether the name is the same in a URL, in a key and in the listing of the store.
pub(super) fn is_plain_name(part: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.=+@~".contains(c);
    !part.is_empty() && part != "." && part != ".." && part.chars().all(is_plain)
}

fn refused(text: String) -> StoreError {
    StoreError::new(StoreErrorKind::WrongUrl, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(url: &str) -> String {
        Location::parse(url).unwrap_err().to_string()
    }

    #[test]
    fn urls_of_all_services_are_read() {
        let s3 = Location::parse("s3://logs/prod/app/").unwrap();
        let prefix = "prod/app".to_string();
        let bucket = "logs".to_string();
        assert_eq!(s3, Location::Bucket { service: Service::S3, bucket, prefix });
        let Location::Bucket { prefix, .. } = Location::parse("az://container").unwrap() else {
            panic!("a bucket")
        };
        assert_eq!(prefix, "");
        let directory = Location::parse("file:///back%20up").unwrap();
        assert_eq!(directory, Location::Directory(PathBuf::from("/back up")));
    }

    #[test]
    fn errors_say_what_to_write() {
        assert!(error("/backup/app").contains("give file:///backup/app"));
        assert!(error("backup").contains("s3://BUCKET/PREFIX"));
        assert!(error("s3:/bucket").contains("two slashes"));
        assert!(error("s3:///prefix").contains("bucket"), "{}", error("s3:///prefix"));
        assert!(error("file://backup").contains("three slashes"));
        assert!(error("ftp://host/x").contains("ftp:// is not known"));
        assert!(error("http://host/x").contains("AWS_ENDPOINT_URL"));
    }

    #[test]
    fn credentials_in_a_url_are_refused_and_not_repeated() {
        for url in ["s3://key:hunter2secret@bucket/p", "az://c/p?sig=hunter2secret"] {
            let error = error(url);
            assert!(error.contains("environment") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn names_that_a_store_would_rewrite_are_refused() {
        for url in ["s3://b/a%2fb", "s3://b/a b", "s3://b/ä"] {
            assert!(error(url).contains("letters"), "{url}");
        }
    }
}
