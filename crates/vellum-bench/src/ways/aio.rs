//! Linux AIO, one request at a time: `io_submit`, then `io_getevents`, for each record.
//!
//! The file is buffered and opened with `O_APPEND`, so the kernel finds the place and does the
//! whole write within `io_submit`; the event is waited for and its result checked. AIO was made for
//! another use. It is measured because the published tables have it.
//!
//! [`crate::queue`] has many requests in flight with the same calls.
//!
//! # Safety
//!
//! A room for unsafe code: the syscalls, which the C library does not wrap. A record lives until
//! the event of its request has come, in the same call to `append`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;

use crate::error::{Context, Error, Result};
use crate::setting::Setting;
use crate::ways::plain::{PlainFile, open_append, whole};
use crate::ways::{Appender, Prepared, Way};

pub(crate) struct Aio;

impl Way for Aio {
    fn probe(&self, _dir: &Path) -> std::result::Result<(), String> {
        let queue = Queue::new(1).map(drop);
        queue.map_err(|error| format!("the kernel does not give us an AIO context: {error}"))
    }

    fn prepare(&self, dir: &Path, setting: &Setting) -> Result<Box<dyn Prepared>> {
        PlainFile::create(dir, setting, |path, _bytes| {
            let file = open_append(path)?;
            let queue = Queue::new(1).context(|| "io_setup")?;
            Ok(Box::new(AioAppender { file, queue }))
        })
    }
}

/// `struct iocb` of `linux/aio_abi.h`. Key and flags, whose order depends on the byte order, are
/// one field here, for they are both 0.
#[repr(C)]
pub(crate) struct Request {
    data: u64,
    key_and_flags: u64,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    len: u64,
    offset: i64,
    reserved: u64,
    more_flags: u32,
    event_fd: u32,
}

/// `struct io_event` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Event {
    /// The number that the request was given.
    pub(crate) data: u64,
    request: u64,
    result: i64,
    result_more: i64,
}

const _: () = assert!(size_of::<Request>() == 64 && size_of::<Event>() == 32);

/// `IOCB_CMD_PWRITE`.
const OPCODE_WRITE: u16 = 1;

impl Request {
    /// To write `bytes` at `offset`; its event carries `data`.
    pub(crate) fn write(file: &File, bytes: &[u8], offset: u64, data: u64) -> Request {
        Request {
            data,
            key_and_flags: 0,
            opcode: OPCODE_WRITE,
            priority: 0,
            fd: file.as_raw_fd() as u32,
            buffer: bytes.as_ptr().expose_provenance() as u64,
            len: bytes.len() as u64,
            offset: offset as i64,
            reserved: 0,
            more_flags: 0,
            event_fd: 0,
        }
    }
}

impl Event {
    /// How many bytes were written.
    pub(crate) fn written(&self) -> io::Result<usize> {
        usize::try_from(self.result).map_err(|_| {
            let errno = i32::try_from(-self.result).unwrap_or(libc::EIO);
            io::Error::from_raw_os_error(errno)
        })
    }
}

/// An AIO context.
pub(crate) struct Queue {
    context: libc::c_ulong,
}

impl Queue {
    /// One for `depth` requests at a time.
    pub(crate) fn new(depth: u32) -> io::Result<Queue> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: `context` is room for the one word that the kernel writes, and is 0 as it must.
        check(unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) })?;
        Ok(Queue { context })
    }

    /// Submits requests, in order; says how many of them the kernel took, at least one.
    ///
    /// # Safety
    ///
    /// Each pointer leads to a request that no other code uses during the call. The bytes of each
    /// request stay where they are until its event has come or the queue has been dropped.
    pub(crate) unsafe fn submit(&self, requests: &mut [*mut Request]) -> io::Result<usize> {
        let count = requests.len() as libc::c_long;
        // SAFETY: as many pointers as the count says. The kernel reads the requests and writes to
        // their keys within the call, which the caller allows, with its effects.
        let submitted = check(unsafe {
            libc::syscall(libc::SYS_io_submit, self.context, count, requests.as_mut_ptr())
        })?;
        match submitted {
            0 => Err(io::Error::other("io_submit took no request")),
            submitted => Ok(submitted as usize),
        }
    }

    /// Waits for events; says how many have come, at least one.
    pub(crate) fn wait(&self, events: &mut [Event]) -> io::Result<usize> {
        let room = events.len() as libc::c_long;
        let no_timeout = ptr::null_mut::<libc::timespec>();
        loop {
            // SAFETY: `events` has room for `room` events; a null timeout waits.
            let result = check(unsafe {
                let (call, events) = (libc::SYS_io_getevents, events.as_mut_ptr());
                libc::syscall(call, self.context, 1_i64, room, events, no_timeout)
            });
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(0) => return Err(io::Error::other("io_getevents gave no event")),
                Ok(count) => return Ok(count as usize),
            }
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the context is ours. The call cancels what is in flight in it, or waits for that.
        // A failure leaves a context that the kernel frees with the process.
        let _ = unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

struct AioAppender {
    file: File,
    queue: Queue,
}

impl Appender for AioAppender {
    #[inline]
    fn append(&mut self, record: &[u8]) -> Result<()> {
        let mut request = Request::write(&self.file, record, 0, 0);
        // SAFETY: the one request is ours. The record is borrowed until this returns, and the event
        // is waited for below; if that fails the appender has failed, and the kernel only reads it.
        unsafe { self.queue.submit(&mut [&raw mut request]) }.context(|| "AIO")?;
        let mut events = [Event::default()];
        self.queue.wait(&mut events).context(|| "AIO")?;
        let written = events[0].written().map_err(|error| Error::os("AIO write", error))?;
        whole("AIO", written, record.len())
    }
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
