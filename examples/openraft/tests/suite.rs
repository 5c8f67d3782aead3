//! openraft's own test suite on the log store. The state machine is the least that it asks for.

mod machine;

use machine::{Machine, TypeConfig};
use openraft::testing::{StoreBuilder, Suite};
use openraft::{StorageError, StorageIOError};
use tempfile::TempDir;
use vellum_openraft::LogStore;

/// A store in a directory of its own.
struct Builder;

impl StoreBuilder<TypeConfig, LogStore, Machine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, Machine), StorageError<u64>> {
        let open = || {
            let dir = TempDir::new()?;
            let store = LogStore::open(dir.path())?;
            Ok::<_, std::io::Error>((dir, store, Machine::default()))
        };
        Ok(open().map_err(|error| StorageIOError::write(&error))?)
    }
}

#[test]
fn openraft_accepts_the_store() {
    Suite::test_all(Builder).unwrap();
}
