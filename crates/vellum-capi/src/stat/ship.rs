//! How shipping to another machine goes.

use std::ffi::c_int;
use std::time::SystemTime;

use vellum::Lsn;
use vellum::ship::{ShipState, ShipStatus};
use vellum_ship_figures::Figures;

use crate::boundary::{guard, required};
use crate::growing::{Growing, Place};
use crate::stat::vellum_stat;
use crate::status::vellum_status::VELLUM_OK;

/// The state of the shipper of a log. Others may be added.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_ship_status {
    /// No process ships the log.
    VELLUM_SHIP_NONE = 0,
    /// Durable records are shipped as they come.
    VELLUM_SHIP_RUNNING = 1,
    /// The store cannot be used at this moment; it is tried again.
    VELLUM_SHIP_RETRYING = 2,
    /// Another machine or another copy of the log has taken over. Nothing more is shipped.
    VELLUM_SHIP_FENCED = 3,
    /// The store holds something else than this log at the same positions. Nothing more is shipped.
    VELLUM_SHIP_DIVERGED = 4,
    /// Shipping runs, and records were removed here before they were shipped: gap_from, gap_to.
    VELLUM_SHIP_GAP = 5,
}

/// How shipping goes. Counters count since the log was shipped first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct vellum_ship {
    /// sizeof(vellum_ship), set by the caller.
    pub struct_size: usize,
    /// A vellum_ship_status.
    pub status: u32,
    /// The process that ships, where it can be seen; otherwise 0.
    pub pid: u32,
    /// The last fault: 1 no answer, 2 refused, 3 there is no such place, 4 too many requests, 5
    /// another failure of the store, 6 what is read here; 0 where nothing did.
    pub fault: u32,
    /// A number of the store's for it, such as an HTTP status, or 0.
    pub fault_code: u32,
    /// Number of the generation that is shipped to.
    pub generation: u64,
    /// End of the shipped records; 0 where no shipper has reported it since the last boot.
    pub shipped: u64,
    /// When something was shipped last, in seconds since 1970; 0 where nothing was.
    pub shipped_at_s: u64,
    /// Bytes that are durable and not shipped, where `shipped` is known.
    pub lag_bytes: u64,
    /// From here on the log keeps records for the shipper; UINT64_MAX if it keeps none.
    pub held_from: u64,
    /// The newest stretch that was removed here before it was shipped; 0 and 0 for none.
    pub gap_from: u64,
    /// Its end.
    pub gap_to: u64,
    /// Requests that make an object.
    pub puts: u64,
    /// All other requests.
    pub gets: u64,
    /// Bytes of log that were shipped.
    pub log_bytes: u64,
    /// Bytes that were sent for them.
    pub sent_bytes: u64,
    /// Requests that were made once more.
    pub retries: u64,
}

// SAFETY: repr(C), size first, words and two pairs of half words.
unsafe impl Growing for vellum_ship {}

/// How shipping goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vellum_stat_ship(
    stat: Option<&vellum_stat>,
    ship: *mut vellum_ship,
) -> c_int {
    guard(|| {
        let stat = required(stat, "stat")?;
        // SAFETY: the caller's structure is as long as it says.
        let place = unsafe { Place::required(ship, "ship") }?;
        place.put(&ship_of(&stat.stat.ship, &stat.figures));
        Ok(VELLUM_OK)
    })
}

fn ship_of(state: &ShipState, figures: &Figures) -> vellum_ship {
    let (gap_from, gap_to) = state.gap.unwrap_or_default();
    let since_1970 = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
    vellum_ship {
        struct_size: 0,
        status: status_number(state.status),
        pid: state.pid.unwrap_or(0),
        fault: state.fault.map_or(0, |(fault, _)| u32::from(fault as u16)),
        fault_code: state.fault.map_or(0, |(_, code)| u32::from(code)),
        generation: figures.generation,
        shipped: state.shipped.get(),
        shipped_at_s: figures.shipped_at.and_then(since_1970).map_or(0, |since| since.as_secs()),
        lag_bytes: state.lag_bytes,
        held_from: state.held_from.map_or(u64::MAX, Lsn::get),
        gap_from: gap_from.get(),
        gap_to: gap_to.get(),
        puts: figures.puts,
        gets: figures.gets,
        log_bytes: figures.log_bytes,
        sent_bytes: figures.sent_bytes,
        retries: figures.retries,
    }
}

fn status_number(status: ShipStatus) -> u32 {
    use vellum_ship_status::*;
    let number = match status {
        ShipStatus::Running => VELLUM_SHIP_RUNNING,
        ShipStatus::Retrying => VELLUM_SHIP_RETRYING,
        ShipStatus::Fenced => VELLUM_SHIP_FENCED,
        ShipStatus::Diverged => VELLUM_SHIP_DIVERGED,
        ShipStatus::Gap => VELLUM_SHIP_GAP,
        _ => VELLUM_SHIP_NONE,
    };
    number as u32
}
