//! Saving what is readable of a damaged framed log: every record stays at its position.
//!
//! So positions that records hold, those of named cursors and the checkpoint mean what they meant.
//! Lost ranges get pads, and the identity says between which positions they are.

use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::files::frames::{self, Scan};
use crate::files::names::{CONTROL_NAME, CURSORS_NAME};
use crate::files::recover::framed::{begin_of_commits, behind_trimmed_batch};
use crate::files::verify::{RepairReport, damage};
use crate::files::view::{Still, View};
use crate::files::window::Window;
use crate::format::commit_record::{CommitRecord, RECORD_LEN};
use crate::format::cursor;
use crate::format::frame::{ALIGNMENT, HEADER_LEN, Header, Kind};
use crate::log::keep::cursors;
use crate::log::state::control::read_geometry;
use crate::log::state::identity;
use crate::restore::options::RestoreOptions;
use crate::restore::restorer::Restorer;
use crate::restore::shape::LogShape;
use crate::shared::commit;
use crate::shared::primitive::Ordering;
use crate::shared::region::Region;
use crate::{ErrorKind, Lsn, Options, Result};

/// Bytes that are copied at a time.
const STEP: u64 = 1 << 20;
/// How many segments may be missing at the end of a log whose control file tells how long it was.
const MISSING_MAX: u64 = 64;

/// Saves what is readable of the log of `source`, whose segments start at `firsts`, into `to`.
pub(crate) fn save(source: Arc<Still>, mut firsts: Vec<Lsn>, to: &Path) -> Result<RepairReport> {
    let capacity = source.files().capacity();
    let is_start = |lsn: u64| lsn >= capacity && lsn.is_multiple_of(capacity);
    firsts.retain(|first| is_start(first.get()) && *first < Lsn::MAX);
    let known = begin(&source, &firsts)?;
    let begin = known.unwrap_or(Lsn::new(capacity));
    let shape =
        LogShape::of_saved(&source.files().geometry, identity::of_saved(&source.files().dir));
    let options = RestoreOptions::beside_others();
    let new = Restorer::create(to, &shape, begin, &options)?;
    let (run, report) = ((begin, begin), RepairReport::default());
    let (cut, lost, ahead) = (begin, Vec::new(), None);
    let mut saved = Saver { source, new, report, firsts, begin, cut, run, lost, ahead };
    match known {
        Some(_) => saved.save_all()?,
        None => saved.lose_all(),
    }
    saved.add_cursors()?;
    saved.new.finish()?;
    // A log that cannot be opened was not saved.
    drop(Options::default().open(to)?);
    Ok(saved.report)
}

/// Where the log begins, by the segments and commit records that can be read.
fn begin(source: &Arc<Still>, firsts: &[Lsn]) -> Result<Option<Lsn>> {
    let mut begin = None;
    for first in firsts {
        let header = match source.files().whole_header(*first) {
            Err(error) if error.kind() != ErrorKind::PermissionDenied => return Err(error),
            header => header.ok().flatten(),
        };
        let noted = header.map(|header| Lsn::new(header.begin.get()));
        if begin.is_none() && (header.is_some() || has_frame(source, *first)) {
            begin = Some(*first);
        }
        begin = begin.map(|begin| begin.max(noted.unwrap_or_default()));
    }
    // A trim whose note in the header is damaged is in the commit records behind it.
    Ok(begin.map(|begin: Lsn| begin.max(begin_of_commits(source, firsts))))
}

fn has_frame(source: &Arc<Still>, first: Lsn) -> bool {
    let end = source.files().segment_end(first);
    let found = frames::look(source.files(), &mut Window::new(Arc::clone(source)), first, end);
    matches!(found, Ok(Scan::Frame { .. }))
        || matches!(frames::find_next(source, first, end), Ok(Some(_)))
}

