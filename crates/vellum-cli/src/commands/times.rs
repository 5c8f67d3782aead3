//! Records of a time.

mod stamp;

use std::time::SystemTime;

use vellum::stat::SegmentStat;
use vellum::{Layout, Log, Lsn, Record};

use crate::args::CatArgs;
use stamp::Stamps;

/// Where the text ends that may be of a time before the one that files are named by from `end`
/// on.
///
/// Lines may tell an earlier time than the name of their file: they were brought there later. So
/// the files up to the last one that begins with a time are read. Where none does, names decide.
fn end_of_text(log: &Log, stamps: &Stamps, end: Lsn) -> vellum::Result<Lsn> {
    if end == Lsn::MAX {
        return Ok(end);
    }
    let segments = log.stat()?.segments;
    let has_time = |segment: &&SegmentStat| {
        let mut reader = log.reader(segment.first_lsn).ok();
        let record = reader.as_mut().and_then(|reader| reader.next().ok().flatten());
        record.is_some_and(|record| stamps.read(record.payload).is_some())
    };
    let mut later = segments.iter().rev().take_while(|segment| segment.first_lsn >= end);
    let end = match later.find(has_time) {
        None => end,
        Some(last) => segments
            .iter()
            .map(|segment| segment.first_lsn)
            .find(|first| *first > last.first_lsn)
            .unwrap_or(Lsn::MAX),
    };
    if end == Lsn::MAX {
        return Ok(end);
    }
    // In front of it, where a file starts that need not be opened.
    let last = segments.iter().rfind(|segment| segment.first_lsn < end);
    Ok(last.map_or(end, |last| match last.path.extension() {
        Some(extension) if extension == "log" => Lsn::new(last.first_lsn.get() + last.file_bytes),
        // However it is compressed, its end is known.
        _ => last.end_lsn,
    }))
}

/// Which records are printed, by when they were appended.
pub(super) struct Times {
    since: Option<SystemTime>,
    until: Option<SystemTime>,
    /// Reads the times that lines of a text log begin with.
    stamps: Option<Stamps>,
    /// The time of the line before.
    time: Option<SystemTime>,
    /// From here on none is.
    pub(super) end: Lsn,
    has_printed: bool,
    /// Where the log ends.
    log_end: Lsn,
}

impl Times {
    /// The wanted times, in this log.
    pub(super) fn of(log: &Log, args: &CatArgs) -> vellum::Result<Times> {
        let CatArgs { since, until, .. } = *args;
        let is_asked = since.is_some() || until.is_some();
        let stamps = (is_asked && log.layout() == Layout::Text).then(Stamps::local);
        let end = match until {
            Some(_) => log.positions_of_time(None, until)?.end,
            None => Lsn::MAX,
        };
        let end = stamps.as_ref().map_or(Ok(end), |stamps| end_of_text(log, stamps, end))?;
        Ok(Times {
            since,
            until,
            stamps,
            time: None,
            end,
            has_printed: false,
            log_end: log.published(),
        })
    }

    /// The treatment of the lines of a text log of which none begins with a time.
    pub(super) fn are_unknown(&self) -> Option<&'static str> {
        if self.stamps.is_none() || self.time.is_some() {
            return None;
        }
        match self.has_printed {
            true => Some("whole files were printed"),
            false if self.end < self.log_end => {
                Some("files that are named by a later time were left out")
            }
            false => None,
        }
    }

    /// Whether the record is among them; one whose time is not known is. A line without a time has
    /// that of the line before.
    pub(super) fn have(&mut self, record: Record<'_>) -> bool {
        let time = match &self.stamps {
            Some(stamps) => {
                self.time = stamps.read(record.payload).or(self.time);
                self.time
            }
            None => record.time(),
        };
        let is_one = time.is_none_or(|time| {
            self.since.is_none_or(|since| since <= time)
                && self.until.is_none_or(|until| time < until)
        });
        self.has_printed |= is_one;
        is_one
    }
}
