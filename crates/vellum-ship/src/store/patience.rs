//! How long a request may take.

use std::time::Duration;

use super::{StoreError, StoreErrorKind};

/// The time that a request of any size may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The slowest link that is waited for, in bytes a second.
const SLOWEST: u64 = 256 << 10;

/// How long a request of so many bytes may take.
pub(super) fn patience(bytes: u64) -> Duration {
    PATIENCE + Duration::from_secs(bytes / SLOWEST)
}

/// Ends the request after the time that its size allows.
pub(super) async fn in_time<T>(
    bytes: u64,
    request: impl Future<Output = T>,
) -> Result<T, StoreError> {
    let limit = patience(bytes);
    tokio::time::timeout(limit, request).await.map_err(|_| {
        let text = format!("no answer within {} s", limit.as_secs());
        StoreError::new(StoreErrorKind::Transient, text)
    })
}
