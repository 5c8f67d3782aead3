//! The reorder buffer: numbered pieces whose sizes are not known ahead.
//!
//! A piece has its place as soon as all pieces before it have been handed in, because their sizes
//! are known then. It is written there at once. So nothing is moved where pieces come nearly in
//! order.
//!
//! A piece that comes too early is parked. A copy stays in memory, or in a nameless file beside the
//! result where the memory for that is used up. The thread that hands in the missing piece also
//! writes the parked ones that follow it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustix::fs::OFlags;
use rustix::io::{self, Errno};
use vellum_sys as sys;

use super::lock;

/// Memory for parked pieces unless chosen otherwise.
pub(super) const PARKED_BYTES_MAX_DEFAULT: u64 = 64 << 20;

/// A copy of a piece that came too early.
#[derive(Debug)]
pub(super) enum Parked {
    /// A copy in memory.
    Memory(Vec<u8>),
    /// Bytes of the nameless file.
    File { offset: u64, len: u64 },
}

impl Parked {
    pub(super) fn len(&self) -> u64 {
        match self {
            Parked::Memory(bytes) => bytes.len() as u64,
            Parked::File { len, .. } => *len,
        }
    }
}

/// The piece was handed in before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Duplicate;

/// Which pieces have come, and copies of those that came too early.
#[derive(Debug)]
pub(super) struct ReorderBuffer {
    /// Memory for parked pieces.
    parked_bytes_max: u64,
    state: Mutex<State>,
    spill: Mutex<Spill>,
}

#[derive(Debug, Default)]
struct State {
    /// The first piece that is missing, and where it begins.
    next: u64,
    next_offset: u64,
    /// Later pieces; `None` while the copy is being made.
    parked: BTreeMap<u64, Option<Parked>>,
    parked_bytes: u64,
}

/// Where a piece goes.
#[derive(Debug)]
pub(super) enum Placement {
    /// To this offset of the file: all before it have come.
    Write(u64),
    /// It came too early: the caller copies it, in memory where there is room, and parks the copy.
    Park { in_memory: bool },
}

impl ReorderBuffer {
    pub(super) fn new(parked_bytes_max: u64) -> ReorderBuffer {
        ReorderBuffer { parked_bytes_max, state: Mutex::default(), spill: Mutex::default() }
    }

    /// Enters piece `index` of `len` bytes.
    pub(super) fn enter(&self, index: u64, len: u64) -> Result<Placement, Duplicate> {
        let mut state = lock(&self.state);
        if index < state.next || state.parked.contains_key(&index) {
            return Err(Duplicate);
        }
        if index == state.next {
            return Ok(Placement::Write(state.advance(len)));
        }
        state.parked.insert(index, None);
        let in_memory = state.parked_bytes.saturating_add(len) <= self.parked_bytes_max;
        if in_memory {
            state.parked_bytes += len;
        }
        Ok(Placement::Park { in_memory })
    }

    /// Keeps the copy of a piece, or drops it and returns the place of the piece if all before it
    /// have come meanwhile. Then the caller writes the piece itself.
    pub(super) fn park(&self, index: u64, parked: Parked) -> Option<u64> {
        let mut state = lock(&self.state);
        if index > state.next {
            state.parked.insert(index, Some(parked));
            return None;
        }
        state.parked.remove(&index);
        let offset = state.advance(parked.len());
        drop(state);
        self.release(&parked);
        Some(offset)
    }

    /// The next parked piece that has its place now, and that place; the caller writes it.
    pub(super) fn next_parked(&self) -> Option<(u64, Parked)> {
        let mut state = lock(&self.state);
        let next = state.next;
        let parked = state.parked.get_mut(&next)?.take()?;
        state.parked.remove(&next);
        let offset = state.advance(parked.len());
        Some((offset, parked))
    }

    /// Frees the memory, or the part of the nameless file, that a parked piece took.
    pub(super) fn release(&self, parked: &Parked) {
        match *parked {
            Parked::Memory(_) => lock(&self.state).parked_bytes -= parked.len(),
            Parked::File { offset, len } => lock(&self.spill).free(offset, len),
        }
    }

    /// Writes a copy of a piece to the nameless file, which the first one creates; `beside` is the
    /// path of the result.
    pub(super) fn spill(&self, beside: &Path, bytes: &[u8]) -> io::Result<Parked> {
        let len = bytes.len() as u64;
        let (fd, offset) = lock(&self.spill).reserve(beside, len)?;
        sys::file::write_all_at(&*fd, bytes, offset)?;
        Ok(Parked::File { offset, len })
    }

