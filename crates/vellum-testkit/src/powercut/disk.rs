//! The disk below a filesystem: it answers, records the requests, and fails on command.
//!
//! # Why an acknowledgement in the recording is a sound one
//!
//! Before a request is put into the recording, all lines of the workload are. A line that a thread
//! prints *after* a flush has come back is behind that flush, as the flush was recorded before it
//! was answered; so nothing is demanded that was not promised in time. And it is before anything
//! that this thread writes later; so no promise is counted late.
//!
//! # Why a disk that forgets says so more than once
//!
//! The flush that fails may be one that the kernel asks for, to write a journal. No process is told
//! of it in time, and none could keep a promise if the next flush of its own succeeded. So as many
//! more flushes fail as writes were forgotten: each process that had written gets an error.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;

use rustix::io::Errno;

use super::cut::Walk;
use super::image::Image;
use super::recording::{Event, Recording};
use super::verdict::Announcement;

/// The failure of a disk, counted from the beginning of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// This write fails and leaves nothing.
    Write(u64),
    /// This flush fails; the writes that it should have covered stay in the cache.
    Flush(u64),
    /// This flush fails, and the writes that it should have covered are gone; as many more flushes
    /// fail as writes are gone.
    Lose(u64),
}

impl FromStr for Failure {
    type Err = String;

    fn from_str(text: &str) -> Result<Failure, String> {
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        match text.split_once(':').map(|(kind, count)| (kind, number(count))) {
            Some(("write", Some(count))) => Ok(Failure::Write(count)),
            Some(("flush", Some(count))) => Ok(Failure::Flush(count)),
            Some(("lose", Some(count))) => Ok(Failure::Lose(count)),
            _ => Err("give write:K, flush:K or lose:K, with K from 1".to_owned()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Write(count) => write!(f, "write:{count}"),
            Failure::Flush(count) => write!(f, "flush:{count}"),
            Failure::Lose(count) => write!(f, "lose:{count}"),
        }
    }
}

/// The requests that a disk refuses from now on. Each request that fails has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// Writes and flushes fail.
    Writes,
    /// Writes fail that need a block never written before, as where a thin pool is full.
    NewBlocks,
    /// All requests fail.
    All,
}

/// A disk and its record.
#[derive(Debug)]
pub struct Disk {
    image: Image,
    recording: Option<Recording>,
    failure: Option<Failure>,
    outage: Option<Outage>,
    writes: u64,
    flushes: u64,
    /// So many more flushes fail, for those whose writes are gone.
    untold: usize,
    /// The announcements of the workload come out here; the disk never waits for them.
    announcements: OwnedFd,
    /// The beginning of a line.
    unfinished: Vec<u8>,
    /// An announcement that cannot be understood.
    misunderstood: Option<String>,
}

impl Disk {
    /// A disk that hears what the workload says through `announcements`, which must not block.
    pub fn new(image: Image, announcements: OwnedFd) -> Disk {
        Disk {
            image,
            recording: None,
            failure: None,
            outage: None,
            writes: 0,
            flushes: 0,
            untold: 0,
            announcements,
            unfinished: Vec::new(),
            misunderstood: None,
        }
    }

    /// Exchanges the content.
    pub fn insert(&mut self, image: Image) {
        self.image = image;
    }

    /// From now on this fails, or nothing.
    pub fn fail(&mut self, outage: Option<Outage>) {
        self.outage = outage;
    }

    /// Bytes of the disk.
    pub fn len_bytes(&self) -> u64 {
        self.image.len_bytes()
    }

    /// Begins a recording; all that is there counts as flushed.
    pub fn start_recording(&mut self, failure: Option<Failure>) {
        self.listen();
        self.recording = Some(Recording::new(self.image.clone()));
        (self.failure, self.writes, self.flushes, self.untold) = (failure, 0, 0, 0);
        self.unfinished.clear();
    }

    /// Ends the recording, and takes in all announcements of the workload.
    pub fn stop_recording(&mut self) -> anyhow::Result<Recording> {
        self.listen();
        (self.failure, self.untold) = (None, 0);
        if let Some(complaint) = self.misunderstood.take() {
            anyhow::bail!(complaint);
        }
        self.recording.take().ok_or_else(|| anyhow::anyhow!("nothing was recorded"))
    }

    /// A copy of the end that the workload is heard through, to wait on.
    pub fn announcements(&self) -> io::Result<OwnedFd> {
        self.announcements.try_clone()
    }

