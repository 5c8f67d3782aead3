//! io_uring, with many requests in flight.
//!
//! Zeroing is a request of its own, linked to the write that needs it: the kernel starts the write
//! when the zeroing is done, and cancels it if that failed. A sync is linked to the write before it
//! in the same way.
//!
//! # Safety
//!
//! A room for unsafe code: pushing requests and registering buffers. The kernel reads the buffers
//! until their completions have come. They belong to the queue, no code gets at one that is on its
//! way ([`Slots`] sees to that), and when the queue is dropped it waits for everything on its way;
//! should that fail, the buffers are never freed.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::fs::FallocateFlags;

use super::{Slots, WriteQueue, Zero};
use crate::error::{Context, Error, Result};

/// Direct writes with `io_uring_enter`.
pub(crate) struct UringQueue {
    ring: IoUring,
    file: File,
    slots: Slots,
    /// Does the kernel hold the buffers ready?
    is_registered: bool,
    /// How many completions are to come.
    due: usize,
}

/// The request of a completion, in the number that it carries.
#[derive(Clone, Copy)]
enum Token {
    Zero,
    Sync,
    Write { slot: usize },
}

impl Token {
    const ZERO: u64 = u64::MAX;
    const SYNC: u64 = u64::MAX - 1;

    fn to_bits(self) -> u64 {
        match self {
            Token::Zero => Token::ZERO,
            Token::Sync => Token::SYNC,
            Token::Write { slot } => slot as u64,
        }
    }

    fn of_bits(bits: u64) -> Token {
        match bits {
            Token::ZERO => Token::Zero,
            Token::SYNC => Token::Sync,
            slot => Token::Write { slot: slot as usize },
        }
    }
}

impl UringQueue {
    /// For `depth` writes at a time of at most `bytes` each, into a file opened with `O_DIRECT`.
    pub(crate) fn new(file: File, depth: usize, bytes: usize) -> Result<UringQueue> {
        // Each write may have a zeroing before it.
        let ring = IoUring::new(2 * depth as u32).map_err(|error| {
            // A container or the administrator may have forbidden it.
            let why = format!("the kernel does not give us a ring: {error}");
            Error::unsupported(why)
        })?;
        let mut probe = Probe::new();
        let result = ring.submitter().register_probe(&mut probe);
        let has = |code| result.is_ok() && probe.is_supported(code);
        if !has(opcode::Write::CODE) || !has(opcode::Fallocate::CODE) {
            let why = "the kernel's io_uring has no write or no fallocate (needs Linux 5.6)";
            return Err(Error::unsupported(why));
        }
        let slots = Slots::new(depth, bytes);
        Ok(UringQueue { ring, file, slots, is_registered: false, due: 0 })
    }

    /// Has the kernel hold the buffers ready, where it is allowed to: it then need not look them
    /// up for each write.
    pub(crate) fn registered(mut self) -> UringQueue {
        let buffers = self.slots.slots.iter().map(|slot| iovec(slot.buffer.as_slice()));
        let buffers: Vec<libc::iovec> = buffers.collect();
        // SAFETY: the buffers stay where they are until they are freed, after the ring or never
        // (see above), and a ring that is closed while a write is on its way keeps their pages.
        let result = unsafe { self.ring.submitter().register_buffers(&buffers) };
        self.is_registered = result.is_ok();
        self
    }

    /// Writes these `bytes` of the slot at `offset`, syncs the file's data when they are written,
    /// and waits for both: one call of the kernel.
    pub(crate) fn write_and_sync(
        &mut self,
        slot: usize,
        bytes: Range<usize>,
        offset: u64,
    ) -> Result<()> {
        let write = self.write_request(slot, bytes, offset).flags(squeue::Flags::IO_LINK);
        self.push(&write)?;
        let fd = types::Fd(self.file.as_raw_fd());
        let sync = opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build();
        self.push(&sync.user_data(Token::Sync.to_bits()))?;
        let mut done = Vec::with_capacity(1);
        while self.due > 0 {
            self.enter(self.due)?;
            self.reap(&mut done)?;
        }
        Ok(())
    }

