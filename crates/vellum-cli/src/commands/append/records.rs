//! A stream of bytes cut into records at a delimiter.
//!
//! The input is read in large pieces, and a record is lent from the buffer it was read into; the
//! buffer grows only for a record that is longer, up to the most that a record may have. A longer
//! record is cut.

use std::io::{ErrorKind, Read};

use anyhow::Context;
use vellum_command::outcome::Result;

/// Read at once: large enough that system calls don't count.
const BUFFER_BYTES: usize = 1 << 20;

/// The records of `input`.
pub(super) struct Records<R> {
    input: R,
    delimiter: u8,
    record_bytes_max: usize,
    buffer: Vec<u8>,
    /// Bytes that were read and not yet handed out: `buffer[start..end]`.
    start: usize,
    end: usize,
    is_at_end: bool,
    has_cut: bool,
}

/// A record of the input, with its delimiter unless the input ended without one or it was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    bytes: &'a [u8],
    is_delimited: bool,
}

impl<'a> Record<'a> {
    /// The bytes between the delimiters.
    pub(super) fn payload(self) -> &'a [u8] {
        &self.bytes[..self.bytes.len() - usize::from(self.is_delimited)]
    }

    /// The same with the delimiter at its end, if it is there.
    pub(super) fn delimited(self) -> Option<&'a [u8]> {
        self.is_delimited.then_some(self.bytes)
    }
}

impl<R: Read> Records<R> {
    /// Cuts `input` at each `delimiter`, and behind `record_bytes_max` bytes without one.
    pub(super) fn new(input: R, delimiter: u8, record_bytes_max: usize) -> Records<R> {
        Records::with_limits(input, delimiter, BUFFER_BYTES, record_bytes_max)
    }

    /// Whether a record was cut since this was asked last.
    pub(super) fn take_cut(&mut self) -> bool {
        std::mem::take(&mut self.has_cut)
    }

    fn with_limits(
        input: R,
        delimiter: u8,
        buffer_bytes: usize,
        record_bytes_max: usize,
    ) -> Records<R> {
        let buffer = vec![0; buffer_bytes];
        let (start, end, is_at_end, has_cut) = (0, 0, false, false);
        Records { input, delimiter, record_bytes_max, buffer, start, end, is_at_end, has_cut }
    }

    /// The next record; `None` at the end. A delimiter at the very end begins no further record.
    pub(super) fn next(&mut self) -> Result<Option<Record<'_>>> {
        let mut searched = 0;
        let (mut len, mut is_delimited) = loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(offset) = memchr::memchr(self.delimiter, &unread[searched..]) {
                break (searched + offset + 1, true);
            }
            searched = unread.len();
            if self.is_at_end || searched > self.record_bytes_max {
                break (searched, false);
            }
            self.read_more()?;
        };
        if len - usize::from(is_delimited) > self.record_bytes_max {
            (len, is_delimited, self.has_cut) = (self.record_bytes_max, false, true);
        }
        let bytes = &self.buffer[self.start..self.start + len];
        self.start += len;
        Ok((len > 0).then_some(Record { bytes, is_delimited }))
    }

    /// The next record with all whole ones behind it that were read already, as long as together
    /// they have no more than `bytes_max`; and how many those are.
    pub(super) fn next_many(&mut self, bytes_max: usize) -> Result<Option<(Record<'_>, u64)>> {
        let Some(Record { bytes, is_delimited }) = self.next()? else { return Ok(None) };
        let len = bytes.len();
        let (from, mut count) = (self.start - len, 1);
        if is_delimited {
            let most = bytes_max.saturating_sub(len).min(self.end - self.start);
            let read = &self.buffer[self.start..self.start + most];
            if let Some(last) = memchr::memrchr(self.delimiter, read) {
                count += memchr::memchr_iter(self.delimiter, &read[..=last]).count() as u64;
                self.start += last + 1;
            }
        }
        let bytes = &self.buffer[from..self.start];
        Ok(Some((Record { bytes, is_delimited }, count)))
    }

    fn read_more(&mut self) -> Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            // One more than a record may have, to notice that it has.
            let len = (self.end * 2).min(self.record_bytes_max + 1).max(self.end + 1);
            self.buffer.resize(len, 0);
        }
        let count = loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => break result.context("cannot read standard input")?,
            }
        };
        self.end += count;
        self.is_at_end = count == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payloads(input: &[u8], delimiter: u8, buffer_bytes: usize) -> Vec<Vec<u8>> {
        let mut records = Records::with_limits(input, delimiter, buffer_bytes, 100);
        let mut payloads = Vec::new();
        while let Some(record) = records.next().unwrap() {
            payloads.push(record.payload().to_vec());
        }
        payloads
    }

    #[test]
    fn records_are_the_same_whatever_the_size_of_the_buffer() {
        let input = b"one\n\nthree is longer\n\0four";
        for buffer_bytes in 1..40 {
            let lines = payloads(input, b'\n', buffer_bytes);
            assert_eq!(lines, [&b"one"[..], b"", b"three is longer", b"\0four"], "{buffer_bytes}");
            let nul = payloads(input, 0, buffer_bytes);
            assert_eq!(nul, [&b"one\n\nthree is longer\n"[..], b"four"], "{buffer_bytes}");
        }
    }

    #[test]
    fn what_one_read_brought_comes_together_in_whole_records() {
        let input = b"one\n\nthree is longer\nfour\nfive";
        for buffer_bytes in 1..40 {
            for bytes_max in 0..40 {
                let mut records = Records::with_limits(&input[..], b'\n', buffer_bytes, 100);
                let (mut found, mut total) = (Vec::new(), 0);
                while let Some((record, count)) = records.next_many(bytes_max).unwrap() {
                    assert!(count == 1 || record.bytes.len() <= bytes_max);
                    assert!(record.is_delimited || record.bytes == b"five");
                    found.extend_from_slice(record.bytes);
                    total += count;
                }
                assert_eq!((found.as_slice(), total), (&input[..], 5));
            }
        }
        let mut records = Records::with_limits(&input[..], b'\n', 100, 100);
        assert_eq!(records.next_many(22).unwrap().unwrap().1, 3);
    }

    #[test]
    fn nothing_is_no_record_and_a_newline_is_an_empty_one() {
        assert!(payloads(b"", b'\n', 8).is_empty());
        assert_eq!(payloads(b"\n", b'\n', 8), [b""]);
    }

    #[test]
    fn a_record_that_is_too_long_is_cut() {
        let input = [&b"short\n"[..], &[b'x'; 250], b"\nlast"].concat();
        for buffer_bytes in [1, 50, 106, 1000] {
            let mut records = Records::with_limits(&input[..], b'\n', buffer_bytes, 100);
            assert_eq!(records.next().unwrap().unwrap().payload(), b"short");
            assert!(!records.take_cut());
            for (len, is_cut) in [(100, true), (100, true), (50, false)] {
                assert_eq!(records.next().unwrap().unwrap().payload(), vec![b'x'; len]);
                assert_eq!(records.take_cut(), is_cut, "{buffer_bytes}");
            }
            assert_eq!(records.next().unwrap().unwrap().payload(), b"last");
            assert!(records.buffer.len() <= 101.max(buffer_bytes));
        }
        assert_eq!(payloads(&[b'x'; 100], b'\n', 10)[0].len(), 100);
    }
}
