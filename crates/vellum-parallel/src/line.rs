//! Numbered pieces of sizes that nobody knows ahead.
//!
//! Where a piece begins is known as soon as the sizes of all before it are, that is when they have
//! been handed in. Such a piece is written at once at its final place: where pieces come nearly in
//! order, nothing is ever moved. A piece that overtakes is parked: a copy in memory, and when
//! there is enough of those, in a nameless file beside the result. Whoever hands in the piece
//! that was missing writes the parked ones behind it as well.

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

/// A piece that waits for its place.
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

/// Why a piece is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Twice;

/// The order of the pieces.
#[derive(Debug)]
pub(super) struct Line {
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
    /// Pieces behind it; `None` while the copy is being made.
    parked: BTreeMap<u64, Option<Parked>>,
    parked_bytes: u64,
}

/// What a piece is to do.
#[derive(Debug)]
pub(super) enum Turn {
    /// It is next: its place in the file.
    Write(u64),
    /// It overtakes: to be copied, in memory where there is room, and parked.
    Park { in_memory: bool },
}

impl Line {
    pub(super) fn new(parked_bytes_max: u64) -> Line {
        Line { parked_bytes_max, state: Mutex::default(), spill: Mutex::default() }
    }

    /// Takes up piece `index` of `len` bytes.
    pub(super) fn enter(&self, index: u64, len: u64) -> Result<Turn, Twice> {
        let mut state = lock(&self.state);
        if index < state.next || state.parked.contains_key(&index) {
            return Err(Twice);
        }
        if index == state.next {
            return Ok(Turn::Write(state.advance(len)));
        }
        state.parked.insert(index, None);
        let in_memory = state.parked_bytes.saturating_add(len) <= self.parked_bytes_max;
        if in_memory {
            state.parked_bytes += len;
        }
        Ok(Turn::Park { in_memory })
    }

    /// Leaves the copy of a piece for others, or answers its place where the pieces before it have
    /// come meanwhile: the caller writes it then, and the copy is dropped.
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

    /// The next piece whose place has become known, for the caller to write.
    pub(super) fn next_parked(&self) -> Option<(u64, Parked)> {
        let mut state = lock(&self.state);
        let next = state.next;
        let parked = state.parked.get_mut(&next)?.take()?;
        state.parked.remove(&next);
        let offset = state.advance(parked.len());
        Some((offset, parked))
    }

    /// Gives back what a piece occupied while it was parked.
    pub(super) fn release(&self, parked: &Parked) {
        match *parked {
            Parked::Memory(_) => lock(&self.state).parked_bytes -= parked.len(),
            Parked::File { offset, len } => lock(&self.spill).free(offset, len),
        }
    }

    /// Writes a piece to the nameless file, which is made now if it is the first; `beside` is the
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

    /// How many pieces there are and where they end, or the first that is missing.
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
        let line = Line::new(50);
        assert!(matches!(line.enter(0, 10), Ok(Turn::Write(0))));
        assert!(matches!(line.enter(2, 30), Ok(Turn::Park { in_memory: true })));
        assert_eq!(line.enter(2, 30).err(), Some(Twice));
        assert_eq!(line.enter(0, 30).err(), Some(Twice));
        assert!(line.park(2, memory(30)).is_none());
        assert_eq!(line.end(), Err(1));
        assert!(matches!(line.enter(1, 20), Ok(Turn::Write(10))));
        let (offset, parked) = line.next_parked().unwrap();
        assert_eq!((offset, parked.len()), (30, 30));
        line.release(&parked);
        assert!(line.next_parked().is_none());
        assert_eq!(line.end(), Ok((3, 60)));
    }

    #[test]
    fn a_piece_whose_turn_comes_while_it_is_copied_is_written_by_its_owner() {
        let line = Line::new(50);
        assert!(matches!(line.enter(1, 5), Ok(Turn::Park { .. })));
        assert!(matches!(line.enter(0, 7), Ok(Turn::Write(0))));
        assert!(line.next_parked().is_none(), "it is not there yet");
        assert_eq!(line.park(1, memory(5)), Some(7));
        assert_eq!(line.end(), Ok((2, 12)));
    }

    #[test]
    fn memory_for_parked_pieces_is_bounded() {
        let line = Line::new(50);
        assert!(matches!(line.enter(1, 50), Ok(Turn::Park { in_memory: true })));
        assert!(matches!(line.enter(2, 1), Ok(Turn::Park { in_memory: false })));
        assert!(line.park(1, memory(50)).is_none());
        assert!(matches!(line.enter(0, 9), Ok(Turn::Write(0))));
        line.release(&line.next_parked().unwrap().1);
        assert!(matches!(line.enter(3, 50), Ok(Turn::Park { in_memory: true })), "room again");
    }
}
