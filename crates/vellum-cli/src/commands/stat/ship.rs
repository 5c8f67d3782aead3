//! How a log is shipped, for people, as JSON and as facts.

use std::fmt::Write;
use std::time::SystemTime;

use serde::Serialize;
use vellum::Lsn;
use vellum::ship::{ShipState, ShipStatus};
use vellum_ship_figures::Figures;

use crate::table::bytes;

#[derive(Serialize)]
pub(super) struct JsonShip {
    status: &'static str,
    /// The last fault, and the store's number for it, such as an HTTP status.
    fault: Option<&'static str>,
    fault_number: Option<u16>,
    pid: Option<u32>,
    generation: u64,
    shipped: u64,
    /// Seconds since 1970; `null` where nothing was shipped.
    shipped_at: Option<u64>,
    lag_bytes: u64,
    /// From here on records are kept for the shipper.
    held_from: Option<u64>,
    /// First and last position of the range that was removed before it was shipped.
    gap: Option<(u64, u64)>,
    puts: u64,
    gets: u64,
    log_bytes: u64,
    sent_bytes: u64,
    retries: u64,
}

impl JsonShip {
    pub(super) fn new(state: &ShipState, figures: &Figures) -> JsonShip {
        JsonShip {
            status: state.status.as_str(),
            fault: state.fault.map(|(fault, _)| fault.as_str()),
            fault_number: state.fault.map(|(_, number)| number),
            pid: state.pid,
            generation: figures.generation,
            shipped: state.shipped.get(),
            shipped_at: shipped_at(figures),
            lag_bytes: state.lag_bytes,
            held_from: state.held_from.map(Lsn::get),
            gap: state.gap.map(|(from, to)| (from.get(), to.get())),
            puts: figures.puts,
            gets: figures.gets,
            log_bytes: figures.log_bytes,
            sent_bytes: figures.sent_bytes,
            retries: figures.retries,
        }
    }
}

/// When something was shipped last, in seconds since 1970.
pub(super) fn shipped_at(figures: &Figures) -> Option<u64> {
    Some(figures.shipped_at?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs())
}

/// One line about it, if there is something to tell.
pub(super) fn fact(state: &ShipState) -> Option<(&'static str, String)> {
    if !state.is_shipped() {
        return None;
    }
    let mut line = match (state.status, state.pid) {
        (ShipStatus::None, _) => "no process ships the log".into(),
        (status, Some(pid)) => format!("{} by process {pid}", status.as_str()),
        (status, None) => status.as_str().to_string(),
    };
    if let Some((fault, number)) = state.fault {
        let _ = write!(line, ", the store: {} ({number})", fault.as_str());
    }
    let _ = match state.shipped {
        Lsn::ZERO => write!(line, "; how far is not known since the last boot"),
        _ => write!(line, "; {} are durable and not shipped", bytes(state.lag_bytes)),
    };
    if let Some((from, to)) = state.gap {
        let _ = write!(line, "; {from} to {to} were removed before they were shipped");
    }
    Some(("shipping", line))
}