    /// That end itself.
    pub fn hears_by(&self) -> BorrowedFd<'_> {
        self.announcements.as_fd()
    }

    /// Takes in the announcements of the workload until now.
    pub fn listen(&mut self) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = rustix::io::read(&self.announcements, &mut bytes) {
            self.unfinished.extend_from_slice(&bytes[..count]);
        }
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            match Announcement::parse(&String::from_utf8_lossy(&line)) {
                Ok(Some(Announcement::Acknowledged(range))) => {
                    self.record(Event::Acknowledged(range));
                }
                Ok(Some(Announcement::Dropped(range))) => self.record(Event::Dropped(range)),
                Ok(None) => {}
                Err(complaint) => self.misunderstood = Some(complaint.to_string()),
            }
        }
    }

    /// Answers a read.
    pub fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, Errno> {
        if self.outage == Some(Outage::All) {
            return Err(Errno::IO);
        }
        let rest = self.image.len_bytes().saturating_sub(offset);
        let mut bytes = vec![0; len.min(usize::try_from(rest).unwrap_or(usize::MAX))];
        self.image.read(offset, &mut bytes);
        Ok(bytes)
    }

    /// Answers a write.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        self.listen();
        self.writes += 1;
        if self.failure == Some(Failure::Write(self.writes)) {
            return Err(Errno::IO);
        }
        match self.outage {
            Some(Outage::Writes | Outage::All) => return Err(Errno::IO),
            Some(Outage::NewBlocks) if !self.image.has_all(offset, bytes.len()) => {
                return Err(Errno::NOSPC);
            }
            _ => {}
        }
        self.record(Event::Write(offset, bytes.to_vec()));
        self.image.write(offset, bytes);
        Ok(())
    }

    /// Answers a flush.
    pub fn flush(&mut self) -> Result<(), Errno> {
        self.listen();
        self.flushes += 1;
        if self.failure == Some(Failure::Lose(self.flushes)) {
            self.lose_cache();
            return Err(Errno::IO);
        }
        let has_failed = self.failure == Some(Failure::Flush(self.flushes));
        if has_failed || matches!(self.outage, Some(Outage::Writes | Outage::All)) {
            return Err(Errno::IO);
        }
        if self.untold > 0 {
            self.untold -= 1;
            return Err(Errno::IO);
        }
        self.record(Event::Flush);
        Ok(())
    }

    /// Returns to the state of the last flush.
    fn lose_cache(&mut self) {
        if let Some(recording) = &self.recording {
            let mut walk = Walk::new(recording, &[]);
            walk.advance_to(recording.events.len());
            self.untold = walk.unflushed_count();
            self.image = walk.into_medium();
        }
        self.record(Event::Lost);
    }

    fn record(&mut self, event: Event) {
        if let Some(recording) = &mut self.recording {
            recording.events.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    #[test]
    fn what_is_said_stands_before_what_is_written_later() {
        let (out, say) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut disk = Disk::new(Image::new(4096), out);
        disk.start_recording(None);
        disk.write(0, b"one").unwrap();
        disk.flush().unwrap();
        rustix::io::write(&say, b"hello\nACK 1\nDROP 1-").unwrap();
        disk.write(1, b"two").unwrap();
        rustix::io::write(&say, b"2\n").unwrap();
        let events = disk.stop_recording().unwrap().events;
        let expected = [
            Event::Write(0, b"one".to_vec()),
            Event::Flush,
            Event::Acknowledged(1..=1),
            Event::Write(1, b"two".to_vec()),
            Event::Dropped(1..=2),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_failing_disk_fails_once_and_may_forget() {
        let (out, _say) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut disk = Disk::new(Image::new(4096), out);
        disk.start_recording(Some(Failure::Lose(2)));
        disk.write(0, b"a").unwrap();
        disk.flush().unwrap();
        disk.write(0, b"b").unwrap();
        assert_eq!(disk.flush(), Err(Errno::IO));
        assert_eq!(disk.read(0, 1).unwrap(), b"a");
        assert_eq!(disk.flush(), Err(Errno::IO), "who has written what is gone is told");
        assert_eq!(disk.flush(), Ok(()));
        assert_eq!(disk.stop_recording().unwrap().events[3..], [Event::Lost, Event::Flush]);
    }

    #[test]
    fn a_disk_that_is_out_changes_nothing_and_works_again() {
        let (out, _say) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut disk = Disk::new(Image::new(3 * 4096), out);
        disk.write(0, &[1; 4096]).unwrap();
        disk.fail(Some(Outage::NewBlocks));
        assert_eq!(disk.write(0, &[2; 4097]), Err(Errno::NOSPC));
        assert_eq!(disk.read(0, 1).unwrap(), [1], "a request fails whole");
        assert_eq!((disk.write(0, &[3; 4096]), disk.flush()), (Ok(()), Ok(())));
        disk.fail(Some(Outage::Writes));
        assert_eq!((disk.write(0, &[4]), disk.flush()), (Err(Errno::IO), Err(Errno::IO)));
        assert_eq!(disk.read(0, 1).unwrap(), [3]);
        disk.fail(Some(Outage::All));
        assert_eq!(disk.read(0, 1), Err(Errno::IO));
        disk.fail(None);
        assert_eq!((disk.write(8192, &[5]), disk.flush()), (Ok(()), Ok(())));
        assert_eq!(disk.read(8192, 1).unwrap(), [5]);
    }

    #[test]
    fn failures_are_read_strictly() {
        assert_eq!("write:61".parse(), Ok(Failure::Write(61)));
        assert!("write:0".parse::<Failure>().is_err());
        assert!("write".parse::<Failure>().is_err());
    }
}
