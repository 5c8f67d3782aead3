//! Many writes to one file under way at the same time, by one thread.
//!
//! # Safety
//!
//! A room for unsafe code: pushing requests and registering buffers. The queue owns the slots and
//! fills one again only after the completion of its write has come, so what a request points to
//! stays as it is. The kernel only reads from there: should a queue be dropped while writes are
//! under way, as after an error, they put bytes into the file that nobody counts on any more.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

/// Memory that one write at a time is made from.
pub(crate) trait Slot {
    /// All of it, at the same address for as long as the slot lives.
    fn memory(&self) -> &[u8];

    /// Puts there what belongs at `offset` of the file, and returns it: a piece of the memory.
    fn fill(&mut self, offset: u64, len: usize) -> &[u8];
}

/// Writes to one file, as many at a time as it has slots.
pub(crate) struct WriteQueue<'a, S> {
    ring: IoUring,
    file: &'a File,
    slots: Vec<S>,
    /// The slots that no write is under way from.
    free: Vec<usize>,
    /// Does the kernel hold the memory of the slots ready?
    is_registered: bool,
}

impl<'a, S: Slot> WriteQueue<'a, S> {
    /// A queue with these slots. The memory is registered with the kernel where that is allowed.
    pub(crate) fn new(file: &'a File, slots: Vec<S>) -> io::Result<WriteQueue<'a, S>> {
        let entries = u32::try_from(slots.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let ring = IoUring::new(entries.next_power_of_two())?;
        let buffers: Vec<libc::iovec> = slots.iter().map(|slot| iovec(slot.memory())).collect();
        // SAFETY: the memory belongs to the slots, which live as long as the ring or longer than
        // it reads from them (see above).
        let is_registered = unsafe { ring.submitter().register_buffers(&buffers) }.is_ok();
        let free = (0..slots.len()).rev().collect();
        Ok(WriteQueue { ring, file, slots, free, is_registered })
    }

    /// Writes `bytes` from the beginning of the file on, in pieces of `piece_bytes`; returns when
    /// all are written.
    pub(crate) fn write_all(&mut self, bytes: u64, piece_bytes: usize) -> io::Result<()> {
        let mut next = 0;
        let mut under_way = 0;
        while next < bytes || under_way > 0 {
            while next < bytes
                && let Some(slot) = self.free.pop()
            {
                let len = (bytes - next).min(piece_bytes as u64) as usize;
                self.push(slot, next, len)?;
                next += len as u64;
                under_way += 1;
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => under_way -= self.collect()?,
            }
        }
        Ok(())
    }

    fn push(&mut self, slot: usize, offset: u64, len: usize) -> io::Result<()> {
        let fd = types::Fd(self.file.as_raw_fd());
        let piece = self.slots[slot].fill(offset, len);
        let (start, short_len) = (piece.as_ptr(), piece.len() as u32);
        let request = if self.is_registered {
            opcode::WriteFixed::new(fd, start, short_len, slot as u16).offset(offset).build()
        } else {
            opcode::Write::new(fd, start, short_len).offset(offset).build()
        };
        // The length stands beside the slot, to be compared with what the kernel says it wrote.
        let request = request.user_data(slot as u64 | u64::from(short_len) << 16);
        // SAFETY: the slot is not filled again before this request has completed.
        unsafe { self.ring.submission().push(&request) }
            .map_err(|_| io::Error::other("the submission ring is full"))
    }

    /// Takes the completions that have come, and returns how many.
    fn collect(&mut self) -> io::Result<usize> {
        let before = self.free.len();
        for completion in self.ring.completion() {
            let len = completion.user_data() >> 16;
            match u64::try_from(completion.result()) {
                Err(_) => return Err(io::Error::from_raw_os_error(-completion.result())),
                Ok(written) if written == len => {
                    self.free.push((completion.user_data() & 0xffff) as usize);
                }
                Ok(written) => {
                    let what = format!("{written} of {len} bytes were written");
                    return Err(io::Error::new(io::ErrorKind::WriteZero, what));
                }
            }
        }
        Ok(self.free.len() - before)
    }
}

fn iovec(memory: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: memory.as_ptr().cast_mut().cast(), iov_len: memory.len() }
}
