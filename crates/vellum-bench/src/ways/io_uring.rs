//! io_uring, one request at a time: a write with `O_APPEND`, submitted and waited for together.
//!
//! One syscall for each record, as with `write`, plus the ring's own work; where the filesystem
//! can't write without waiting the kernel hands the request to a thread of its own. Like AIO it was
//! not made for this, but a program that needs each record to be in the log before it continues
//! gets this.
//!
//! # Safety
//!
//! A room for unsafe code: pushing a request. Its record lives until the completion of that
//! request has come, in the same call to `append`. A call that fails before that
//! is the appender's last, and the kernel only reads the record: at worst it appends other bytes
//! of ours, to a log that has failed already.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use io_uring::{IoUring, Probe, opcode, types};

use crate::error::{Context, Error, Result};
use crate::setting::Setting;
use crate::ways::plain::{PlainFile, open_append, whole};
use crate::ways::{Appender, Prepared, Way};

/// The smallest ring that has a little room.
const ENTRIES: u32 = 4;

/// The position that means the end of a file opened with `O_APPEND`.
const AT_END: u64 = u64::MAX;

pub(crate) struct Uring;

impl Way for Uring {
    fn probe(&self, _dir: &Path) -> std::result::Result<(), String> {
        let ring = IoUring::new(ENTRIES)
            .map_err(|error| format!("the kernel does not give us a ring: {error}"))?;
        let mut probe = Probe::new();
        let result = ring.submitter().register_probe(&mut probe);
        if result.is_err() || !probe.is_supported(opcode::Write::CODE) {
            return Err(String::from("the kernel's io_uring has no write (needs Linux 5.6)"));
        }
        Ok(())
    }

    fn prepare(&self, dir: &Path, setting: &Setting) -> Result<Box<dyn Prepared>> {
        PlainFile::create(dir, setting, |path, _bytes| {
            let file = open_append(path)?;
            let ring = IoUring::new(ENTRIES).context(|| "io_uring_setup")?;
            Ok(Box::new(UringAppender { file, ring }))
        })
    }
}

struct UringAppender {
    file: File,
    ring: IoUring,
}

impl Appender for UringAppender {
    #[inline]
    fn append(&mut self, record: &[u8]) -> Result<()> {
        let fd = types::Fd(self.file.as_raw_fd());
        // `Setting::check` bounds the length of a record.
        let len = record.len() as u32;
        let request = opcode::Write::new(fd, record.as_ptr(), len).offset(AT_END).build();
        // SAFETY: file and record live until the completion is taken below.
        unsafe { self.ring.submission().push(&request) }
            .map_err(|_| Error::failed("the submission ring is full"))?;
        let result = loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context(|| "io_uring_enter"),
                Ok(_) => {}
            }
            if let Some(completion) = self.ring.completion().next() {
                break completion.result();
            }
        };
        match usize::try_from(result) {
            Ok(written) => whole("io_uring write", written, record.len()),
            Err(_) => Err(Error::os("io_uring write", io::Error::from_raw_os_error(-result))),
        }
    }
}
