//! The records of a shipped log, without a log on this machine.

use std::collections::VecDeque;

use bytes::Bytes;
use vellum::ship::Decoder;
use vellum::{Lsn, Record};

use super::{Extent, Fetched, Pieces, ReadError, Remote};

/// The records of a log in one chunk, or a part of them.
#[derive(Clone, Debug)]
pub struct Part {
    /// The position of its first byte.
    pub start: u64,
    /// The position behind it.
    pub end: u64,
    /// When it was shipped, in nanoseconds since 1970; never before the part before it.
    pub time: u64,
    /// Its bytes.
    pub raw: Bytes,
}

/// The parts of an extent, in order.
pub struct Parts<'a> {
    pieces: Pieces<'a>,
    waiting: VecDeque<Part>,
    time: u64,
}

impl<'a> Parts<'a> {
    /// The parts of `extent`, of which `jobs` objects are fetched at the same time.
    pub fn new(remote: &'a Remote, extent: &Extent, jobs: usize) -> Parts<'a> {
        let pieces = Pieces::new(remote, extent, extent.begin, jobs);
        Parts { pieces, waiting: VecDeque::new(), time: 0 }
    }

    /// The next part; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Part>, ReadError> {
        while self.waiting.is_empty() {
            let Some(fetched) = self.pieces.next().await? else { return Ok(None) };
            self.split(fetched);
        }
        Ok(self.waiting.pop_front())
    }

    fn split(&mut self, fetched: Fetched) {
        let first = fetched.piece.header.start;
        let raw = fetched.raw;
        let offset = |lsn: u64| (lsn - first).min(raw.len() as u64) as usize;
        let mut start = first;
        for (end, time) in fetched.marks {
            // A clock that was put back counts as standing still.
            self.time = self.time.max(time);
            let raw = raw.slice(offset(start)..offset(end).max(offset(start)));
            self.waiting.push_back(Part { start, end, time: self.time, raw });
            start = end;
        }
    }
}

/// Finds the records in parts.
pub struct Records {
    decoder: Decoder,
    /// Where the next part begins if nothing is missing.
    at: Option<u64>,
}

impl Records {
    /// Records of the log. The first part has to begin where a record does.
    pub fn new(remote: &Remote) -> Records {
        Records { decoder: Decoder::new(remote.shape()), at: None }
    }

    /// Gives the records that are whole with this part to `each`.
    pub fn take<E: From<ReadError>>(
        &mut self,
        part: &Part,
        mut each: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.goes_on(part) {
            self.finish(&mut each)?;
        }
        self.push(part);
        while let Some(record) = self.next()? {
            each(record)?;
        }
        Ok(())
    }

    /// Gives the last line of a text log, if it has no end.
    pub fn finish<E>(
        &mut self,
        mut each: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.rest().map_or(Ok(()), &mut each)
    }

    /// Whether the part follows what was pushed. If not, [`rest`](Records::rest) comes before it.
    pub fn goes_on(&self, part: &Part) -> bool {
        self.at.is_none_or(|at| at == part.start)
    }

    /// Takes the bytes of a part. An incomplete record is dropped if the part does not follow it.
    pub fn push(&mut self, part: &Part) {
        // A gap, or the end of a file, has fewer bytes than positions.
        self.at = Some(part.start + part.raw.len() as u64);
        if !part.raw.is_empty() {
            self.decoder.push(Lsn::new(part.start), &part.raw);
        }
    }

    /// The next whole record; `None` where more bytes are needed.
    #[allow(clippy::should_implement_trait)] // It lends its bytes.
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        Ok(self.decoder.next()?)
    }

    /// The last line of a text log, if it has no end.
    pub fn rest(&mut self) -> Option<Record<'_>> {
        self.decoder.rest()
    }
}
