//! Looking at every byte of a log, changing none.

use std::path::PathBuf;
use std::sync::Arc;

use crate::files::frames::{self, Scan};
use crate::files::open_files;
use crate::files::view::View;
use crate::files::window::Window;
use crate::format::frame::Kind;
use crate::format::segment::SegmentHeader;
use crate::log::read::reader::Reader;
use crate::log::repair::read_limit::ReadLimit;
use crate::log::state::core::Core;
use crate::lsn::Range;
use crate::segment::open::ReadSegment;
use crate::{ErrorKind, Layout, Lsn, Result};

/// What [`Log::verify`](crate::Log::verify) found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Whole records (framed) or lines (text).
    pub records: u64,
    /// Bytes of their payloads.
    pub record_bytes: u64,
    /// Pad frames: space that was skipped, abandoned, or left by the dead.
    pub pads: u64,
    /// Seals: what commits leave behind for recovery.
    pub seals: u64,
    /// Bytes of pads and seals, headers included.
    pub pad_bytes: u64,
    /// Batches of records.
    pub batches: u64,
    /// Oldest position.
    pub begin: Lsn,
    /// Published end, up to which everything was looked at.
    pub end: Lsn,
    /// What is wrong. Empty when the log is good.
    pub damage: Vec<Damage>,
}

/// What [`repair`](crate::repair) saved.
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
    /// What is wrong there.
    pub reason: String,
}

/// Verifies everything from the beginning to the published end.
pub(crate) fn verify(core: &Arc<Core>) -> Result<VerifyReport> {
    core.check_words()?;
    let begin = core.begin();
    let read_limit = ReadLimit::of(core);
    core.check_region()?;
    let mut report = VerifyReport { begin, end: read_limit.end, ..VerifyReport::default() };
    match core.files.geometry.layout {
        Layout::Framed => {
            check_segments(core, &mut report)?;
            walk_frames(core, &read_limit, &mut report)?;
        }
        _ => walk_lines(core, &mut report)?,
    }
    // What was trimmed away while it was looked at is not damage.
    let begin = core.begin().get();
    report.damage.retain(|damage| core.files.segment_end(damage.lsn).get() > begin);
    Ok(report)
}

/// Every segment between begin and end is there, and is what its name says.
fn check_segments(core: &Core, report: &mut VerifyReport) -> Result<()> {
    let mut listing = Arc::default();
    let mut first = core.files.segment_of(report.begin);
    while first < report.end {
        let segment = open_files::open_file(core, &mut listing, first);
        let next = match core.files.is_missing(&segment) {
            true => core.files.behind_missing(first, report.end),
            false => core.files.segment_end(first),
        };
        match segment {
            Ok(mut segment) => {
                open_files::leave_no_trace(core, &mut segment);
                if let Some(reason) = header_fault(core, &segment)? {
                    report.damage.push(damage(core, first, first, reason).at_byte(0));
                }
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                report.damage.push(damage(core, first, first, error.to_string()).at_byte(0));
            }
            Err(error) => return Err(error),
        }
        first = next;
    }
    Ok(())
}

fn header_fault(core: &Core, segment: &ReadSegment) -> Result<Option<String>> {
    let mut bytes = [0; size_of::<SegmentHeader>()];
    let count = segment.read_header(&mut bytes)?;
    Ok(match SegmentHeader::parse(&bytes[..count]) {
        Err(reason) => Some(format!("the file {reason}")),
        Ok(header) if header.secret.get() != core.files.geometry.secret => {
            Some("the segment belongs to another log".into())
        }
        Ok(header) if header.first.get() != segment.first.get() => {
            Some(format!("the segment says it starts at {}", header.first))
        }
        Ok(_) => None,
    })
}

