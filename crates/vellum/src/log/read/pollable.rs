//! A reader for loops over `poll`, and asynchronous programs.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::log::read::reader::Reader;
use crate::log::state::wakeup::Wakeup;
use crate::record::Record;
use crate::{Lsn, Result};

/// A reader with a file descriptor that becomes readable when there may be more records.
///
/// Made by [`Reader::pollable`]. Ask [`next`](PollableReader::next) for records until it returns
/// `None`, then wait until the descriptor is readable, and ask again. Nothing needs to be read from
/// the descriptor. It is always the same one, and it may be readable although there is nothing new:
/// at least 10 times a second, and whenever a process opens the log.
///
/// It has no thread. A process that appends (for a [durable](Reader::durable) reader: one that
/// commits) wakes it, with four system calls for each time that `next` returned `None`.
///
/// In a forked child it returns [`Unsupported`](crate::ErrorKind::Unsupported) at the end of the
/// log: make another there.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let log = vellum::Options::events().open(dir.path().join("a.log"))?;
/// # log.append(b"one")?;
/// use rustix::event::{PollFd, PollFlags, poll};
/// use vellum::Lsn;
///
/// let mut reader = log.reader(Lsn::ZERO)?.pollable()?;
/// // Each turn of the event loop:
/// poll(&mut [PollFd::new(&reader, PollFlags::IN)], None)?;
/// while let Some(record) = reader.next()? {
///     println!("{}: {:?}", record.lsn, record.payload);
/// }
/// # assert_eq!(reader.position(), log.published());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct PollableReader {
    reader: Reader,
    wakeup: Wakeup,
}

impl Reader {
    /// The same reader with a file descriptor, for epoll and event loops.
    ///
    /// # Errors
    ///
    /// [`Io`](crate::ErrorKind::Io) where the process has no file descriptor left. Without an
    /// inotify watch, of which a user has `/proc/sys/fs/inotify/max_user_instances`, the
    /// descriptor becomes readable every 20 ms instead.
    ///
    /// # Cost
    ///
    /// Three file descriptors.
    pub fn pollable(self) -> Result<PollableReader> {
        let wakeup = Wakeup::new(&self.core)?;
        // Before the first call of `next`, there may be something new.
        wakeup.look_again(std::time::Duration::from_nanos(1))?;
        Ok(PollableReader { reader: self, wakeup })
    }
}

impl PollableReader {
    /// The next record, or `None` at the end; then the descriptor tells when to ask again.
    ///
    /// # Errors
    ///
    /// As for [`Reader::follow`].
    ///
    /// # Cost
    ///
    /// As for [`Reader::next`]; at the end of the log a few system calls besides.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot lend its items")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>> {
        if let Some(place) = self.reader.locate()? {
            return self.reader.lend(place).map(Some);
        }
        if self.reader.is_at_stop() {
            return Ok(None);
        }
        self.wakeup.check_process()?;
        // In this order: a later report or publication is seen by the second check, or makes the
        // descriptor readable.
        self.wakeup.clear();
        self.reader.take_up_words();
        let is_armed = self.reader.prepare_poll() && self.wakeup.has_watch();
        let poison = self.reader.poison();
        if let Some(place) = self.reader.locate()? {
            return self.reader.lend(place).map(Some);
        }
        poison?;
        self.wakeup.look_again(self.reader.pause(is_armed))?;
        Ok(None)
    }

    /// Where the next record will be looked for.
    pub fn position(&self) -> Lsn {
        self.reader.position()
    }

    /// The reader itself, to ask it.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The reader, for its other functions: to [follow](Reader::follow) with a time limit, or to
    /// [take gaps](Reader::take_gaps).
    pub fn reader_mut(&mut self) -> &mut Reader {
        &mut self.reader
    }

    /// The reader alone; closes the descriptor.
    pub fn into_reader(self) -> Reader {
        self.reader
    }
}

impl AsFd for PollableReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }
}

impl AsRawFd for PollableReader {
    fn as_raw_fd(&self) -> RawFd {
        self.wakeup.as_fd().as_raw_fd()
    }
}
