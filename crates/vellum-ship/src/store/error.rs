//! Why a request failed, without anything secret.

use super::redact::redact;

/// What a caller may do about a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// Try again later: the network, a busy server, a timeout. The request may have been done.
    Transient,
    /// The credentials are missing, wrong or expired, or do not allow this.
    Denied,
    /// The bucket, the container or the directory does not exist.
    NoBucket,
    /// What has the name of an object is none, but a link, a pipe, a device or a directory.
    NotAnObject,
    /// What was given is no URL of a store.
    WrongUrl,
    /// Nothing of these: an answer that makes no sense, a full disk.
    Other,
}

/// A failed request. Its text holds no credentials: see `redact`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub struct StoreError {
    kind: StoreErrorKind,
    text: String,
}

impl StoreError {
    /// An error with this text, from which credentials are taken out.
    pub fn new(kind: StoreErrorKind, text: impl AsRef<str>) -> StoreError {
        StoreError { kind, text: redact(text.as_ref()) }
    }

    /// What may be done about it.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the same request may succeed later without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        self.kind == StoreErrorKind::Transient
    }
}
