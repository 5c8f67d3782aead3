//! Saving what is readable of a damaged log.

use std::path::Path;
use std::sync::Arc;

use crate::format::frame::{HEADER_LEN, Kind};
use crate::log::append::Append;
use crate::log::layout::framed::frames::{self, Scan};
use crate::log::layout::text::recover::text_runs;
use crate::log::open::parts::open_directory;
use crate::log::read::files::open_file;
use crate::log::read::window::Window;
use crate::log::report::verify::{Damage, damage};
use crate::log::state::control::any_geometry;
use crate::log::state::core::{Core, bare_core};
use crate::log::state::identity;
use crate::log::state::named;
use crate::segment::list;
use crate::segment::listing::Listing;
use crate::{Create, Error, ErrorKind, Fill, Log, Lsn, Options, Result, Tuning};

/// What [`repair`] saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Records that were readable, and are in the new log.
    pub records: u64,
    /// Bytes of their payloads.
    pub record_bytes: u64,
    /// What was not readable.
    pub damage: Vec<Damage>,
}

/// Saves what is readable of the log in `from` into a new log in `to`; changes nothing in `from`.
///
/// Reads the segments alone, in their order, and passes over what is damaged or missing. The
/// records get new positions and keep their times and writers, and the new log has an id of its
/// own; it keeps the application tag. What was appended and never committed may be among them or
/// not.
///
/// # Errors
///
/// [`ErrorKind::NotFound`] where there is no log, [`ErrorKind::AlreadyExists`] where there is one
/// in `to`, and [`ErrorKind::Corrupt`] where both the control file and the geometry file of `from`
/// are gone or damaged, without which no record can be told from garbage; otherwise as for
/// [`Log::append`]. Damage is no error but part of the report.
///
/// # Durability
///
/// When it returns, the new log survives a power cut.
pub fn repair(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<RepairReport> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let from = &open_directory(&named::directory(from, false))?;
    let geometry = any_geometry(from)?;
    let firsts = list(from)?;
    if firsts.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "there is no log").at_path(from));
    }
    let fill = Some(geometry.fill).filter(|fill| *fill != Fill::Staged);
    let options = Options::of(geometry.layout, fill)
        .tuning(Tuning::new().segment_capacity_bytes(geometry.segment_capacity))
        .envelope(geometry.has_envelope)
        .create(Create::New);
    let log = Options { application_tag: identity::tag(from), ..options }.open(to)?;
    let source = Arc::new(bare_core(from, &geometry));
    let mut expected = firsts[0];
    let (report, listing) = (RepairReport::default(), Arc::default());
    let mut saved = Saver { source, log, report, firsts: firsts.clone(), listing };
    for first in firsts {
        if first > expected {
            saved.note(expected, "the segment is missing");
        }
        if geometry.layout.has_every_segment() {
            expected = saved.frames(first, expected)?;
        } else {
            saved.lines(first)?;
            expected = Lsn::new(first.get() + geometry.segment_capacity);
        }
    }
    saved.log.sync()?;
    Ok(saved.report)
}

struct Saver {
    source: Arc<Core>,
    log: Log,
    report: RepairReport,
    /// First positions of the segments, oldest first.
    firsts: Vec<Lsn>,
    listing: Arc<Listing>,
}

impl Saver {
    /// Saves the records that start in the segment at `first`; returns where the last one ends.
    fn frames(&mut self, first: Lsn, from: Lsn) -> Result<Lsn> {
        let end = self.source.segment_end(first);
        // A record that is longer than a segment ends in a later one.
        let newest = self.firsts.last().copied().unwrap_or(first);
        let limit = self.source.segment_end(newest);
        let mut window = Window::new(Arc::clone(&self.source));
        let mut lsn = from.max(first);
        while lsn < end {
            match frames::look(&self.source, &mut window, lsn, limit) {
                Ok(Scan::Frame { kind, payload_len, next }) => {
                    if matches!(kind, Kind::Record | Kind::Member) {
                        let len = HEADER_LEN as u64 + payload_len;
                        let frame = window.fetch(lsn, len, next)?;
                        // With the envelope that it has.
                        let payload = &frame[HEADER_LEN..];
                        let append = Append::of(&self.log.core);
                        append.retry_when_full(|| append.append_frame(&[payload], payload_len))?;
                        self.count(payload_len - self.source.geometry.envelope_len() as u64);
                    }
                    lsn = next;
                }
                Ok(Scan::Unwritten) if is_empty_from(&self.source, lsn, end)? => return Ok(end),
                found => {
                    let reason = match &found {
                        Ok(Scan::Invalid(reason)) => (*reason).to_string(),
                        Ok(_) => "nothing was written here".to_string(),
                        Err(error) => error.to_string(),
                    };
                    // A file that cannot be read is passed over, as one that is missing is.
                    let next = frames::find_next(&self.source, lsn, end)
                        .unwrap_or_else(|_| Some(self.source.segment_end(lsn).min(end)));
                    if next.is_some() || self.has_more_behind(end)? {
                        self.note(lsn, &reason);
                    }
                    lsn = next.unwrap_or(end);
                    window.forget();
                }
            }
        }
        Ok(lsn)
    }

    /// Whether a segment behind `end` starts with a record: then what is missing before is damage
    /// and not the end of the log.
    fn has_more_behind(&self, end: Lsn) -> Result<bool> {
        let core = &self.source;
        if !self.firsts.contains(&end) {
            return Ok(false);
        }
        let mut window = Window::new(Arc::clone(&self.source));
        let limit = core.segment_end(end);
        Ok(matches!(frames::look(core, &mut window, end, limit)?, Scan::Frame { .. }))
    }

    /// Saves the lines of the text segment at `first`.
    fn lines(&mut self, first: Lsn) -> Result<()> {
        let source = Arc::clone(&self.source);
        let core = &source;
        let runs = match text_runs(core, &mut self.listing, first) {
            // A file that not everybody may read who may write to the log is not copied.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                self.note(first, &error.to_string());
                return Ok(());
            }
            runs => runs?,
        };
        for run in runs {
            let segment = open_file(core, &mut self.listing, first)?;
            let mut text = vec![0; run.len as usize];
            let count = segment.read(run.start, &mut text)?;
            for line in text[..count].split_inclusive(|byte| *byte == b'\n') {
                self.log.append(line)?;
                self.count(line.len() as u64);
            }
        }
        Ok(())
    }

    fn count(&mut self, payload_len: u64) {
        self.report.records += 1;
        self.report.record_bytes += payload_len;
    }

    fn note(&mut self, lsn: Lsn, reason: &str) {
        let core = &self.source;
        self.report.damage.push(damage(core, core.segment_of(lsn), lsn, reason.into()));
    }
}

/// Whether nothing but zeros stands from `lsn` to `end`.
fn is_empty_from(source: &Arc<Core>, lsn: Lsn, end: Lsn) -> Result<bool> {
    let mut window = Window::new(Arc::clone(source));
    let mut at = lsn;
    while at < end {
        let len = (end.get() - at.get()).min(64 << 10);
        let bytes = window.fetch(at, len, end)?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        if (bytes.len() as u64) < len {
            break;
        }
        at = Lsn::new(at.get() + len);
    }
    Ok(true)
}
