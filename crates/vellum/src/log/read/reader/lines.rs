//! The lines of a text log.

use crate::files::gap;
use crate::log::read::reader::{Place, Reader, trimmed};
use crate::{Error, ErrorKind, Lsn, Result};

/// How far a newline is looked for at first.
const SEARCHED_BYTES: u64 = 4096;

impl Reader {
    pub(crate) fn next_line(&mut self) -> Result<Option<Place>> {
        while self.has_more()? {
            let lsn = self.position;
            match self.find_line() {
                Ok(Some((len, next))) => {
                    let begin = self.core.begin().get();
                    if lsn.get() < begin {
                        return Err(trimmed(&self.core, lsn, Lsn::new(begin)));
                    }
                    if self.skips_damage
                        && lsn == self.core.files.segment_of(lsn)
                        && self.pass_nuls(len)?
                    {
                        continue;
                    }
                    self.position = next;
                    return Ok(Some(Place { lsn, next, header_len: 0, len }));
                }
                // The end of a segment that was cut: continue at the next.
                Ok(None) => {
                    let end = self.core.files.segment_end(lsn);
                    if self.skips_damage
                        && (self.is_in_line || lsn == self.core.files.segment_of(lsn))
                    {
                        self.gaps.extend(gap::gap_behind(&*self.core, lsn, end));
                    }
                    self.position = end;
                }
                Err(error) => self.pass_damage(error)?,
            }
        }
        Ok(None)
    }

    /// Continues behind the NULs that a file begins with, if a user has emptied it while a process
    /// wrote: that process continues at its position. NULs that were appended are told from them by
    /// the rest of the line, of `len` bytes in all: it has no text, or has NULs itself.
    fn pass_nuls(&mut self, len: u64) -> Result<bool> {
        let (lsn, limit) = (self.position, self.read_limit.end);
        if self.window.fetch(lsn, 1, limit)? != [0] {
            return Ok(false);
        }
        let line = self.window.fetch(lsn, len, limit)?;
        let count = line.iter().take_while(|byte| **byte == 0).count();
        let text = &line[count..];
        if text.is_empty() || text == b"\n" || text.contains(&0) {
            return Ok(false);
        }
        self.position = Lsn::new(lsn.get() + count as u64);
        let reason = format!(
            "bytes 0 to {count} are NULs: the file was emptied while a process wrote to it; \
             restore it"
        );
        self.gaps.push(gap::gap_between(&*self.core, lsn, self.position, reason));
        Ok(true)
    }

    /// Length of the line at the position and where the next one starts; `None` at the end of a
    /// segment's text.
    fn find_line(&mut self) -> Result<Option<(u64, Lsn)>> {
        match self.short_line() {
            Some(len) => Ok(Some((len, Lsn::new(self.position.get() + len)))),
            None => self.find_long_line(),
        }
    }

    /// Length of the line at the position, if it is short. Where its newline is there, nothing has
    /// to be known of where the text ends: a system call for each line of a file that is closed.
    fn short_line(&mut self) -> Option<u64> {
        let (start, limit) = (self.position, self.read_limit.end);
        let end = self.hole_behind(start).min(self.core.files.segment_end(start));
        if let Some(offset) = memchr::memchr(b'\n', self.window.held(start, end)) {
            return Some(offset as u64 + 1);
        }
        let len = (end.get() - start.get()).min(SEARCHED_BYTES);
        let bytes = self.window.fetch(start, len, limit).ok()?;
        memchr::memchr(b'\n', bytes).map(|offset| offset as u64 + 1)
    }

    /// The same for a line of any length, and for a range that cannot be read.
    fn find_long_line(&mut self) -> Result<Option<(u64, Lsn)>> {
        let (start, limit) = (self.position, self.read_limit.end);
        let mut searched = 0;
        let mut data_end = self.text_end(start)?;
        if start >= data_end {
            return Ok(None);
        }
        loop {
            let available = data_end.get() - start.get();
            let len = (searched * 2).max(SEARCHED_BYTES).min(available);
            let bytes = self.window.fetch(start, len, limit)?;
            // A process may have cut the file since.
            let unsearched = bytes.get(searched as usize..).unwrap_or_default();
            let newline = memchr::memchr(b'\n', unsearched);
            if let Some(offset) = newline {
                let len = searched + offset as u64 + 1;
                return Ok(Some((len, Lsn::new(start.get() + len))));
            }
            if (bytes.len() as u64) < len {
                let message = "the segment is shorter than what was published in it";
                return Err(Error::new(ErrorKind::Corrupt, message).at_lsn(start));
            }
            searched = len;
            if searched < available {
                continue;
            }
            // A full segment without a newline at its end: a line longer than a segment continues.
            let is_full = data_end.get().is_multiple_of(self.core.files.capacity());
            if !is_full || data_end >= limit {
                return Ok(Some((len, data_end)));
            }
            let next_end = self.text_end(data_end)?;
            if next_end == data_end {
                return Ok(Some((len, data_end)));
            }
            data_end = next_end;
        }
    }

    /// Where the text of the segment that holds `lsn` ends, as far as it is published; or where
    /// something begins that a dead writer had reserved.
    fn text_end(&mut self, lsn: Lsn) -> Result<Lsn> {
        let hole = self.hole_behind(lsn);
        let first = self.core.files.segment_of(lsn);
        if hole < self.core.files.segment_end(lsn) {
            return Ok(hole);
        }
        let end = first.get() + self.window.segment_data_len(first)?;
        Ok(Lsn::new(end).min(hole))
    }

    /// Where what was published ends, or something begins that a dead writer had reserved.
    fn hole_behind(&self, lsn: Lsn) -> Lsn {
        let mut holes = self.read_limit.holes.iter().filter(|hole| lsn < hole.range.end());
        holes.next().map_or(self.read_limit.end, |hole| hole.range.start.max(lsn))
    }
}
