//! The state of shipping, for all processes that have the log open.

use crate::log::ship::{election, hold};
use crate::log::state::core::Core;
use crate::log::state::extent;
use crate::shared::words::ShipWords;
use crate::{Lsn, Result};

/// How shipping goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum ShipStatus {
    /// No process ships the log.
    #[default]
    None = 0,
    /// Durable records are shipped as they come.
    Running = 1,
    /// The store cannot be used at this moment; it is tried again.
    Retrying = 2,
    /// Another machine or another copy of the log has taken over. Nothing more is shipped.
    Fenced = 3,
    /// The store holds something else than this log at the same positions. Nothing more is shipped.
    Diverged = 4,
    /// Shipping runs, and records were removed here before they were shipped ([`ShipState::gap`]).
    Gap = 5,
}

/// Why a request to the store failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u16)]
pub enum ShipFault {
    /// No answer came.
    Unreachable = 1,
    /// The store refuses the credentials, or their request.
    Denied = 2,
    /// There is no such bucket, container or directory, or it was removed.
    Missing = 3,
    /// The store asks for fewer requests.
    Throttled = 4,
    /// Any other failure of the store.
    Store = 5,
    /// The local log is damaged, or cannot be read.
    Local = 6,
}

/// How shipping goes ([`ship::Ship::state`](crate::ship::Ship::state)).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ShipState {
    /// The state of the shipper, or its last error.
    pub status: ShipStatus,
    /// The last fault, and a number of the store's, such as an HTTP status, or 0.
    pub fault: Option<(ShipFault, u16)>,
    /// The process that ships, where it can be seen.
    pub pid: Option<u32>,
    /// End of the shipped records, or zero where no shipper has reported it since the last boot.
    pub shipped: Lsn,
    /// Bytes that are durable and not shipped, where [`shipped`](ShipState::shipped) is known.
    pub lag_bytes: u64,
    /// From here on the log keeps records for the shipper, if it does.
    pub held_from: Option<Lsn>,
    /// The newest stretch that was removed here before it was shipped.
    pub gap: Option<(Lsn, Lsn)>,
}

impl ShipState {
    /// Whether a process ships the log, or has.
    pub fn is_shipped(&self) -> bool {
        self.status != ShipStatus::None || self.shipped != Lsn::ZERO || self.held_from.is_some()
    }
}

/// Reads shared words, the locks and the file of the cursors. Changes nothing.
pub(crate) fn state(core: &Core) -> Result<ShipState> {
    let held_from = hold::held_for_shipper(core)?;
    Ok(ShipState { held_from, ..without_hold(core)? })
}

/// The same without what is held: where the cursors cannot be read, the rest can.
pub(crate) fn without_hold(core: &Core) -> Result<ShipState> {
    let words = &core.words().ship;
    let (status, fault) = self::status(words);
    let is_running = election::is_shipped_by_somebody(core);
    let stops = matches!(status, ShipStatus::Fenced | ShipStatus::Diverged);
    let shipped = words.shipped();
    let durable = crate::shared::commit::durable(&core.words().commits);
    Ok(ShipState {
        status: if is_running || stops { status } else { ShipStatus::None },
        fault,
        pid: is_running.then(|| election::shipper_pid(core)).flatten(),
        shipped,
        lag_bytes: if shipped == Lsn::ZERO {
            0
        } else {
            extent::bytes_between(core, shipped, durable)?
        },
        held_from: None,
        gap: words.gap(),
    })
}

/// Lists the variants of an enum, with their names.
macro_rules! listed {
    ($type:ident, $($variant:ident = $name:literal),+) => {
        impl $type {
            const ALL: &[$type] = &[$($type::$variant),+];

            /// Its name in output and metrics.
            pub fn as_str(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }
    };
}

listed!(
    ShipStatus,
    None = "none",
    Running = "running",
    Retrying = "retrying",
    Fenced = "fenced",
    Diverged = "diverged",
    Gap = "gap"
);
listed!(
    ShipFault,
    Unreachable = "unreachable",
    Denied = "denied",
    Missing = "missing",
    Throttled = "throttled",
    Store = "store",
    Local = "local"
);

/// Says how shipping goes. One word, so that the two are never seen apart.
pub(crate) fn set_status(words: &ShipWords, status: ShipStatus, fault: Option<(ShipFault, u16)>) {
    let (kind, number) = fault.map_or((0, 0), |(kind, number)| (kind as u64, number));
    words.set_status_word(status as u64 | kind << 32 | u64::from(number) << 48);
}

/// How shipping goes, as was said last.
pub(crate) fn status(words: &ShipWords) -> (ShipStatus, Option<(ShipFault, u16)>) {
    let word = words.status_word();
    let status = ShipStatus::ALL.get(word as u32 as usize).copied().unwrap_or_default();
    let kind = usize::from((word >> 32) as u16).checked_sub(1);
    let fault = kind.and_then(|index| ShipFault::ALL.get(index).copied());
    (status, fault.map(|fault| (fault, (word >> 48) as u16)))
}