fn walk_frames(core: &Arc<Core>, read_limit: &ReadLimit, report: &mut VerifyReport) -> Result<()> {
    let mut window = Window::new(Arc::clone(core)).leave_no_trace();
    let mut lsn = report.begin;
    while lsn < report.end {
        if let Some(hole) = read_limit.hole_at(lsn) {
            if hole.is_there(core) {
                count(report, Kind::Pad, 0, hole.range.end().get() - lsn.get());
                lsn = hole.range.end();
                continue;
            }
            // Padded meanwhile.
            window.forget();
        }
        match frames::look(&core.files, &mut window, lsn, report.end) {
            Ok(Scan::Frame { kind, payload_len, next }) => {
                let len = payload_len.saturating_sub(core.files.geometry.envelope_len() as u64);
                count(report, kind, len, next.get() - lsn.get());
                lsn = next;
            }
            Ok(Scan::Unwritten) => lsn = resume(core, report, lsn, "nothing was written here")?,
            Ok(Scan::Invalid(reason)) => lsn = resume(core, report, lsn, reason)?,
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                // A missing segment, already reported.
                lsn = Lsn::new(core.files.segment_of(lsn).get() + core.files.capacity());
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
            report.seals += 1;
            report.pad_bytes += len;
        }
    }
}

/// Notes the damage at `lsn` and finds where frames go on.
fn resume(core: &Arc<Core>, report: &mut VerifyReport, lsn: Lsn, reason: &str) -> Result<Lsn> {
    let first = core.files.segment_of(lsn);
    report.damage.push(damage(&**core, first, lsn, reason.into()));
    Ok(frames::find_next(core, lsn, report.end)?.unwrap_or(report.end))
}

fn walk_lines(core: &Arc<Core>, report: &mut VerifyReport) -> Result<()> {
    let mut from = report.begin;
    while from < report.end {
        match walk_lines_from(core, from, report) {
            // Trimmed away meanwhile: go on with what is left.
            Err(error) if error.kind() == ErrorKind::Trimmed => {
                from = core.begin();
            }
            answer => return answer,
        }
    }
    Ok(())
}

fn walk_lines_from(core: &Arc<Core>, from: Lsn, report: &mut VerifyReport) -> Result<()> {
    let mut reader = Reader::new(Arc::clone(core), from)?.leave_no_trace();
    reader.skip_damage(true);
    let answer = count_lines(&mut reader, core, report);
    for gap in reader.take_gaps() {
        let there = damage(&**core, core.files.segment_of(gap.from), gap.from, gap.what());
        report.damage.push(Damage { path: gap.path, ..there });
    }
    answer
}

fn count_lines(reader: &mut Reader, core: &Core, report: &mut VerifyReport) -> Result<()> {
    while reader.position() < report.end {
        let position = reader.position();
        let Some(record) = reader.next()? else { break };
        report.records += 1;
        report.record_bytes += record.payload.len() as u64;
        if record.payload.contains(&0) {
            let range = Range { start: position, len: record.payload.len() as u64 };
            note_holes(core, range, report)?;
        }
    }
    Ok(())
}

/// Notes where nothing is stored of a line that holds NULs. Those that were appended are stored.
fn note_holes(core: &Core, line: Range, report: &mut VerifyReport) -> Result<()> {
    let mut start = line.start;
    while start < line.end() {
        let first = core.files.segment_of(start);
        let end = line.end().min(core.files.segment_end(first));
        if core.open_to_read(first)?.has_hole(start, end) {
            let reason = "a line has a hole: nothing is stored there, and it reads as NULs".into();
            report.damage.push(damage(core, first, line.start, reason));
        }
        start = end;
    }
    Ok(())
}

pub(crate) fn damage(view: &dyn View, first: Lsn, lsn: Lsn, reason: String) -> Damage {
    let offset = view.files().geometry.layout.file_header_len() + (lsn.get() - first.get());
    Damage { path: open_files::segment_path(view, first), offset, lsn, reason }
}

impl Damage {
    fn at_byte(mut self, offset: u64) -> Damage {
        self.offset = offset;
        self
    }
}
