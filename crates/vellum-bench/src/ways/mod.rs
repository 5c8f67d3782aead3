//! The ways to append to one log from many processes: one file each.
//!
//! A way meets a run at four points:
//!
//! | who, when | what |
//! |---|---|
//! | parent, once | [`Way::probe`]: can it run here? |
//! | parent, before the fork | [`Way::prepare`]: make the empty log |
//! | each child, before the clock | [`Prepared::open`]: get an [`Appender`] of its own |
//! | each child, under the clock | [`Appender::append_all`] |
//! | parent, after the clock | [`Prepared::read_back`]: every record, as it stands in the log |
//!
//! A suite that also commits or syncs asks more of an appender; that is another trait beside
//! [`Appender`], for the ways that can.

use std::hint::black_box;
use std::path::Path;

use crate::error::Result;
use crate::names::named;
use crate::process::now_ns;
use crate::record::Records;
use crate::setting::Setting;
use crate::walk::Walk;

pub(crate) mod aio;
pub(crate) mod direct;
pub(crate) mod io_uring;
pub(crate) mod plain;
pub(crate) mod stdio;
#[cfg(feature = "capi")]
mod vellum_c;
#[cfg(not(feature = "capi"))]
#[path = "vellum_c_left_out.rs"]
mod vellum_c;
pub(crate) mod vellum_framed;
pub(crate) mod vellum_log;
pub(crate) mod vellum_text;
mod write;
mod writev;

/// A way to append.
pub(crate) trait Way {
    /// `Err` with the reason if it can't run in the directory `dir`, which is empty.
    fn probe(&self, _dir: &Path) -> std::result::Result<(), String> {
        Ok(())
    }

    /// Can the oldest part of the log be dropped while processes append to it?
    fn can_trim(&self) -> bool {
        false
    }

    /// How much of the disk the log takes, at most.
    fn disk_bytes(&self, setting: &Setting) -> u64 {
        setting.total_bytes()
    }

    /// Makes an empty log in the directory `dir`, which exists and is empty.
    fn prepare(&self, dir: &Path, setting: &Setting) -> Result<Box<dyn Prepared>>;
}

/// A log that processes may append to.
pub(crate) trait Prepared {
    /// The appender of process number `process`; called in that process.
    fn open(&self, process: u32) -> Result<Box<dyn Appender>>;

    /// Shows `visit` every record of the log, in the order of the log.
    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()>;
}

/// One process's way into the log.
pub(crate) trait Appender {
    /// Appends `record`. On return it is in the log as a whole: if this process dies now the
    /// record is still there.
    fn append(&mut self, record: &[u8]) -> Result<()>;

    /// The same, and tells where the record is, for [`Appender::trim`]; `None` if that can't be.
    fn append_marked(&mut self, record: &[u8]) -> Result<Option<u64>> {
        self.append(record).map(|()| None)
    }

    /// Drops everything before a record that was marked; only for ways that can.
    fn trim(&mut self, _before: u64) -> Result<()> {
        Ok(())
    }

    /// Appends the next `count` of `records`, adding to `acknowledged` each that was appended.
    ///
    /// Here so that the loop is compiled anew for each way with its `append` inlined: a call
    /// through a table for each record would cost the fastest ways a tenth.
    fn append_all(
        &mut self,
        records: &mut Records,
        count: u64,
        acknowledged: &mut u64,
    ) -> Result<()> {
        for _ in 0..count {
            self.append(records.next_record())?;
            *acknowledged += 1;
        }
        Ok(())
    }

    /// The same with a walk before each; returns how long the appends took in nanoseconds, each
    /// with one reading of the clock. A record is made behind the walk, as programs do.
    fn append_each(
        &mut self,
        records: &mut Records,
        count: u64,
        acknowledged: &mut u64,
        walk: &Walk,
    ) -> Result<u64> {
        let mut took = 0;
        for _ in 0..count {
            black_box(walk.go());
            let record = records.next_record();
            let begun = now_ns();
            self.append(record)?;
            took += now_ns() - begun;
            *acknowledged += 1;
        }
        Ok(took)
    }

    /// Called when all processes have appended everything: waits until all of it can be read.
    fn wait_readable(&mut self) -> Result<()> {
        Ok(())
    }
}

named! {
    /// The name of a way to append.
    #[non_exhaustive]
    pub enum WayName, "is not a way to append" {
        /// A Vellum log of framed records, with a checksum each.
        VellumFramed = "vellum-framed",
        /// A Vellum text log: the bytes and nothing else.
        VellumText = "vellum-text",
        /// `write` on a file opened with `O_APPEND`; the baseline of the others.
        Write = "write",
        /// `writev` with `O_APPEND`, each record in two parts.
        Writev = "writev",
        /// C standard I/O, append mode: `fwrite` and `fflush` for each record.
        Stdio = "stdio",
        /// `O_DIRECT`, each record in aligned blocks of its own.
        Direct = "direct",
        /// Linux AIO, one request at a time.
        Aio = "aio",
        /// io_uring, one request at a time.
        IoUring = "io_uring",
        /// [`VellumFramed`](WayName::VellumFramed) through the C interface.
        VellumC = "vellum-c",
    }
}

impl WayName {
    /// The ways that run when none is named: those that write differently.
    pub fn usual() -> Vec<WayName> {
        WayName::ALL.into_iter().filter(|name| *name != WayName::VellumC).collect()
    }

    /// The way of this name. `options` are for the logs of the vellum ways.
    pub(crate) fn way(self, options: &vellum::Options) -> Box<dyn Way> {
        match self {
            WayName::VellumFramed => Box::new(vellum_framed::VellumFramed::new(options)),
            WayName::VellumText => Box::new(vellum_text::VellumText::new(options)),
            WayName::Write => Box::new(write::Write),
            WayName::Writev => Box::new(writev::Writev),
            WayName::Stdio => Box::new(stdio::Stdio),
            WayName::Direct => Box::new(direct::Direct),
            WayName::Aio => Box::new(aio::Aio),
            WayName::IoUring => Box::new(io_uring::Uring),
            WayName::VellumC => Box::new(vellum_c::VellumC::new(options)),
        }
    }
}

#[cfg(test)]
mod tests;