    fn push(&mut self, request: &squeue::Entry) -> Result<()> {
        // SAFETY: the file is open for as long as the ring, and the bytes, if it has any, are those
        // of a slot that was taken, which stay as they are (see above).
        unsafe { self.ring.submission().push(request) }
            .map_err(|_| Error::failed("the submission ring is full"))?;
        self.due += 1;
        Ok(())
    }

    fn write_request(&mut self, slot: usize, bytes: Range<usize>, offset: u64) -> squeue::Entry {
        let fd = types::Fd(self.file.as_raw_fd());
        let bytes = self.slots.take(slot, bytes);
        let (start, len) = (bytes.as_ptr(), bytes.len() as u32);
        let request = if self.is_registered {
            opcode::WriteFixed::new(fd, start, len, slot as u16).offset(offset).build()
        } else {
            opcode::Write::new(fd, start, len).offset(offset).build()
        };
        request.user_data(Token::Write { slot }.to_bits())
    }

    /// Submits what there is and waits for so many completions.
    fn enter(&mut self, completions: usize) -> Result<()> {
        loop {
            match self.ring.submit_and_wait(completions) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map(drop).context(|| "io_uring_enter"),
            }
        }
    }

    /// Takes the completions that have come; returns the first failure among them.
    fn reap(&mut self, done: &mut Vec<usize>) -> Result<()> {
        let mut outcome = Ok(());
        for completion in self.ring.completion() {
            self.due -= 1;
            let token = Token::of_bits(completion.user_data());
            let result = usize::try_from(completion.result())
                .map_err(|_| io::Error::from_raw_os_error(-completion.result()));
            let result = match (token, result) {
                (Token::Zero, result) => result
                    .map(drop)
                    .map_err(|e| Error::os_or_unsupported("fallocate with ZERO_RANGE", e)),
                (Token::Sync, result) => result.map(drop).context(|| "io_uring fdatasync"),
                (Token::Write { slot }, Ok(written)) => {
                    done.push(slot);
                    self.slots.give_back(slot, written)
                }
                (_, Err(error)) => Err(Error::os_or_unsupported("io_uring write", error)),
            };
            // A write that is cancelled comes after the zeroing that failed.
            outcome = outcome.and(result);
        }
        outcome
    }
}

fn iovec(buffer: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: buffer.as_ptr().cast_mut().cast(), iov_len: buffer.len() }
}

impl WriteQueue for UringQueue {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.slots.buffer(slot)
    }

    fn write(&mut self, slot: usize, bytes: Range<usize>, offset: u64) -> Result<()> {
        let request = self.write_request(slot, bytes, offset);
        self.push(&request)
    }

    fn zero_and_write(
        &mut self,
        slot: usize,
        zero: Zero,
        bytes: Range<usize>,
        offset: u64,
    ) -> Result<()> {
        let fd = types::Fd(self.file.as_raw_fd());
        let zeroing = opcode::Fallocate::new(fd, zero.len)
            .offset(zero.offset)
            .mode(FallocateFlags::ZERO_RANGE.bits() as i32)
            .build()
            .flags(squeue::Flags::IO_LINK)
            .user_data(Token::Zero.to_bits());
        self.push(&zeroing)?;
        let request = self.write_request(slot, bytes, offset);
        self.push(&request)
    }

    fn wait(&mut self, done: &mut Vec<usize>) -> Result<()> {
        let before = done.len();
        // The zeroing before a write has a completion too.
        while self.due > 0 && done.len() == before {
            self.enter(1)?;
            self.reap(done)?;
        }
        Ok(())
    }
}

impl Drop for UringQueue {
    fn drop(&mut self) {
        let mut done = Vec::new();
        while self.due > 0 {
            if self.enter(1).is_err() {
                // The kernel may read them still.
                std::mem::forget(std::mem::replace(&mut self.slots, Slots::new(0, 0)));
                return;
            }
            let _ = self.reap(&mut done);
        }
    }
}
