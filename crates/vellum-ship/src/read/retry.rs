//! Requests that may succeed later are repeated for a while.

use std::time::Duration;

use vellum::internal::escaped;

use super::ReadError;
use crate::store::{StoreError, StoreErrorKind};

/// Tries of one request; the waits between them are some two minutes together. The store repeats
/// each one a few times by itself.
const TRIES: u32 = 8;
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Repeats a request until it succeeds, fails for good, or has failed too often.
pub(super) async fn patiently<T, F>(
    key: &str,
    mut request: impl FnMut() -> F,
) -> Result<T, ReadError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut wait = FIRST_WAIT;
    for _ in 1..TRIES {
        match request().await {
            Err(error) if error.is_transient() => tokio::time::sleep(wait).await,
            done => return done.map_err(|error| failed(key, error)),
        }
        wait = (wait * 2).min(LONGEST_WAIT);
    }
    request().await.map_err(|error| failed(key, error))
}

fn failed(key: &str, error: StoreError) -> ReadError {
    // Of the bucket as a whole, or of everything below the URL.
    let is_of_all = key.is_empty() || error.kind() == StoreErrorKind::NoBucket;
    let key = if is_of_all { String::new() } else { format!("{}: ", escaped(key)) };
    ReadError::Store { key, error }
}
