//! Standard input, which is not waited for longer than a record may wait for its commit, nor for
//! long behind a signal that asks to end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use vellum_command::stdio;

use super::committer::Committer;
use super::ending::Ending;

/// The bytes that are read of the input when the time is over: as much as a pipe holds.
const REST_BYTES_MAX: u64 = 1 << 20;

/// Standard input without a buffer, in which input could not be noticed.
pub(super) fn open() -> io::Result<File> {
    Ok(File::from(stdio::stdin().as_fd().try_clone_to_owned()?))
}

/// Whether a program writes to the other end of `file`, which may have last things to say.
pub(super) fn has_writer(file: &File) -> bool {
    let kind = file.metadata().map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

/// Input on its way to the log.
pub(super) struct Input<'a> {
    committer: &'a Committer,
    ending: &'a Ending,
    file: File,
    /// When a signal came.
    asked_at: Option<Instant>,
    /// Input that was there when the time was over, and is not read.
    rest: Option<u64>,
}

/// The result of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    HasInput,
    IsAsked,
    InVain,
}

impl<'a> Input<'a> {
    pub(super) fn new(file: File, committer: &'a Committer, ending: &'a Ending) -> Input<'a> {
        Input { committer, ending, file, asked_at: None, rest: None }
    }

    /// For how long the input is read yet; `None` before a signal comes.
    fn time_left(&self) -> Option<Duration> {
        let asked_at = self.asked_at?;
        Some(self.ending.timeout().saturating_sub(asked_at.elapsed()))
    }

    /// Waits for input, or for the first signal that asks to end; no longer than either allows.
    fn wait(&self) -> io::Result<Waited> {
        let limits = [self.committer.remaining(), self.time_left()];
        // One that is too long for the system is none.
        let timeout = limits.into_iter().flatten().min().and_then(|limit| limit.try_into().ok());
        let signals = if self.asked_at.is_none() { PollFlags::IN } else { PollFlags::empty() };
        let mut fds =
            [PollFd::new(self.ending.asked(), signals), PollFd::new(&self.file, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Err(Errno::INTR) => return Ok(Waited::InVain),
            answer => answer?,
        };
        Ok(match fds.map(|fd| !fd.revents().is_empty()) {
            [true, _] => Waited::IsAsked,
            [_, true] => Waited::HasInput,
            _ => Waited::InVain,
        })
    }

    /// Reads the bytes that were there when the time was over: their writer takes them for
    /// delivered.
    fn read_rest(&mut self, rest: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(rest as usize);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_there = poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&now))? > 0;
        if most == 0 || !is_there {
            return Ok(0);
        }
        let count = self.file.read(&mut buffer[..most])?;
        self.rest = Some(rest - count as u64);
        Ok(count)
    }
}

impl Read for Input<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.time_left() == Some(Duration::ZERO) {
                let there = || ioctl_fionread(&self.file).unwrap_or(0).min(REST_BYTES_MAX);
                let rest = self.rest.unwrap_or_else(there);
                return self.read_rest(rest, buffer);
            }
            match self.wait()? {
                Waited::HasInput => match self.file.read(buffer) {
                    // Another process that has this pipe was faster.
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    answer => return answer,
                },
                Waited::IsAsked => self.asked_at = Some(Instant::now()),
                Waited::InVain => {}
            }
            self.committer.commit_if_due()?;
        }
    }
}
