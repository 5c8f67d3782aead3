//! Where objects are kept: the calls that shipping makes of a store, and the stores that can do it.
//!
//! One writing primitive: an object is created if no object has its key, and never changed.
//! Anything that is asked for can fail without saying whether it was done; see [`Store::create`].

mod answers;
mod directory;
mod error;
mod fault;
mod location;
mod memory;
mod objects;
mod open;
mod patience;
mod probe;
mod redact;

use std::ops::Range;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;

pub use error::{StoreError, StoreErrorKind};
pub use fault::{FaultStore, Faults};
pub use location::{Location, Service};
pub use memory::MemoryStore;
pub use open::{Environment, open, open_or_create, open_with};
pub use probe::{Probe, probe};

/// The largest object that is ever read: that of a merge, and room.
pub const MAX_OBJECT: u64 = 80 << 20;

fn too_large(key: &str, bytes: u64) -> StoreError {
    let text = format!("{key} has {bytes} bytes; no object of a log has more than {MAX_OBJECT}");
    StoreError::new(StoreErrorKind::Other, text)
}

/// The outcome of a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object was not there; it is now, durably.
    Created,
    /// The store says that the key is taken. Perhaps by this very request, if it was repeated on
    /// the way; perhaps not at all (409): the caller reads the object and compares.
    Exists,
}

/// The metadata of an object, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The key, below the store's prefix.
    pub key: String,
    /// The object's size in bytes.
    pub size: u64,
    /// When the object was made, by the clock of the store.
    pub modified: SystemTime,
}

/// Objects by key, below one prefix. Keys are relative: `g00000000/closed`.
#[async_trait]
pub trait Store: Send + Sync {
    /// Creates the object if no object has this key. After an error it may or may not have been
    /// created, and may still be created later: the caller reads the key and compares.
    async fn create(&self, key: &str, body: Bytes) -> Result<PutOutcome, StoreError>;

    /// The whole object; `None` if there is none.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError>;

    /// A range of the object, cut at its end; `None` if there is no object.
    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Option<Bytes>, StoreError>;

    /// The metadata of the object; `None` if there is no object.
    async fn head(&self, key: &str) -> Result<Option<Meta>, StoreError>;

    /// All objects whose key begins with `prefix`, in order of their keys, those behind `after`
    /// only. A hint: some stores list late.
    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError>;

    /// The names directly below `folder` (empty: the store's own prefix) under which there are
    /// objects, in order.
    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError>;

    /// Deletes the object; no error if there is none.
    async fn delete(&self, key: &str) -> Result<(), StoreError>;
}
