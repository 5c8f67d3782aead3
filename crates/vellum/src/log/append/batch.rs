//! Several records that appear all or none.

use crate::format::envelope::ENVELOPE_LEN;
use crate::format::frame::{HEADER_LEN, Header, PAYLOAD_LEN_MAX, frame_len};
use crate::log::append::Append;
use crate::log::append::general::Text;
use crate::log::state::core::Core;
use crate::log::state::writer::Writer;
use crate::{Error, ErrorKind, Lsn, Result};

/// Records that are appended together.
///
/// Made by [`Log::batch`](crate::Log::batch). Records are collected in memory and appended by one
/// reservation: readers see all of them or none, one after the other with nothing between, also
/// after the death of any process.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let log = vellum::Options::wal().open(dir.path().join("a.wal"))?;
/// let mut transfer = log.batch();
/// transfer.push(b"take 5 from a")?;
/// transfer.push(b"give 5 to b")?;
/// let first = transfer.append()?; // both, or none
/// log.commit(first)?;             // the records of a batch are durable together
/// # assert_eq!(log.reader(first)?.into_iter().count(), 2);
/// # Ok::<(), vellum::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a batch is appended by `append`"]
pub struct Batch<'a> {
    core: &'a Core,
    /// Framed: a batch header, then a frame each, headers still empty. Text: the lines.
    bytes: Vec<u8>,
    /// Where each record starts in them. A batch is shorter than 4 GiB.
    starts: Vec<u32>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(core: &'a Core) -> Batch<'a> {
        let bytes = vec![0; core.files.geometry.layout.record_header_len()];
        Batch { core, bytes, starts: Vec::new() }
    }

    /// Adds a record.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::RecordTooLarge`] when the batch would take more than 4 GiB − 1; it stays as it
    /// was.
    ///
    /// # Cost
    ///
    /// A copy of the record in memory.
    pub fn push(&mut self, record: &[u8]) -> Result<()> {
        let len = record.len() as u64;
        Append::of(self.core).check_record_len(len)?;
        let envelope_len = self.core.files.geometry.envelope_len();
        let len = len + envelope_len as u64;
        let total = self.bytes.len() as u64 + frame_len(len);
        if total > PAYLOAD_LEN_MAX {
            let message = format!("a batch of {total} bytes is too long; it may have 4294967295");
            return Err(Error::new(ErrorKind::RecordTooLarge, message));
        }
        self.starts.push(self.bytes.len() as u32);
        if self.core.files.geometry.layout.has_frames() {
            let header = Header { length: len as u32, check: 0 };
            self.bytes.extend_from_slice(&header.to_bytes());
            // Of the envelope no more is known yet than how long it is.
            self.bytes.resize(self.bytes.len() + envelope_len, 0);
            self.bytes.extend_from_slice(record);
            self.bytes.resize(total as usize, 0);
        } else {
            self.bytes.extend_from_slice(record);
        }
        Ok(())
    }

    /// Records added so far.
    pub fn len(&self) -> u64 {
        self.starts.len() as u64
    }

    /// Whether no record has been added.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Appends all of them; returns the position of the first.
    ///
    /// # Errors
    ///
    /// As for [`Log::append`](crate::Log::append), and [`ErrorKind::InvalidOption`] for a batch
    /// without records. After an error none of them is in the log.
    ///
    /// # Durability
    ///
    /// As for [`Log::append`](crate::Log::append), for all of them together.
    pub fn append(mut self) -> Result<Lsn> {
        self.write()
    }

    /// As [`append`](Batch::append), and returns the position of each record, in the order in which
    /// they were pushed; [`Lsn::ZERO`] for each if they were [dropped](crate::OnFull::Drop).
    ///
    /// # Errors, Durability
    ///
    /// As for [`append`](Batch::append).
    pub fn append_each(mut self) -> Result<Vec<Lsn>> {
        let first = self.write()?;
        let offset = |start: &u32| u64::from(start - self.starts[0]);
        let position = |start: &u32| match first {
            Lsn::ZERO => Lsn::ZERO,
            first => Lsn::new(first.get() + offset(start)),
        };
        Ok(self.starts.iter().map(position).collect())
    }

    /// Appends the records; returns the position of the first.
    fn write(&mut self) -> Result<Lsn> {
        let core = self.core;
        if self.is_empty() {
            let message = "a batch without records cannot be appended; push a record first";
            return Err(Error::new(ErrorKind::InvalidOption, message));
        }
        if self.bytes.is_empty() {
            // Empty lines without newlines: nothing to write.
            return Append::of(core).append_parts(&[]);
        }
        let (count, bytes) = (self.len(), &mut self.bytes);
        let append = Append::of(core);
        append.retry_when_full(|| match core.files.geometry.layout.has_frames() {
            true => append_frames(append, count, bytes),
            false => {
                let len = bytes.len() as u64;
                append.append_text(Text { parts: &[bytes], len, records: count })
            }
        })
    }
}

/// Appends a batch of so many frames; returns the position of the first record.
fn append_frames(append: Append<'_>, count: u64, bytes: &mut [u8]) -> Result<Lsn> {
    let len = bytes.len() as u64;
    let at = append.append_with(count, len, |filler, at| {
        write_headers(filler.writer, bytes, at);
        filler.bytes(at, &[bytes])
    })?;
    Ok(Lsn::new(at.get() + HEADER_LEN as u64))
}

/// Completes the headers, now that the position of the batch is known, and the envelopes, which are
/// all the same.
fn write_headers(writer: Writer<'_>, bytes: &mut [u8], at: Lsn) {
    let envelope = writer.core.files.geometry.has_envelope.then(|| writer.envelope().to_bytes());
    let inner_len = (bytes.len() - HEADER_LEN) as u32;
    bytes[..HEADER_LEN].copy_from_slice(&writer.core.files.codec.batch(at, inner_len).to_bytes());
    let mut offset = HEADER_LEN;
    while offset < bytes.len() {
        let (head, rest) = bytes[offset..].split_at_mut(HEADER_LEN);
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        if let Some(envelope) = envelope {
            rest[..ENVELOPE_LEN].copy_from_slice(&envelope);
        }
        let lsn = Lsn::new(at.get() + offset as u64);
        let header = writer.core.files.codec.member(lsn, length, &rest[..length as usize]);
        head.copy_from_slice(&header.to_bytes());
        offset += frame_len(u64::from(length)) as usize;
    }
}
