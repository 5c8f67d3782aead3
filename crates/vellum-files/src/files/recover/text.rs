//! Finding the end of a text log from its files, and making them whole again.
//!
//! It ends behind its last byte that is not NUL. After a power cut that may be in the middle of a
//! line that was not committed: the line is ended, so that the next record does not become part of
//! it. Files that had got their names, but no text, are removed: the log continues before them. Old
//! files that retention had removed, and that a power cut brought back, go by its rules once more.
//!
//! **If the process dies here, or the power goes again**: the next opener finds the same text with
//! some of the places filled already, and does the rest.

use std::sync::Arc;

use crate::files::Files;
use crate::files::open_files::{open_file, open_to_read};
use crate::files::recover::plan::{Plan, Step};
use crate::files::recover::positions::{Loss, Positions, Recovered};
use crate::files::text::{last_newline, text_runs};
use crate::files::view::{Still, View};
use crate::format::text::{self, LINE_LEN_MAX};
use crate::lsn::Range;
use crate::segment::listing::Listing;
use crate::{Lsn, Result};

/// The length of the marker that a closed file without text gets.
const EMPTY_MARKER_LEN: u64 = 48;

/// Where a text log begins and ends, and the changes that recovery would make.
pub fn find_end(files: &Files, listing: &Arc<Listing>, loss: Loss) -> Result<(Positions, Plan)> {
    let mut firsts = listing.firsts();
    files.check_contiguous(&firsts)?;
    let mut search = Search {
        log: Still::listed(files, listing),
        listing: Arc::clone(listing),
        loss,
        steps: Vec::new(),
        padded_bytes: 0,
        from: Lsn::MAX,
        marker_end: Lsn::ZERO,
    };
    let (tail, newest_plain) = search.end_of_text(&firsts)?;
    let seen = search.positions(tail, &firsts);
    if loss == Loss::Words {
        return Ok((seen, Plan { steps: search.steps, positions: seen }));
    }
    let tail = match newest_plain {
        Some(first) => search.end_line(first, tail)?,
        None => tail,
    };
    let active = files.segment_of(tail);
    firsts.retain(|first| *first <= active);
    if search.steps.contains(&Step::EndLine(active)) && firsts.last() != Some(&active) {
        firsts.push(active);
    }
    let positions = search.positions(tail, &firsts);
    let Search { mut steps, .. } = search;
    let copies = listing.files.iter().filter_map(|file| file.plain.clone());
    steps.extend(copies.map(Step::Remove));
    steps.push(Step::Clear { from: tail, zeros: None });
    Ok((seen, Plan { steps, positions }))
}

/// The search for the end of the text.
struct Search {
    log: Still,
    listing: Arc<Listing>,
    loss: Loss,
    steps: Vec<Step>,
    /// Bytes that the steps fill in.
    padded_bytes: u64,
    /// From where on lines may have changed.
    from: Lsn,
    /// Where the last marker ends before a hole or the end of a segment, by the size that it tells.
    marker_end: Lsn,
}

impl Search {
    /// The positions of a log that ends at `tail` and has these files.
    fn positions(&self, tail: Lsn, firsts: &[Lsn]) -> Positions {
        let (files, begin) = (self.log.files(), firsts[0]);
        let positions = Positions {
            begin,
            // Text that is there after a power cut will be there after the next.
            durable: if self.loss == Loss::Power { tail } else { begin },
            tail,
            staged_from: tail,
            allocated_end: files.segment_end(firsts[firsts.len() - 1]),
            checkpoint: Lsn::ZERO,
            recovered: Recovered {
                durable: begin,
                cut_bytes: 0,
                padded_bytes: self.padded_bytes,
                from: self.from.min(tail),
            },
        };
        behind_missing(files, positions, firsts)
    }

    /// Where the text ends, and the newest file with text that is not compressed.
    ///
    /// NULs before the end were reserved by the dead, and are padded; or they were skipped at the
    /// end of a segment, and are cut off its file as its writer was about to do.
    fn end_of_text(&mut self, firsts: &[Lsn]) -> Result<(Lsn, Option<Lsn>)> {
        let (mut tail, mut newest_plain) = (firsts[0], None);
        let mut uncut: Vec<(Lsn, Lsn)> = Vec::new();
        for first in firsts {
            let files = self.log.files();
            let segment_end = files.segment_end(*first);
            let listed = self.listing.get(*first);
            let compressed = listed.map(|file| file.content_len(&files.dir)).transpose()?;
            if compressed.flatten().is_some() {
                // Closed: later text goes behind it.
                (tail, newest_plain) = (segment_end, None);
                continue;
            }
            let text_end = self.pad_holes(*first)?;
            if text_end > *first {
                for (first, end) in uncut.drain(..) {
                    self.close(first, end)?;
                }
                (tail, newest_plain) = (text_end, Some(*first));
            }
            if text_end < segment_end {
                uncut.push((*first, text_end));
            }
        }
        Ok((tail, newest_plain))
    }

    /// Has the holes in the text of a segment padded; returns where the text ends.
    fn pad_holes(&mut self, first: Lsn) -> Result<Lsn> {
        let mut text_end = first;
        let segment_end = self.log.files().segment_end(first);
        let mut before = None;
        for run in text_runs(&self.log, &mut self.listing, first)? {
            if run.start > text_end {
                self.find_marker(first, before)?;
                self.pad(Range { start: text_end, len: run.start.get() - text_end.get() })?;
            }
            (text_end, before) = (run.end(), Some(run));
        }
        if text_end == segment_end {
            self.find_marker(first, before)?;
        }
        Ok(text_end)
    }

