//! Looking at every byte of a log, changing none.

use std::path::PathBuf;
use std::sync::Arc;

use crate::files::frames::{self, Scan};
use crate::files::open_files;
use crate::files::view::View;
use crate::files::window::Window;
use crate::format::frame::Kind;
use crate::format::segment::SegmentHeader;
use crate::lsn::Range;
use crate::segment::open::ReadSegment;
use crate::{ErrorKind, Lsn, Result};

/// The findings of [`Log::verify`](../../vellum/struct.Log.html#method.verify).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Whole records (framed) or lines (text).
    pub records: u64,
    /// Bytes of their payloads.
    pub record_bytes: u64,
    /// Pad frames: space that was skipped, abandoned, or left by the dead.
    pub pads: u64,
    /// Commit records, by which recovery finds the durable end.
    pub commit_records: u64,
    /// Bytes of pads and commit records, headers included.
    pub pad_bytes: u64,
    /// Batches of records.
    pub batches: u64,
    /// Oldest position.
    pub begin: Lsn,
    /// Published end, up to which everything was looked at.
    pub end: Lsn,
    /// The damage. Empty when the log is good.
    pub damage: Vec<Damage>,
}

/// The result of [`repair`](../../vellum/fn.repair.html).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// Records that were readable, and are in the new log.
    pub records: u64,
    /// Bytes of their payloads.
    pub record_bytes: u64,
    /// The unreadable parts.
    pub damage: Vec<Damage>,
}

/// One thing that is wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Byte of the file.
    pub offset: u64,
    /// Position in the log.
    pub lsn: Lsn,
    /// The fault there.
    pub reason: String,
}

/// The reservation of a dead writer at a position of a running log.
pub enum Reserved {
    /// Nothing.
    Nothing,
    /// A range that ends there.
    Until(Lsn),
    /// A range that was padded meanwhile.
    Padded,
}

/// Verifies the frames of a framed log, from where the report begins to where it ends.
pub fn verify_frames(
    view: &Arc<impl View>,
    report: &mut VerifyReport,
    reserved: impl Fn(Lsn) -> Reserved,
) -> Result<()> {
    check_segments(&**view, report)?;
    walk_frames(view, report, reserved)
}

/// Every segment between begin and end is there, and matches its name.
fn check_segments(view: &dyn View, report: &mut VerifyReport) -> Result<()> {
    let mut listing = Arc::default();
    let mut first = view.files().segment_of(report.begin);
    while first < report.end {
        let segment = open_files::open_file(view, &mut listing, first);
        let next = match view.files().is_missing(&segment) {
            true => view.files().behind_missing(first, report.end),
            false => view.files().segment_end(first),
        };
        match segment {
            Ok(mut segment) => {
                open_files::leave_no_trace(view, &mut segment);
                if let Some(reason) = header_fault(view, &segment)? {
                    report.damage.push(damage(view, first, first, reason).at_byte(0));
                }
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                report.damage.push(damage(view, first, first, error.to_string()).at_byte(0));
            }
            Err(error) => return Err(error),
        }
        first = next;
    }
    Ok(())
}

fn header_fault(view: &dyn View, segment: &ReadSegment) -> Result<Option<String>> {
    let mut bytes = [0; size_of::<SegmentHeader>()];
    let count = segment.read_header(&mut bytes)?;
    Ok(match SegmentHeader::parse(&bytes[..count]) {
        Err(reason) => Some(format!("the file {reason}")),
        Ok(header) if header.secret.get() != view.files().geometry.secret => {
            Some("the segment belongs to another log".into())
        }
        Ok(header) if header.first.get() != segment.first.get() => {
            Some(format!("the segment says it starts at {}", header.first))
        }
        Ok(_) => None,
    })
}

fn walk_frames(
    view: &Arc<impl View>,
    report: &mut VerifyReport,
    reserved: impl Fn(Lsn) -> Reserved,
) -> Result<()> {
    let mut window = Window::new(Arc::clone(view)).leave_no_trace();
    let mut lsn = report.begin;
    while lsn < report.end {
        match reserved(lsn) {
            Reserved::Nothing => {}
            Reserved::Until(end) => {
                count(report, Kind::Pad, 0, end.get() - lsn.get());
                lsn = end;
                continue;
            }
            Reserved::Padded => window.forget(),
        }
        match frames::look(view.files(), &mut window, lsn, report.end) {
            Ok(Scan::Frame { kind, payload_len, next }) => {
                let len = payload_len.saturating_sub(view.files().geometry.envelope_len() as u64);
                count(report, kind, len, next.get() - lsn.get());
                lsn = next;
            }
            Ok(Scan::Unwritten) => lsn = resume(view, report, lsn, "nothing was written here")?,
            Ok(Scan::Invalid(reason)) => lsn = resume(view, report, lsn, reason)?,
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                // A missing segment, already reported.
                lsn = Lsn::new(view.files().segment_of(lsn).get() + view.files().capacity());
                window.forget();
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn count(report: &mut VerifyReport, kind: Kind, payload_len: u64, len: u64) {
    match kind {
        Kind::Record | Kind::Member => {
            report.records += 1;
            report.record_bytes += payload_len;
        }
        Kind::Pad => {
            report.pads += 1;
            report.pad_bytes += len;
        }
        Kind::Batch => report.batches += 1,
        Kind::CommitRecord => {
            report.commit_records += 1;
            report.pad_bytes += len;
        }
    }
}

/// Notes the damage at `lsn` and finds where frames continue.
fn resume(view: &Arc<impl View>, report: &mut VerifyReport, lsn: Lsn, reason: &str) -> Result<Lsn> {
    let first = view.files().segment_of(lsn);
    report.damage.push(damage(&**view, first, lsn, reason.into()));
    Ok(frames::find_next(view, lsn, report.end)?.unwrap_or(report.end))
}

/// Notes where nothing is stored of a line that holds NULs. Those that were appended are stored.
pub fn note_holes(view: &dyn View, line: Range, report: &mut VerifyReport) -> Result<()> {
    let mut start = line.start;
    while start < line.end() {
        let first = view.files().segment_of(start);
        let end = line.end().min(view.files().segment_end(first));
        if open_files::open_to_read(view, first)?.has_hole(start, end) {
            let reason = "a line has a hole: nothing is stored there, and it reads as NULs".into();
            report.damage.push(damage(view, first, line.start, reason));
        }
        start = end;
    }
    Ok(())
}

/// Damage at `lsn`, in the segment at `first`.
pub fn damage(view: &dyn View, first: Lsn, lsn: Lsn, reason: String) -> Damage {
    let offset = view.files().geometry.layout.file_header_len() + (lsn.get() - first.get());
    Damage { path: open_files::segment_path(view, first), offset, lsn, reason }
}

impl Damage {
    fn at_byte(mut self, offset: u64) -> Damage {
        self.offset = offset;
        self
    }
}
