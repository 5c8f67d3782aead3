//! Why a request failed, without anything secret.

use super::redact::redact;

/// The kinds of failed requests, by the remedy of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// Try again later: the network, a busy server, a timeout. The request may have been done.
    Transient,
    /// The credentials are missing, wrong or expired, or do not allow this.
    Denied,
    /// The bucket, the container or the directory does not exist.
    NoBucket,
    /// A link, a pipe, a device or a directory has the name of an object.
    NotAnObject,
    /// The text is no URL of a store.
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

    /// The remedy of the caller.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Whether the same request may succeed later by itself.
    pub fn is_transient(&self) -> bool {
        self.kind == StoreErrorKind::Transient
    }
}