    /// Has a hole padded. As far as it is in a marker that tells its size, nothing is told again.
    fn pad(&mut self, hole: Range) -> Result<()> {
        self.note(hole)?;
        let told_end = self.marker_end.clamp(hole.start, hole.end());
        let len = told_end.get() - hole.start.get();
        let steps = [
            Step::Continue(Range { start: hole.start, len }),
            Step::Pad(Range { start: told_end, len: hole.len - len }),
        ];
        let is_empty = |step: &Step| matches!(step, Step::Continue(r) | Step::Pad(r) if r.len == 0);
        self.steps.extend(steps.into_iter().filter(|step| !is_empty(step)));
        Ok(())
    }

    /// Looks for the marker in the middle of which the run of text ends.
    fn find_marker(&mut self, first: Lsn, run: Option<Range>) -> Result<()> {
        let Some(run) = run.filter(|run| run.end() > self.marker_end) else { return Ok(()) };
        let segment = open_file(&self.log, &mut self.listing, first)?;
        let mut end = run.end();
        loop {
            let newline = last_newline(&self.log, first, Lsn::new(end.get() - 1))?;
            let start = newline.map_or(run.start, |newline| Lsn::new(newline.get() + 1));
            let start = start.max(run.start);
            let mut line = vec![0; (end.get() - start.get()).min(LINE_LEN_MAX as u64) as usize];
            segment.read(start, &mut line)?;
            if let Some(lost) = text::told(&line) {
                self.marker_end = Lsn::new(start.get().saturating_add(lost));
                return Ok(());
            }
            // Lines of tildes continue a marker.
            let is_filler = line.trim_ascii_end().iter().all(|byte| *byte == b'~');
            if !is_filler || start == run.start {
                return Ok(());
            }
            end = start;
        }
    }

    /// Has a file end behind its text, in a whole line. One without text gets a short marker: an
    /// empty file would pass for one that another program has emptied.
    fn close(&mut self, first: Lsn, end: Lsn) -> Result<()> {
        if end == first {
            let marker = Range { start: first, len: EMPTY_MARKER_LEN };
            self.note(marker)?;
            self.steps.push(Step::Mark(marker));
            return Ok(());
        }
        let end = match self.loss {
            Loss::Power => self.end_line(first, end)?,
            Loss::Words => end,
        };
        self.steps.push(Step::Cut { first, end });
        Ok(())
    }

    /// Has the line before `end`, in the segment at `first`, ended, if a power cut has torn it;
    /// returns where it ends then. One that fills its segment ends in the next.
    fn end_line(&mut self, first: Lsn, end: Lsn) -> Result<Lsn> {
        let mut last = *b"\n";
        let segment = open_file(&self.log, &mut self.listing, first)?;
        segment.read(Lsn::new(end.get() - 1), &mut last)?;
        if last == *b"\n" {
            return Ok(end);
        }
        self.note(Range { start: end, len: 1 })?;
        self.steps.push(Step::EndLine(end));
        Ok(Lsn::new(end.get() + 1))
    }

    /// Notes a place that is filled in: the line in which it begins has lost something.
    fn note(&mut self, range: Range) -> Result<()> {
        self.padded_bytes += range.len;
        if range.start < self.from {
            self.from = self.start_of_line(range.start)?;
        }
        Ok(())
    }

    /// Where the line begins that `end` is in, or that ends there. A line that fills a segment
    /// continues in the next.
    fn start_of_line(&self, mut end: Lsn) -> Result<Lsn> {
        loop {
            let first = self.log.files().segment_of(Lsn::new(end.get() - 1));
            match self.listing.get(first) {
                None => return Ok(end),
                // Nothing tells without decompressing it.
                Some(file) if file.is_compressed() => return Ok(first),
                Some(_) => {}
            }
            if self.end_of_file(first)? < end {
                return Ok(end);
            }
            match last_newline(&self.log, first, end)? {
                Some(newline) => return Ok(Lsn::new(newline.get() + 1)),
                None => end = first,
            }
        }
    }

    /// Where the file of the segment at `first` ends once the steps are taken.
    fn end_of_file(&self, first: Lsn) -> Result<Lsn> {
        let planned = self.steps.iter().find_map(|step| match *step {
            Step::Cut { first: cut, end } if cut == first => Some(end),
            Step::Mark(marker) if marker.start == first => Some(marker.end()),
            _ => None,
        });
        match planned {
            Some(end) => Ok(end),
            None => Ok(Lsn::new(first.get() + open_to_read(&self.log, first)?.data_len()?)),
        }
    }
}

/// Has the log continue in the next file where the one is gone that it ended in: positions are not
/// given twice.
pub fn behind_missing(files: &Files, positions: Positions, firsts: &[Lsn]) -> Positions {
    let active = files.segment_of(positions.tail);
    if positions.allocated_end <= active || firsts.contains(&active) {
        return positions;
    }
    let tail = Lsn::new(positions.tail.get().next_multiple_of(files.capacity()));
    match (firsts.iter().find(|first| **first >= tail), firsts.last()) {
        (Some(first), Some(last)) => {
            Positions { tail: *first, allocated_end: files.segment_end(*last), ..positions }
        }
        _ => Positions { tail, allocated_end: tail, ..positions },
    }
}
