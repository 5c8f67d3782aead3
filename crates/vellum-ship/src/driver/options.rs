//! The choices for shipping.

use std::time::Duration;

/// The choices of a user.
#[derive(Clone, Debug)]
pub struct ShipOptions {
    /// The store, without credentials.
    pub url: String,
    /// Ship what is durable now, and end.
    pub once: bool,
    /// How often a chunk is made of new records.
    pub interval: Duration,
    /// How soon after another one a chunk is made if a process waits for it.
    pub min_interval: Duration,
    /// Begin a generation, even if another shipper has the log.
    pub take_over: bool,
    /// The most bytes that the log keeps because they are not shipped; absent: all.
    pub max_unshipped: Option<u64>,
    /// Objects in flight.
    pub in_flight: usize,
    /// Hears that the store takes no requests, and why: at first, and then at growing intervals.
    pub note: fn(&str),
}
