//! Linux AIO, one request at a time: `io_submit`, then `io_getevents`, for each record.
//!
//! The file is buffered and opened with `O_APPEND`, so the kernel finds the place and does the
//! whole write within `io_submit`; the event is waited for and its result checked. This is not
//! what AIO was made for. It is measured because the published tables have it.
//!
//! # Safety
//!
//! A room for unsafe code: the three syscalls, which the C library does not wrap. A request and
//! its record live until the event of that request has come, in the same call to `append`.
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
        let queue = Queue::new().map(drop);
        queue.map_err(|error| format!("the kernel does not give us an AIO context: {error}"))
    }

    fn prepare(&self, dir: &Path, setting: &Setting) -> Result<Box<dyn Prepared>> {
        PlainFile::create(dir, setting, |path, _bytes| {
            let file = open_append(path)?;
            let queue = Queue::new().context(|| "io_setup")?;
            Ok(Box::new(AioAppender { file, queue }))
        })
    }
}

/// `struct iocb` of `linux/aio_abi.h`. Key and flags, whose order depends on the byte order, are
/// one field here, for they are both 0.
#[repr(C)]
struct Request {
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
#[derive(Default)]
struct Event {
    data: u64,
    request: u64,
    result: i64,
    result_more: i64,
}

const _: () = assert!(size_of::<Request>() == 64 && size_of::<Event>() == 32);

/// `IOCB_CMD_PWRITE`.
const OPCODE_WRITE: u16 = 1;

/// An AIO context of depth 1.
struct Queue {
    context: libc::c_ulong,
}

impl Queue {
    fn new() -> io::Result<Queue> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: `context` is room for the one word that the kernel writes, and is 0 as it must.
        check(unsafe { libc::syscall(libc::SYS_io_setup, 1_u32, &raw mut context) })?;
        Ok(Queue { context })
    }

    /// Submits a request and waits for its event.
    fn run(&self, request: &mut Request) -> io::Result<Event> {
        let mut requests = [ptr::from_mut(request)];
        // SAFETY: one pointer to one request; request and buffer live until the event below.
        let submitted = check(unsafe {
            libc::syscall(libc::SYS_io_submit, self.context, 1_i64, requests.as_mut_ptr())
        })?;
        if submitted != 1 {
            return Err(io::Error::other("io_submit took no request"));
        }
        let mut event = Event::default();
        let no_timeout = ptr::null_mut::<libc::timespec>();
        loop {
            // SAFETY: room for one event; a null timeout waits.
            let result = check(unsafe {
                let (call, event) = (libc::SYS_io_getevents, &raw mut event);
                libc::syscall(call, self.context, 1_i64, 1_i64, event, no_timeout)
            });
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(1) => return Ok(event),
                Ok(_) => return Err(io::Error::other("io_getevents gave no event")),
            }
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the context is ours and nothing is in flight in it. A failure leaves a context
        // that the kernel frees with the process.
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
        let mut request = Request {
            data: 0,
            key_and_flags: 0,
            opcode: OPCODE_WRITE,
            priority: 0,
            fd: self.file.as_raw_fd() as u32,
            buffer: record.as_ptr().expose_provenance() as u64,
            len: record.len() as u64,
            offset: 0,
            reserved: 0,
            more_flags: 0,
            event_fd: 0,
        };
        let event = self.queue.run(&mut request).context(|| "AIO")?;
        match usize::try_from(event.result) {
            Ok(written) => whole("AIO", written, record.len()),
            Err(_) => {
                let errno = i32::try_from(-event.result).unwrap_or(libc::EIO);
                Err(Error::os("AIO write", io::Error::from_raw_os_error(errno)))
            }
        }
    }
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