/// Bytes of the record of a batch that is at `lsn`, without what follows it, if one is there.
fn member_len(source: &Still, window: &mut Window, lsn: Lsn, limit: Lsn) -> Option<u64> {
    match frames::look(source.files(), window, lsn, limit) {
        Ok(Scan::Frame { kind: Kind::Member, payload_len, .. }) => {
            Some(HEADER_LEN as u64 + payload_len)
        }
        _ => None,
    }
}

/// Up to where records were acknowledged, as far as the control file tells.
fn known_end(source: &Still) -> Option<Lsn> {
    let path = source.files().dir.join(CONTROL_NAME);
    let control = source.files().dir.open_file(&path, OFlags::RDONLY).ok()?;
    let geometry = read_geometry(&control, &path).ok()?;
    let region = Region::map(&control, false).ok()?;
    let closed_at = Lsn::new(region.origin()?.closed_at.load(Ordering::Relaxed));
    let end = closed_at.max(commit::durable(&region.words().commits));
    (geometry.secret == source.files().geometry.secret && end.get().is_multiple_of(8))
        .then_some(end)
}

struct Saver {
    source: Arc<Still>,
    new: Restorer,
    report: RepairReport,
    /// First positions of the segments, oldest first.
    firsts: Vec<Lsn>,
    begin: Lsn,
    /// Where the later records of a batch end whose start was trimmed.
    cut: Lsn,
    /// Frames that follow one another and are not copied yet.
    run: (Lsn, Lsn),
    /// The ranges that were left out.
    lost: Vec<(Lsn, Lsn)>,
    /// The next whole frame behind a position, if there is one: as it was looked for last.
    ahead: Option<(Lsn, Option<Lsn>)>,
}

impl Saver {
    fn save_all(&mut self) -> Result<()> {
        let source = Arc::clone(&self.source);
        let newest = self.firsts.last().copied().unwrap_or(self.begin);
        // A record that is longer than a segment ends in a later one.
        let limit = source.files().segment_end(newest);
        let mut window = Window::new(Arc::clone(&source));
        let mut expected = self.behind_cut_batch(&mut window, limit);
        for first in self.firsts.clone() {
            if source.files().segment_end(first) <= self.begin {
                self.pass_trimmed(first);
                continue;
            }
            if first > expected {
                self.note(expected, "the segment is missing");
            }
            expected = self.frames(&mut window, (first, limit), expected)?;
        }
        let most = limit.get() + MISSING_MAX * source.files().capacity();
        let known = known_end(&source).filter(|end| end.get() <= most);
        if let Some(end) = known.filter(|end| *end > self.run.1) {
            self.note(self.run.1, "records were acknowledged that are missing");
            self.leave_out(end)?;
        }
        self.flush()
    }

    /// No segment can be read.
    fn lose_all(&mut self) {
        for first in self.firsts.clone() {
            self.note(first, "nothing of the segment can be read");
        }
        self.new.lose(Lsn::ZERO, Lsn::MAX);
    }

    /// Passes over a segment before the beginning: a trim has left it, or it cannot be read.
    fn pass_trimmed(&mut self, first: Lsn) {
        let has_header = matches!(self.source.files().whole_header(first), Ok(Some(_)));
        if !has_header && !has_frame(&self.source, first) {
            self.note(first, "nothing of the segment can be read");
            self.new.lose(first, self.begin);
        }
    }

    /// Takes the later records of a batch whose start was trimmed.
    fn behind_cut_batch(&mut self, window: &mut Window, limit: Lsn) -> Lsn {
        let behind = behind_trimmed_batch(self.source.files(), window, self.begin, limit);
        let behind = behind.unwrap_or(self.begin);
        self.count(window, self.begin, behind);
        (self.run.1, self.cut) = (behind, behind);
        window.forget();
        behind
    }

