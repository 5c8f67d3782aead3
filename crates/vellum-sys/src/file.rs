//! Positioned reads and writes that finish what they began, and the space of a file.
//!
//! A write beyond the process's own file-size limit is an error here, and not the signal that ends
//! a process. The exception is the one write on the way of short records, whose caller asks once
//! for a segment.

use std::io::IoSlice;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::{self, FallocateFlags, Mode, OFlags, SeekFrom};
use rustix::io::{self, Errno, ReadWriteFlags};
use rustix::process::{Resource, getrlimit};

use crate::descriptor::above_standard;

/// `RWF_DONTCACHE`.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Opens a file, never leaving its descriptor to a program that this process executes.
pub fn open(path: &Path, flags: OFlags, mode: u32) -> io::Result<OwnedFd> {
    let mode = Mode::from_raw_mode(mode);
    retry(|| above_standard(|| fs::open(path, flags | OFlags::CLOEXEC, mode)))
}

/// Opens something by `open`, which takes the flags. A file that is only read keeps its access time
/// where this process may ask for that, as its owner and root may.
pub(crate) fn without_access_time(
    flags: OFlags,
    open: impl Fn(OFlags) -> io::Result<OwnedFd>,
) -> io::Result<OwnedFd> {
    if flags.intersects(OFlags::RDWR | OFlags::WRONLY) {
        return open(flags);
    }
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        answer => answer,
    }
}

/// All bytes of a file of the kernel, such as those of `/proc` and `/sys`.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    // Most have no more, and do not tell how much they have.
    const STEP: usize = 1 << 10;
    let file = open(path.as_ref(), OFlags::RDONLY, 0)?;
    let mut bytes = Vec::new();
    loop {
        let filled = bytes.len();
        bytes.resize(filled + filled.max(STEP), 0);
        let count = retry(|| io::read(&file, &mut bytes[filled..]))?;
        bytes.truncate(filled + count);
        if count == 0 {
            return Ok(bytes);
        }
    }
}

/// As [`read`], for a file that may not be there and whose bytes are text.
pub fn read_text(path: impl AsRef<Path>) -> Option<String> {
    String::from_utf8(read(path).ok()?).ok()
}

/// Whether an error says that something cannot be done in this way, or not here; it says nothing of
/// the device, and another way may do.
pub fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS)
}