    /// Reads `bytes` of the nameless file at `offset`.
    pub(super) fn read_back(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let fd = lock(&self.spill).fd.clone().ok_or(Errno::BADF)?;
        match sys::file::read_up_to_at(&*fd, bytes, offset)? {
            count if count == bytes.len() => Ok(()),
            _ => Err(Errno::IO),
        }
    }

    /// The number of pieces and the end of the last, or the number of the first that is missing.
    pub(super) fn end(&self) -> Result<(u64, u64), u64> {
        let state = lock(&self.state);
        if state.parked.is_empty() { Ok((state.next, state.next_offset)) } else { Err(state.next) }
    }
}

impl State {
    /// Gives the next piece its place.
    fn advance(&mut self, len: u64) -> u64 {
        let offset = self.next_offset;
        self.next += 1;
        self.next_offset += len;
        offset
    }
}

/// The nameless file.
#[derive(Debug, Default)]
struct Spill {
    fd: Option<Arc<OwnedFd>>,
    end: u64,
}

impl Spill {
    fn reserve(&mut self, beside: &Path, len: u64) -> io::Result<(Arc<OwnedFd>, u64)> {
        let fd = match &self.fd {
            Some(fd) => Arc::clone(fd),
            None => Arc::clone(self.fd.insert(Arc::new(nameless_file(beside)?))),
        };
        let offset = self.end;
        self.end += len;
        Ok((fd, offset))
    }

    fn free(&mut self, offset: u64, len: u64) {
        if let Some(fd) = &self.fd {
            sys::file::free_range(&**fd, offset, len);
        }
    }
}

/// A file in the directory of `beside` that has no name, or loses it at once.
fn nameless_file(beside: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::TMPFILE;
    match sys::file::open(sys::file::directory_of(beside), flags, 0o600) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
        answer => return answer,
    }
    let mut name = beside.as_os_str().to_os_string();
    name.push(".parked");
    let path = Path::new(&name);
    let fd = sys::file::open(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, 0o600)?;
    rustix::fs::unlink(path)?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(len: usize) -> Parked {
        Parked::Memory(vec![0; len])
    }

    #[test]
    fn a_piece_that_overtakes_is_placed_when_the_missing_one_comes() {
        let reorder = ReorderBuffer::new(50);
        assert!(matches!(reorder.enter(0, 10), Ok(Placement::Write(0))));
        assert!(matches!(reorder.enter(2, 30), Ok(Placement::Park { in_memory: true })));
        assert_eq!(reorder.enter(2, 30).err(), Some(Duplicate));
        assert_eq!(reorder.enter(0, 30).err(), Some(Duplicate));
        assert!(reorder.park(2, memory(30)).is_none());
        assert_eq!(reorder.end(), Err(1));
        assert!(matches!(reorder.enter(1, 20), Ok(Placement::Write(10))));
        let (offset, parked) = reorder.next_parked().unwrap();
        assert_eq!((offset, parked.len()), (30, 30));
        reorder.release(&parked);
        assert!(reorder.next_parked().is_none());
        assert_eq!(reorder.end(), Ok((3, 60)));
    }

    #[test]
    fn a_piece_whose_turn_comes_while_it_is_copied_is_written_by_its_owner() {
        let reorder = ReorderBuffer::new(50);
        assert!(matches!(reorder.enter(1, 5), Ok(Placement::Park { .. })));
        assert!(matches!(reorder.enter(0, 7), Ok(Placement::Write(0))));
        assert!(reorder.next_parked().is_none(), "it is not there yet");
        assert_eq!(reorder.park(1, memory(5)), Some(7));
        assert_eq!(reorder.end(), Ok((2, 12)));
    }

    #[test]
    fn memory_for_parked_pieces_is_bounded() {
        let reorder = ReorderBuffer::new(50);
        assert!(matches!(reorder.enter(1, 50), Ok(Placement::Park { in_memory: true })));
        assert!(matches!(reorder.enter(2, 1), Ok(Placement::Park { in_memory: false })));
        assert!(reorder.park(1, memory(50)).is_none());
        assert!(matches!(reorder.enter(0, 9), Ok(Placement::Write(0))));
        reorder.release(&reorder.next_parked().unwrap().1);
        assert!(
            matches!(reorder.enter(3, 50), Ok(Placement::Park { in_memory: true })),
            "room again"
        );
    }
}
