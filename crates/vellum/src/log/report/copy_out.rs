//! Saving what is readable of a damaged log.

use std::path::Path;
use std::sync::Arc;

use crate::files::Files;
use crate::files::directory::open_directory;
use crate::files::named;
use crate::files::open_files::open_file;
use crate::files::text::text_runs;
use crate::files::verify::{RepairReport, damage};
use crate::files::view::{Still, View};
use crate::log::report::copy_frames;
use crate::log::state::control::any_geometry;
use crate::log::state::identity;
use crate::segment::list;
use crate::segment::listing::Listing;
use crate::segment::rights::Rights;
use crate::{Create, Error, ErrorKind, Fill, Log, Lsn, Options, Result, Tuning};

/// Saves what is readable of the log in `from` into a new log in `to`; changes nothing in `from`.
///
/// Reads the segments in their order, and skips damaged or missing ranges. The new log has an id of
/// its own, and keeps the application tag. It is at the path of a file if `from` is. Records of a
/// framed log keep their positions, times and writers, and the log its checkpoint and its named
/// cursors; [`Stat::lost`](crate::stat::Stat::lost) says between which positions records were left
/// out. Lines of a text log get new positions. Records that were appended and never committed may
/// be among them or not.
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
    let from = named::directory(from, false);
    let has_link = named::has_link(&from);
    let from = &open_directory(&from)?;
    let geometry = any_geometry(from)?;
    let firsts = list(from)?;
    if firsts.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "there is no log").at_path(from));
    }
    let source = Still::of(&Files::new(from, &geometry, Rights::default()));
    if geometry.layout.has_every_segment() {
        return copy_frames::save(source, firsts, to);
    }
    let fill = Some(geometry.fill).filter(|fill| *fill != Fill::Staged);
    let options = Options::of(geometry.layout, fill)
        .tuning(Tuning::new().segment_capacity_bytes(geometry.segment_capacity))
        .file_link(has_link)
        .create(Create::New);
    let tag = Some(identity::of_saved(from).tag).filter(|tag| *tag != 0);
    let log = Options { application_tag: tag, ..options }.open(to)?;
    let (report, listing) = (RepairReport::default(), Arc::default());
    let mut saved = Saver { source, log, report, listing };
    let mut expected = firsts[0];
    for first in firsts {
        if first > expected {
            saved.note(expected, "the segment is missing");
        }
        saved.lines(first)?;
        expected = Lsn::new(first.get() + geometry.segment_capacity);
    }
    saved.log.sync()?;
    Ok(saved.report)
}

struct Saver {
    source: Arc<Still>,
    log: Log,
    report: RepairReport,
    listing: Arc<Listing>,
}

impl Saver {
    /// Saves the lines of the text segment at `first`.
    fn lines(&mut self, first: Lsn) -> Result<()> {
        let source = Arc::clone(&self.source);
        let runs = match text_runs(&*source, &mut self.listing, first) {
            // A file is not copied if a user that may write to the log may not read it.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                self.note(first, &error.to_string());
                return Ok(());
            }
            runs => runs?,
        };
        for run in runs {
            let segment = open_file(&*source, &mut self.listing, first)?;
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
        let first = self.source.files().segment_of(lsn);
        self.report.damage.push(damage(&*self.source, first, lsn, reason.into()));
    }
}