    /// Takes the frames that start in the segment at `first`; returns where the last one ends.
    fn frames(
        &mut self,
        window: &mut Window,
        (first, limit): (Lsn, Lsn),
        from: Lsn,
    ) -> Result<Lsn> {
        let source = Arc::clone(&self.source);
        let end = source.files().segment_end(first);
        let mut lsn = from.max(first);
        while lsn < end {
            let found = frames::look_whole(source.files(), window, lsn, limit);
            if let Ok(Scan::Frame { kind, next, .. }) = found {
                self.take(window, lsn, kind, next)?;
                lsn = next;
                continue;
            }
            if let Err(error) = &found
                && error.kind() == ErrorKind::Incompatible
            {
                return found.map(|_| lsn);
            }
            // A file that cannot be read is passed over, as one that is missing is.
            let next = frames::find_next(&source, lsn, end)
                .unwrap_or_else(|_| Some(source.files().segment_end(lsn).min(end)));
            let has_more = next.is_some() || self.is_followed(lsn, limit);
            if !has_more {
                return Ok(end);
            }
            let reason = match &found {
                Ok(Scan::Invalid(reason)) => (*reason).to_string(),
                Ok(_) => "nothing was written here".to_string(),
                Err(error) => error.to_string(),
            };
            self.note(lsn, &reason);
            self.take_members(window, lsn, limit)?;
            lsn = next.unwrap_or(end).max(self.run.1);
            window.forget();
        }
        Ok(lsn)
    }

    /// Takes what is whole of a batch that is not, as records of their own. The start of the oldest
    /// one may be trimmed.
    fn take_members(&mut self, window: &mut Window, lsn: Lsn, limit: Lsn) -> Result<()> {
        let source = Arc::clone(&self.source);
        let (mut at, end) = match frames::look(source.files(), window, lsn, limit) {
            Ok(Scan::Frame { kind: Kind::Batch, payload_len, next }) => {
                (next, Lsn::new(next.get() + payload_len).min(limit))
            }
            _ if lsn == self.cut => (lsn, limit),
            _ => return Ok(()),
        };
        while at < end {
            let Ok(head) = window.fetch(at, HEADER_LEN as u64, end) else { return Ok(()) };
            let Ok(head) = head.try_into() else { return Ok(()) };
            // One that is damaged most likely has its length.
            let behind = Lsn::new(at.get() + Header::from_bytes(head).frame_len());
            if let Some(len) = member_len(&source, window, at, end) {
                let payload = window.fetch(at, len, behind)?[HEADER_LEN..].to_vec();
                self.take_member(at, payload)?;
            } else if behind >= end || member_len(&source, window, behind, end).is_none() {
                return Ok(());
            }
            at = behind;
        }
        Ok(())
    }

    fn take_member(&mut self, lsn: Lsn, mut payload: Vec<u8>) -> Result<()> {
        self.leave_out(lsn)?;
        let header = self.source.files().codec.record_of(lsn, &payload);
        self.report.records += 1;
        self.report.record_bytes +=
            (payload.len() - self.source.files().geometry.envelope_len()) as u64;
        payload.resize(payload.len().next_multiple_of(ALIGNMENT as usize), 0);
        self.new.write(lsn, &header.to_bytes())?;
        self.new.write(self.new.position(), &payload)?;
        self.run = (self.new.position(), self.new.position());
        Ok(())
    }

    /// Copies the frames so far, and leaves out the range between them and `lsn`.
    fn leave_out(&mut self, lsn: Lsn) -> Result<()> {
        if lsn > self.run.1 {
            self.lost.push((self.run.1, lsn));
        }
        self.flush()?;
        self.new.gap(lsn)?;
        self.run = (lsn, lsn);
        Ok(())
    }

    /// Takes the frame from `lsn` to `next`.
    fn take(&mut self, window: &mut Window, lsn: Lsn, kind: Kind, next: Lsn) -> Result<()> {
        if lsn > self.run.1 {
            self.leave_out(lsn)?;
        }
        if kind == Kind::CommitRecord && !self.is_true_still(window, lsn)? {
            self.flush()?;
            self.new.pad(next)?;
            self.run = (next, next);
            return Ok(());
        }
        self.count(window, lsn, next);
        self.run.1 = next;
        if next.get() - self.run.0.get() >= STEP { self.flush() } else { Ok(()) }
    }

