//! Memory that direct writes and reads take as it is.

use std::ops::{Deref, DerefMut};

use crate::HugeMemory;

/// Where such memory starts: no device asks for more.
pub const MEMORY_ALIGNMENT_BYTES: usize = 4096;

/// From this length on memory is asked for in huge pages. A request to a device names so many
/// stretches of memory at most: out of single pages 1 MiB is two requests or one, as they happen to
/// lie.
pub const HUGE_FROM_BYTES: usize = 512 << 10;

/// Memory that begins at a boundary, zeroed when it is new.
#[derive(Debug, Default)]
pub struct AlignedBuffer {
    bytes: Bytes,
    start: usize,
    len: usize,
}

/// Where the bytes are.
#[derive(Debug)]
enum Bytes {
    /// With room to begin at a boundary.
    Pages(Vec<u8>),
    Huge(HugeMemory),
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::Pages(Vec::new())
    }
}

impl AlignedBuffer {
    /// Zeros, `len` bytes of them.
    pub fn new(len: usize) -> AlignedBuffer {
        if len >= HUGE_FROM_BYTES
            && let Ok(memory) = HugeMemory::new(len)
        {
            return AlignedBuffer { bytes: Bytes::Huge(memory), start: 0, len };
        }
        let bytes = vec![0; len + MEMORY_ALIGNMENT_BYTES];
        let start = bytes.as_ptr().align_offset(MEMORY_ALIGNMENT_BYTES);
        AlignedBuffer { bytes: Bytes::Pages(bytes), start, len }
    }

    /// The same memory with another length, up to its capacity; the content stays.
    pub fn with_len(self, len: usize) -> AlignedBuffer {
        AlignedBuffer { len, ..self }
    }

    /// Bytes there is room for.
    pub fn capacity(&self) -> usize {
        match &self.bytes {
            Bytes::Pages(bytes) => bytes.len().saturating_sub(MEMORY_ALIGNMENT_BYTES),
            Bytes::Huge(memory) => memory.len(),
        }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        let bytes = match &self.bytes {
            Bytes::Pages(bytes) => &bytes[..],
            Bytes::Huge(memory) => memory,
        };
        &bytes[self.start..self.start + self.len]
    }

    /// The bytes, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let bytes = match &mut self.bytes {
            Bytes::Pages(bytes) => &mut bytes[..],
            Bytes::Huge(memory) => memory,
        };
        &mut bytes[self.start..self.start + self.len]
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}
