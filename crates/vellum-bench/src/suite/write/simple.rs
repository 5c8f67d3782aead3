//! Table `simple`: one thread, one file, call after call; by the call and the size of its pieces.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::clock::once;
use super::config::{Config, Table};
use super::entry::{Entry, Job, Sample, Site};
use super::source::Source;
use super::state::State;
use crate::bytes::size;
use crate::error::{Context, Result};
use crate::ways::stdio::Stream;

/// A vectored call takes so many chunks.
const VECTOR_CHUNKS: usize = 128;
/// Beyond this a vectored call is one of whole files.
const VECTOR_CHUNK_BYTES_MAX: u64 = 16 << 20;

/// A call that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Write,
    Pwrite,
    Stdio,
    Writev,
    Pwritev,
}

impl Call {
    const ALL: [Call; 5] = [Call::Write, Call::Pwrite, Call::Stdio, Call::Writev, Call::Pwritev];

    fn as_str(self) -> &'static str {
        match self {
            Call::Write => "write",
            Call::Pwrite => "pwrite",
            Call::Stdio => "stdio",
            Call::Writev => "writev x128",
            Call::Pwritev => "pwritev x128",
        }
    }

    fn is_vectored(self) -> bool {
        matches!(self, Call::Writev | Call::Pwritev)
    }
}

struct Simple {
    call: Call,
    state: State,
    chunk: usize,
}

impl Job for Simple {
    fn run(&self, site: &Site<'_>) -> Result<Sample> {
        let (file, preparation) = self.state.make(&site.file(), site.bytes)?;
        let call_bytes = self.call_bytes().min(site.bytes);
        let mut writer = Writer::new(self.call, self.chunk, file, &site.file())?;
        let mut source = Source::new(call_bytes as usize, site.round);
        let write = once(|| {
            for offset in (0..site.bytes).step_by(call_bytes as usize) {
                let len = call_bytes.min(site.bytes - offset) as usize;
                writer.write(source.piece(offset, len), offset).trying(self.call.as_str())?;
            }
            writer.finish().trying(self.call.as_str())
        })?;
        let sync = once(|| writer.file.sync_all().trying("fsync"))?;
        Ok(Sample::new(preparation, write, sync))
    }
}

impl Simple {
    fn call_bytes(&self) -> u64 {
        let chunks = if self.call.is_vectored() { VECTOR_CHUNKS as u64 } else { 1 };
        self.chunk as u64 * chunks
    }
}

/// An open file, and how it is written to.
struct Writer {
    call: Call,
    chunk: usize,
    file: File,
    /// For the C library.
    stream: Option<Stream>,
}

impl Writer {
    fn new(call: Call, chunk: usize, file: File, path: &Path) -> Result<Writer> {
        let stream = match call {
            Call::Stdio => Some(Stream::overwriting(path).trying("fopen")?),
            _ => None,
        };
        Ok(Writer { call, chunk, file, stream })
    }

    fn write(&mut self, piece: &[u8], offset: u64) -> io::Result<()> {
        match (&mut self.stream, self.call) {
            (Some(stream), _) => stream.write_all(piece),
            (None, Call::Pwrite) => self.file.write_all_at(piece, offset),
            (None, Call::Writev | Call::Pwritev) => self.write_vector(piece, offset),
            (None, _) => self.file.write_all(piece),
        }
    }

    /// Writes `piece` in one call, unless the kernel takes less at a time.
    fn write_vector(&mut self, piece: &[u8], mut offset: u64) -> io::Result<()> {
        let mut slices = [IoSlice::new(&[]); VECTOR_CHUNKS];
        let chunks = piece.chunks(self.chunk);
        let count = chunks.len();
        for (slice, chunk) in slices.iter_mut().zip(chunks) {
            *slice = IoSlice::new(chunk);
        }
        let mut left = &mut slices[..count];
        while !left.is_empty() {
            let written = match self.call {
                Call::Writev => self.file.write_vectored(left),
                _ => rustix::io::pwritev(&self.file, left, offset).map_err(io::Error::from),
            };
            match written {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    offset += written as u64;
                    IoSlice::advance_slices(&mut left, written);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Nothing is left in a buffer of ours.
    fn finish(&mut self) -> io::Result<()> {
        self.stream.as_mut().map_or(Ok(()), Stream::flush)
    }
}

/// The cases of the table.
pub(super) fn entries(config: &Config, bytes: u64) -> Vec<Entry> {
    let mut entries = Vec::new();
    for state in config.states.iter().copied() {
        for call in Call::ALL {
            let max = if call.is_vectored() { VECTOR_CHUNK_BYTES_MAX.min(bytes) } else { bytes };
            for chunk in config.chunks.iter().copied().filter(|chunk| *chunk <= max) {
                let job = Simple { call, state, chunk: chunk as usize };
                let case = Entry::new(Table::Simple, job)
                    .key("way", call.as_str())
                    .key("state", state)
                    .key("chunk", size(chunk));
                entries.push(case);
            }
        }
    }
    entries
}
