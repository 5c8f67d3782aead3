//! Records of a time.

mod stamp;

use std::time::SystemTime;

use vellum::{Layout, Log, Lsn, Record};

use crate::args::CatArgs;
use stamp::Stamps;

/// The end of the text in front of `end`, where a file of a text log starts that nobody needs to
/// open. In a framed log, `end` itself.
fn end_of_text(log: &Log, end: Lsn) -> vellum::Result<Lsn> {
    if log.layout() != Layout::Text || end == Lsn::MAX {
        return Ok(end);
    }
    let segments = log.stat()?.segments;
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
}

impl Times {
    /// What the user asks for, in this log.
    pub(super) fn of(log: &Log, args: &CatArgs) -> vellum::Result<Times> {
        let CatArgs { since, until, .. } = *args;
        let end = match until {
            Some(_) => end_of_text(log, log.positions_of_time(None, until)?.end)?,
            None => Lsn::MAX,
        };
        let is_asked = since.is_some() || until.is_some();
        let stamps = (is_asked && log.layout() == Layout::Text).then(Stamps::local);
        Ok(Times { since, until, stamps, time: None, end })
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
        time.is_none_or(|time| {
            self.since.is_none_or(|since| since <= time)
                && self.until.is_none_or(|until| time < until)
        })
    }
}