/// Repeats a call for as long as a signal interrupts it.
pub fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// Writes all of `bytes` at `offset`, continuing after short writes; no byte beyond the file-size
/// limit.
pub fn write_all_at(fd: impl AsFd, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    check_size_limit(offset.saturating_add(bytes.len() as u64))?;
    while !bytes.is_empty() {
        let written = retry(|| io::pwrite(&fd, bytes, offset))?;
        if written == 0 {
            return Err(Errno::NOSPC);
        }
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

/// Writes all of several pieces, one after the other, at `offset`. The caller has asked for the
/// file-size limit.
pub fn write_all_vectored_at(
    fd: impl AsFd,
    pieces: &mut [IoSlice<'_>],
    offset: u64,
) -> io::Result<()> {
    write_all_by(pieces, offset, |pieces, offset| io::pwritev(&fd, pieces, offset))
}

/// As [`write_all_vectored_at`], through a page cache that begins at once to write the pieces to
/// the device, and keeps none (Linux 6.14). Where it does not know how, nothing is written.
pub fn write_all_behind_at(
    fd: impl AsFd,
    pieces: &mut [IoSlice<'_>],
    offset: u64,
) -> io::Result<()> {
    write_all_by(pieces, offset, |pieces, offset| io::pwritev2(&fd, pieces, offset, DONTCACHE))
}

fn write_all_by(
    mut pieces: &mut [IoSlice<'_>],
    mut offset: u64,
    write: impl Fn(&[IoSlice<'_>], u64) -> io::Result<usize>,
) -> io::Result<()> {
    // Skips empty pieces at the front, so that "nothing written" means an error below.
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        let written = retry(|| write(pieces, offset))?;
        if written == 0 {
            return Err(Errno::NOSPC);
        }
        IoSlice::advance_slices(&mut pieces, written);
        offset += written as u64;
    }
    Ok(())
}

/// A file that is written from its beginning to its end, as a stream.
pub struct Stream<'a> {
    fd: &'a OwnedFd,
    offset: u64,
}

impl<'a> Stream<'a> {
    /// A stream that begins at the first byte of `fd`.
    pub fn new(fd: &'a OwnedFd) -> Stream<'a> {
        Stream { fd, offset: 0 }
    }
}

impl std::io::Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        write_all_at(self.fd, bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Reads at `offset` until `bytes` is full or the file ends; returns how much was read.
pub fn read_up_to_at(fd: impl AsFd, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        match retry(|| io::pread(&fd, &mut *rest, offset + filled as u64))? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// Copies the bytes from `begin` to `end` of one file to the same offsets of another, out of memory
/// that direct writes take.
pub fn copy_aligned(from: impl AsFd, to: impl AsFd, mut begin: u64, end: u64) -> io::Result<()> {
    const ALIGNMENT: usize = 4096;
    let piece_len = (end - begin).min(1 << 20) as usize;
    let mut memory = vec![0; piece_len + ALIGNMENT];
    let start = memory.as_ptr().align_offset(ALIGNMENT);
    while begin < end {
        let len = piece_len.min((end - begin) as usize);
        let piece = &mut memory[start..start + len];
        if read_up_to_at(&from, piece, begin)? < len {
            return Err(Errno::NODATA);
        }
        write_all_at(&to, piece, begin)?;
        begin += len as u64;
    }
    Ok(())
}

/// The largest piece that [`write_zeros_at`] writes with one call.
pub const ZEROS_BYTES_MAX: u64 = 1 << 20;

/// Aligned for writes that bypass the page cache.
#[repr(align(4096))]
struct Zeros([u8; ZEROS_BYTES_MAX as usize]);
static ZEROS: Zeros = Zeros([0; ZEROS_BYTES_MAX as usize]);

/// Writes `len` zeros at `offset`, at most `piece` bytes a call. The larger a piece, the larger the
/// folios in which the page cache may hold it.
pub fn write_zeros_at(fd: impl AsFd, mut offset: u64, mut len: u64, piece: u64) -> io::Result<()> {
    check_size_limit(offset.saturating_add(len))?;
    while len > 0 {
        let piece = len.min(piece).min(ZEROS_BYTES_MAX);
        write_all_at(&fd, &ZEROS.0[..piece as usize], offset)?;
        offset += piece;
        len -= piece;
    }
    Ok(())
}

/// Whether all bytes are zero: a comparison, which the C library makes many bytes at a time.
pub fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(ZERO_CHUNK).all(|chunk| *chunk == ZEROS.0[..chunk.len()])
}

/// Bytes compared with zeros at a time: both stay in the fastest cache.
const ZERO_CHUNK: usize = 4096;

/// Where the last byte between `begin` and `end` that is not zero ends in a file; `begin` where
/// there is none. Looks from the end, and does not read holes. Moves the position of `fd`.
pub fn end_before_zeros(fd: impl AsFd, begin: u64, end: u64) -> io::Result<u64> {
    const STEP: u64 = 256 << 10;
    let mut bytes = vec![0; STEP as usize];
    let mut end = end.min(len(&fd)?);
    while end > begin {
        let start = ((end - 1) / STEP * STEP).max(begin);
        let len = end - start;
        if !is_hole(&fd, start, len) {
            let count = read_up_to_at(&fd, &mut bytes[..len as usize], start)?;
            let mut chunks = bytes[..count].chunks(ZERO_CHUNK);
            if let Some(index) = chunks.rposition(|chunk| !is_zero(chunk)) {
                let chunk_end = count.min((index + 1) * ZERO_CHUNK);
                let zeros = bytes[..chunk_end].iter().rev().take_while(|byte| **byte == 0).count();
                return Ok(start + (chunk_end - zeros) as u64);
            }
        }
        end = start;
    }
    Ok(begin)
}

/// The status of a file, but for its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Type and permissions, as in `stat(2)`.
    pub mode: u32,
    /// The user that owns it.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Bytes.
    pub len: u64,
}

/// The status of a file.
///
/// It does not ask for the times of the file, as `fstat` does. From Linux 6.13 on the next change
/// of a file whose times a process has read gets an exact time, and that moves the clock by which
/// other files are marked. Then a synchronous direct write to one of them writes its inode, too:
/// two writes of the device for one commit.
pub fn status(fd: impl AsFd) -> io::Result<Status> {
    use fs::StatxFlags as Wanted;
    let wanted = Wanted::TYPE | Wanted::MODE | Wanted::UID | Wanted::GID | Wanted::SIZE;
    match fs::statx(&fd, "", fs::AtFlags::EMPTY_PATH, wanted) {
        Ok(found) if wanted.bits() & !found.stx_mask == 0 => Ok(Status {
            mode: found.stx_mode.into(),
            uid: found.stx_uid,
            gid: found.stx_gid,
            len: found.stx_size,
        }),
        // Kernels before 4.11, and containers that refuse the call.
        _ => fs::fstat(&fd).map(|found| Status::of(&found)),
    }
}

impl Status {
    /// The same of what `stat` tells.
    pub(crate) fn of(found: &fs::Stat) -> Status {
        let (mode, uid, gid) = (found.st_mode, found.st_uid, found.st_gid);
        Status { mode, uid, gid, len: found.st_size as u64 }
    }
}

/// Length of a file in bytes.
pub fn len(fd: impl AsFd) -> io::Result<u64> {
    Ok(status(fd)?.len)
}

/// Sets the length of a file.
pub fn set_len(fd: impl AsFd, len: u64) -> io::Result<()> {
    if len > self::len(&fd)? {
        check_size_limit(len)?;
    }
    retry(|| fs::ftruncate(&fd, len))
}

/// Allocates the blocks of the first `len` bytes, leaving the file's length alone.
pub fn allocate(fd: impl AsFd, len: u64) -> io::Result<()> {
    // Some filesystems ask for the limit although the file stays as long as it is.
    check_size_limit(len)?;
    retry(|| fs::fallocate(&fd, FallocateFlags::KEEP_SIZE, 0, len))
}

/// Allocates the blocks of a range, leaving the file's length alone.
pub fn allocate_beyond(fd: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    check_size_limit(offset.saturating_add(len))?;
    retry(|| fs::fallocate(&fd, FallocateFlags::KEEP_SIZE, offset, len))
}

/// Allocates the blocks of a range, and makes the file as long as that takes.
pub fn allocate_range(fd: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    check_size_limit(offset.saturating_add(len))?;
    retry(|| fs::fallocate(&fd, FallocateFlags::empty(), offset, len))
}

/// Bytes of blocks that a file takes.
pub fn allocated_len(fd: impl AsFd) -> io::Result<u64> {
    Ok(fs::fstat(fd)?.st_blocks as u64 * 512)
}

/// Gives the blocks of a range back; a hint.
pub fn free_range(fd: impl AsFd, offset: u64, len: u64) {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let _ = retry(|| fs::fallocate(&fd, flags, offset, len));
}

/// The identity of a file, as long as a process has it open.
pub fn identity(fd: impl AsFd) -> io::Result<(u64, u64)> {
    let status = fs::fstat(fd)?;
    Ok((status.st_dev, status.st_ino))
}

/// As [`identity`], without asking for the times of the file, as [`status`].
pub fn identity_without_times(fd: impl AsFd) -> io::Result<(u64, u64)> {
    let wanted = fs::StatxFlags::INO;
    match fs::statx(&fd, "", fs::AtFlags::EMPTY_PATH, wanted) {
        Ok(found) if found.stx_mask & wanted.bits() != 0 => {
            Ok((fs::makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino))
        }
        _ => identity(fd),
    }
}

/// How long ago the file was made, where the filesystem tells.
pub fn age(fd: impl AsFd) -> Option<Duration> {
    let wanted = fs::StatxFlags::BTIME;
    let status = fs::statx(fd, "", fs::AtFlags::EMPTY_PATH, wanted).ok()?;
    let is_told = status.stx_mask & wanted.bits() != 0;
    let made = Duration::new(status.stx_btime.tv_sec.try_into().ok()?, status.stx_btime.tv_nsec);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    is_told.then(|| now.checked_sub(made))?
}

/// Moves the modification time of a file by writing the byte at `offset` over itself, if the file
/// has it; a hint. It must be one that no process changes. `futimens(2)` would do, but on XFS the
/// next `fdatasync` writes the journal then, too.
pub fn touch_at(fd: impl AsFd, offset: u64) {
    let mut byte = [0];
    if read_up_to_at(&fd, &mut byte, offset) == Ok(1) {
        let _ = write_all_at(&fd, &byte, offset);
    }
}

/// Lets the page cache forget a file that is clean; a hint.
pub fn forget_pages(fd: impl AsFd) {
    let _ = fs::fadvise(&fd, 0, None, fs::Advice::DontNeed);
}

/// Has an empty file overwritten in place on btrfs; a hint that others refuse.
pub fn overwrite_in_place(fd: impl AsFd) {
    if let Ok(flags) = fs::ioctl_getflags(&fd) {
        let _ = fs::ioctl_setflags(&fd, flags | fs::IFlags::NOCOW);
    }
}

/// The directory that the name of a file is in.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether a file stores nothing of `len` bytes at `offset`: they are zeros on the device too.
/// Moves the position of `fd`.
pub fn is_hole(fd: impl AsFd, offset: u64, len: u64) -> bool {
    match retry(|| fs::seek(&fd, SeekFrom::Data(offset))) {
        Ok(data) => data >= offset.saturating_add(len),
        // Nothing is stored behind it either.
        Err(error) => error == Errno::NXIO,
    }
}

/// Whether a file stores nothing somewhere between `begin` and `end`, as far as the filesystem
/// tells. Moves the position of `fd`.
pub fn has_hole(fd: impl AsFd, begin: u64, end: u64) -> bool {
    retry(|| fs::seek(&fd, SeekFrom::Hole(begin))).is_ok_and(|hole| hole < end)
}

/// Where the next bytes are stored from `offset` on, before which the file holds zeros; `None`
/// where none are. `offset` itself where the filesystem does not tell. Moves the position of `fd`.
pub fn next_data(fd: impl AsFd, offset: u64) -> io::Result<Option<u64>> {
    match retry(|| fs::seek(&fd, SeekFrom::Data(offset))) {
        Ok(data) => Ok(Some(data.max(offset))),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Some(offset)),
        Err(errno) => Err(errno),
    }
}

/// Bytes that are left on the filesystem that a file is on, for a process without special rights.
pub fn space_left(fd: impl AsFd) -> io::Result<u64> {
    let found = retry(|| fs::fstatfs(&fd))?;
    Ok(found.f_bavail.saturating_mul(found.f_bsize as u64))
}

/// Bytes in a block of the filesystem that a file is on.
pub fn block_len(fd: impl AsFd) -> io::Result<u64> {
    Ok(retry(|| fs::fstatfs(&fd))?.f_bsize as u64)
}

/// Addresses of memory for direct writes must be multiples of this, where the kernel tells.
pub fn direct_memory_alignment(fd: impl AsFd) -> Option<usize> {
    let bytes = direct_alignment(fd)?.stx_dio_mem_align;
    Some(bytes as usize).filter(|bytes| *bytes > 0)
}

fn direct_alignment(fd: impl AsFd) -> Option<fs::Statx> {
    let wanted = fs::StatxFlags::DIOALIGN;
    let status = fs::statx(fd, "", fs::AtFlags::EMPTY_PATH, wanted).ok()?;
    (status.stx_mask & wanted.bits() != 0).then_some(status)
}

/// Bytes in a block that direct reads and writes of a file take, `None` where it has none such.
///
/// Where the kernel does not tell, this is found out by reading, which waits for the device: many
/// kernels in use are older than that, and some filesystems say nothing. The file was opened for
/// direct reading.
pub fn direct_block(fd: impl AsFd) -> Option<u64> {
    const BLOCKS: [usize; 2] = [512, 4096];
    let told = direct_alignment(&fd).map(|status| status.stx_dio_offset_align as usize);
    if let Some(block) = told.filter(|block| BLOCKS.contains(block)) {
        return Some(block as u64);
    }
    let mut bytes = vec![0; 3 * 4096];
    BLOCKS
        .into_iter()
        .find(|block| {
            let start = bytes.as_ptr().align_offset(4096);
            let buffer = &mut bytes[start..start + *block];
            retry(|| io::pread(&fd, &mut *buffer, *block as u64)).is_ok()
        })
        .map(|block| block as u64)
}

/// Refuses to let a file grow to `len` where the process's file-size limit forbids it, because the
/// attempt would raise `SIGXFSZ`, which ends a process that is not prepared for it.
pub fn check_size_limit(len: u64) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if len > limit => Err(Errno::FBIG),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn the_last_byte_that_is_not_zero_is_found_wherever_it_is() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 << 20).unwrap();
        let end = |begin, end| end_before_zeros(&file, begin, end).unwrap();
        assert_eq!([end(0, u64::MAX), end(77, 99)], [0, 77], "a hole");
        for at in [0, 1, 4095, 4096, (256 << 10) - 1, 256 << 10, (1 << 20) + 5, (3 << 20) - 1] {
            file.write_all_at(&[1], at).unwrap();
            assert_eq!(end(0, u64::MAX), at + 1);
            assert_eq!([end(at, at + 1), end(at + 1, u64::MAX)], [at + 1; 2]);
        }
        file.write_all_at(&vec![0; 3 << 20], 0).unwrap();
        assert_eq!(end(5, u64::MAX), 5, "zeros that are stored");
        assert!(is_zero(&[0; 9000]) && !is_zero(&[[0; 4096], [1; 4096]].concat()));
    }
}