    /// Whether what the commit record at `lsn` says was saved. If it was not, an older one counts,
    /// or none.
    fn is_true_still(&self, window: &mut Window, lsn: Lsn) -> Result<bool> {
        let frame = window.fetch(lsn, RECORD_LEN, Lsn::new(lsn.get() + RECORD_LEN))?;
        let Some(record) = CommitRecord::parse(self.source.files().codec, lsn, frame) else {
            return Ok(true);
        };
        let CommitRecord { begin, checkpoint, .. } = record;
        let is_kept = checkpoint == Lsn::ZERO || checkpoint >= self.begin;
        let is_lost = |(from, end): &(Lsn, Lsn)| {
            (*from..*end).contains(&checkpoint) || *from < begin && begin < *end
        };
        Ok(is_kept && !self.lost.iter().any(is_lost))
    }

    /// Counts the records from `lsn` to `end`.
    fn count(&mut self, window: &mut Window, mut lsn: Lsn, end: Lsn) {
        let envelope = self.source.files().geometry.envelope_len() as u64;
        while lsn < end
            && let Ok(Scan::Frame { kind, payload_len, next }) =
                frames::look(self.source.files(), window, lsn, end)
        {
            if matches!(kind, Kind::Record | Kind::Member) {
                self.report.records += 1;
                self.report.record_bytes += payload_len - envelope;
            }
            lsn = next;
        }
    }

    /// Copies the frames that were taken.
    fn flush(&mut self) -> Result<()> {
        let (mut at, end) = self.run;
        let mut window = Window::new(Arc::clone(&self.source));
        while at < end {
            let piece = self.source.files().segment_end(at).min(end);
            let len = (piece.get() - at.get()).min(STEP);
            let mut bytes = window.fetch(at, len, piece)?.to_vec();
            // A file may end in a pad, or in the padding behind a payload.
            bytes.resize(len as usize, 0);
            self.new.write(at, &bytes)?;
            at = Lsn::new(at.get() + len);
        }
        self.run.0 = end;
        Ok(())
    }

    /// Adds the named cursors, if they can be read. One in a lost range moves behind it.
    fn add_cursors(&mut self) -> Result<()> {
        let Ok(places) = cursors::file::places(self.source.files()) else { return Ok(()) };
        if places.iter().all(|place| place.entry.is_none()) {
            return Ok(());
        }
        let mut file = cursor::new_file(self.source.files().geometry.secret);
        for (index, place) in places.into_iter().enumerate() {
            let Some(mut entry) = place.entry.clone() else { continue };
            let lost = self.lost.iter().find(|(from, end)| (*from..*end).contains(&entry.lsn));
            entry.lsn = lost.map_or(entry.lsn, |(_, end)| *end).min(self.run.1);
            // Both images, as of a cursor that is made.
            let (offset, bytes, next) = place.next(index, Some(entry.clone()));
            let (other, again, _) = next.next(index, Some(entry));
            file[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
            file[other as usize..][..again.len()].copy_from_slice(&again);
        }
        self.new.add(CURSORS_NAME, &file)
    }

    /// Whether a whole frame is behind `lsn`: then damage is there, and not the end of the log.
    fn is_followed(&mut self, lsn: Lsn, limit: Lsn) -> bool {
        if let Some((from, found)) = self.ahead
            && lsn >= from
            && found.is_none_or(|found| found > lsn)
        {
            return found.is_some();
        }
        match frames::find_next(&self.source, lsn, limit) {
            Ok(found) => {
                self.ahead = Some((lsn, found));
                found.is_some()
            }
            Err(_) => true,
        }
    }

    fn note(&mut self, lsn: Lsn, reason: &str) {
        let first = self.source.files().segment_of(lsn);
        self.report.damage.push(damage(&*self.source, first, lsn, reason.into()));
    }
}
