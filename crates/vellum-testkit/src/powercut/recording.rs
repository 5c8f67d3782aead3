//! The requests to a disk and the announcements of the workload, in one order.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::RangeInclusive;
use std::path::Path;

use super::image::{BLOCK_LEN, Image};
use super::ranges::Ranges;

/// The first bytes of a saved recording.
const MAGIC: &[u8; 16] = b"vellum-powercut1";

/// One thing that happened, as the disk saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes were put at an offset; they are in the disk's cache until the next flush.
    Write(u64, Vec<u8>),
    /// All that was written before is on the medium.
    Flush,
    /// A flush failed, and the content of the cache is gone.
    Lost,
    /// The workload promised that these records survive.
    Acknowledged(RangeInclusive<u64>),
    /// The workload was about to delete these records.
    Dropped(RangeInclusive<u64>),
}

/// A disk as it was, and all that happened to it then.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The medium before the first event.
    pub start: Image,
    /// In the order in which the disk took them.
    pub events: Vec<Event>,
}

impl Recording {
    /// A recording of nothing yet.
    pub fn new(start: Image) -> Recording {
        Recording { start, events: Vec::new() }
    }

    /// How many events satisfy a condition.
    pub fn count(&self, condition: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| condition(event)).count()
    }

    /// The smallest record number that was ever acknowledged or dropped.
    pub fn origin(&self) -> Option<u64> {
        let numbers = self.events.iter().filter_map(|event| match event {
            Event::Acknowledged(range) | Event::Dropped(range) => Some(*range.start()),
            _ => None,
        });
        numbers.min()
    }

    /// All records that were ever acknowledged.
    pub fn acknowledged(&self) -> Ranges {
        let mut acknowledged = Ranges::default();
        for event in &self.events {
            if let Event::Acknowledged(range) = event {
                acknowledged.insert(range);
            }
        }
        acknowledged
    }

    /// Saves the recording and the name of its filesystem.
    pub fn save(&self, path: &Path, filesystem: &str) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        file.write_all(MAGIC)?;
        put_bytes(&mut file, filesystem.as_bytes())?;
        put(&mut file, &[self.start.len_bytes(), self.start.blocks().count() as u64])?;
        for (offset, block) in self.start.blocks() {
            put(&mut file, &[offset])?;
            file.write_all(block)?;
        }
        put(&mut file, &[self.events.len() as u64])?;
        for event in &self.events {
            match event {
                Event::Write(offset, bytes) => {
                    put(&mut file, &[0, *offset])?;
                    put_bytes(&mut file, bytes)?;
                }
                Event::Flush => put(&mut file, &[1])?,
                Event::Lost => put(&mut file, &[2])?,
                Event::Acknowledged(range) => put(&mut file, &[3, *range.start(), *range.end()])?,
                Event::Dropped(range) => put(&mut file, &[4, *range.start(), *range.end()])?,
            }
        }
        file.flush()
    }

    /// Loads a saved recording and the name of its filesystem.
    pub fn load(path: &Path) -> io::Result<(Recording, String)> {
        let mut file = BufReader::new(File::open(path)?);
        let mut magic = [0; MAGIC.len()];
        file.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Err(io::Error::other("this is no recording"));
        }
        let filesystem = String::from_utf8_lossy(&take_bytes(&mut file)?).into_owned();
        let mut start = Image::new(take(&mut file)?);
        let mut block = [0; BLOCK_LEN];
        for _ in 0..take(&mut file)? {
            let offset = take(&mut file)?;
            file.read_exact(&mut block)?;
            start.write(offset, &block);
        }
        let mut recording = Recording::new(start);
        for _ in 0..take(&mut file)? {
            recording.events.push(take_event(&mut file)?);
        }
        Ok((recording, filesystem))
    }
}

fn take_event(file: &mut impl Read) -> io::Result<Event> {
    Ok(match take(file)? {
        0 => Event::Write(take(file)?, take_bytes(file)?),
        1 => Event::Flush,
        2 => Event::Lost,
        3 => Event::Acknowledged(take(file)?..=take(file)?),
        4 => Event::Dropped(take(file)?..=take(file)?),
        kind => return Err(io::Error::other(format!("unknown event {kind} in the recording"))),
    })
}

fn put(file: &mut impl Write, numbers: &[u64]) -> io::Result<()> {
    numbers.iter().try_for_each(|number| file.write_all(&number.to_le_bytes()))
}

fn put_bytes(file: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    put(file, &[bytes.len() as u64])?;
    file.write_all(bytes)
}

fn take(file: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn take_bytes(file: &mut impl Read) -> io::Result<Vec<u8>> {
    let len = take(file)?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_recording_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("recording");
        let mut recording = Recording::new(Image::new(10 * BLOCK_LEN as u64));
        recording.start.write(5000, b"there before");
        recording.events = vec![
            Event::Write(512, vec![1; 1024]),
            Event::Flush,
            Event::Acknowledged(1..=3),
            Event::Dropped(1..=1),
            Event::Lost,
        ];
        recording.save(&path, "ext4").unwrap();
        let (loaded, filesystem) = Recording::load(&path).unwrap();
        assert_eq!((loaded.events, filesystem), (recording.events, "ext4".to_owned()));
        assert!(loaded.start.blocks().eq(recording.start.blocks()));
    }
}
