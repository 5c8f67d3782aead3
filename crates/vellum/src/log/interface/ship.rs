//! `Log`: shipping.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::log::ship;
use crate::log::ship::shape;
use crate::log::state::core::Core;
use crate::log::state::wait;
use crate::log::{Log, ShipState, Shipper};
use crate::restore::shape::LogShape;
use crate::shared::commit;
use crate::{Create, Lsn, Options, Result};

/// An open log as the place that is shipped: [`Log::ship`].
#[derive(Clone, Copy, Debug)]
pub struct Ship<'a> {
    core: &'a Arc<Core>,
}

/// Opens a log that is there to ship it, to keep a cursor in it, or to look after it: beside an
/// [exclusive](Options::exclusive) owner too. For programs that append nothing of their own.
///
/// # Errors
///
/// As for [`Options::open`].
pub fn open(path: impl AsRef<Path>) -> Result<Log> {
    let options = Options { is_companion: true, ..Options::default() };
    options.create(Create::Never).open(path)
}

impl Log {
    /// Shipping: waiting until records are also elsewhere, the state of shipping, and the right to
    /// ship.
    pub fn ship(&self) -> Ship<'_> {
        Ship { core: &self.core }
    }
}

impl Ship<'_> {
    /// Makes the record at `lsn`, and everything before it, survive the loss of this machine.
    ///
    /// It commits, has the process that ships the log ship at once (as soon as its minimum interval
    /// allows), and waits until that is done, no longer than
    /// [`Options::timeout`](crate::Options::timeout) for both.
    ///
    /// # Errors
    ///
    /// As for [`Log::commit`], and those of [`wait`](Ship::wait). After one of these the record is
    /// durable here, and is shipped later if a process ships.
    ///
    /// # Cost
    ///
    /// As for [`Log::commit`], and a round trip to the store, shared with all waiters at the same
    /// time.
    pub fn commit(self, lsn: Lsn) -> Result<()> {
        ship::wait::commit(self.core, lsn)
    }

    /// End of the shipped records: everything before it is also in the store. Zero where no shipper
    /// has reported it since the last boot. Never beyond [`Log::durable`].
    pub fn end(self) -> Lsn {
        let words = self.core.words();
        words.ship.shipped().min(commit::durable(&words.commits))
    }

    /// Waits until the record at `lsn`, and everything before it, is shipped; for `timeout` at
    /// most, or for ever for `None`. Returns [`end`](Ship::end). Commits nothing itself.
    ///
    /// # Errors
    ///
    /// [`NoShipper`](crate::ErrorKind::NoShipper) at once where no process ships the log, and
    /// within 100 ms after the one that does has died;
    /// [`Fenced`](crate::ErrorKind::Fenced) where another machine or copy has taken over;
    /// [`Poisoned`](crate::ErrorKind::Poisoned) for a record that can be committed no more;
    /// [`TimedOut`](crate::ErrorKind::TimedOut); [`OutOfRange`](crate::ErrorKind::OutOfRange) for a
    /// position beyond the end; [`Trimmed`](crate::ErrorKind::Trimmed) for one that was removed
    /// before it was shipped.
    ///
    /// # Cost
    ///
    /// One load where it is shipped already; otherwise the caller sleeps, and looks for the shipper
    /// every 100 ms. A reader without write permission cannot have the shipper hurry, and looks
    /// every 20 ms.
    pub fn wait(self, lsn: Lsn, timeout: Option<Duration>) -> Result<Lsn> {
        ship::wait::until_shipped(self.core, lsn, timeout.and_then(wait::after))
    }

    /// How shipping goes. Changes nothing, and needs the right to read alone.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::ErrorKind::Io) and [`Corrupt`](crate::ErrorKind::Corrupt) where the file of
    /// the cursors cannot be read.
    ///
    /// # Cost
    ///
    /// Reads that file, and looks through `/proc` for the shipper.
    pub fn state(self) -> Result<ShipState> {
        ship::state::state(self.core)
    }

    /// The figures that the shipper has stored ([`Shipper::set_figures`]); `None` where none were.
    /// The crate `vellum-ship-figures` knows those of `vellum ship`.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::ErrorKind::Io) where their file cannot be read.
    pub fn figures(self) -> Result<Option<Vec<u8>>> {
        ship::saved::figures(&self.core.files)
    }

    /// The right to ship the log, if no other process has it; it ends when it is dropped, or when
    /// the process dies. For programs that ship; the log sends nothing itself.
    ///
    /// # Errors
    ///
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly); [`Io`](crate::ErrorKind::Io) when the process is
    /// short of descriptors.
    pub fn elect(self) -> Result<Option<Shipper>> {
        Shipper::elect(self.core)
    }

    /// Keeps nothing for the shipper any more ([`Shipper::hold`]): unshipped records may be
    /// removed. Forgets what a shipper has saved, so the log may be shipped elsewhere. False if
    /// there was neither.
    ///
    /// # Errors
    ///
    /// [`Busy`](crate::ErrorKind::Busy) while a process ships; otherwise as for
    /// [`Cursor::remove`](crate::Cursor::remove).
    pub fn detach(self) -> Result<bool> {
        ship::hold::detach(self.core)
    }

    /// The shape of the log, for restoring it elsewhere ([`Restorer`](crate::ship::Restorer)).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a log of an earlier version that has no
    /// id yet.
    pub fn shape(self) -> Result<LogShape> {
        shape::of(self.core)
    }
}
