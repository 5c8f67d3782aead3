//! The workload, with its faults.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::Context;

use super::{SEGMENT_LEN, SEGMENT_RECORDS, WorkMode, record, segment_name, segments};

/// How often the program that syncs again does so.
const RETRIES: u32 = 9;

/// Segments that are kept; older ones are deleted.
const SEGMENTS_KEPT: usize = 5;

/// Appends the records from 1 to `records`.
pub fn work(mode: WorkMode, dir: &Path, records: u64) -> anyhow::Result<()> {
    let writer = Writer { mode, dir };
    let (mut segment, mut offset) = (None, 0);
    for number in 1..=records {
        let bytes = record(number);
        if mode == WorkMode::EarlyAck {
            println!("ACK {number}");
        }
        match &segment {
            Some(file) if (number - 1) % SEGMENT_RECORDS != 0 => {
                writer.append(file, offset, &bytes)?;
                offset += bytes.len() as u64;
            }
            _ => {
                segment = Some(writer.begin_segment(number, &bytes)?);
                offset = bytes.len() as u64;
            }
        }
        if mode != WorkMode::EarlyAck {
            println!("ACK {number}");
        }
        writer.delete_oldest()?;
    }
    Ok(())
}

struct Writer<'a> {
    mode: WorkMode,
    dir: &'a Path,
}

impl Writer<'_> {
    /// Makes a segment with one record, which has its name only once it is whole.
    fn begin_segment(&self, number: u64, bytes: &[u8]) -> anyhow::Result<File> {
        let unfinished = self.dir.join("unfinished");
        let file = File::create(&unfinished)?;
        file.write_all_at(&[0; SEGMENT_LEN as usize], 0)?;
        self.append(&file, 0, bytes)?;
        std::fs::rename(&unfinished, self.dir.join(segment_name(number)))?;
        self.sync_directory().context("cannot sync the directory")?;
        Ok(file)
    }

    fn append(&self, file: &File, offset: u64, bytes: &[u8]) -> anyhow::Result<()> {
        file.write_all_at(bytes, offset)?;
        self.sync(file).context("cannot sync a record")
    }

    fn delete_oldest(&self) -> anyhow::Result<()> {
        let segments = segments(self.dir)?;
        let surplus = segments.len().saturating_sub(SEGMENTS_KEPT);
        for pair in segments.windows(2).take(surplus) {
            if self.mode != WorkMode::NoDrop {
                println!("DROP {}-{}", pair[0], pair[1] - 1);
            }
            std::fs::remove_file(self.dir.join(segment_name(pair[0])))?;
            self.sync_directory()?;
        }
        Ok(())
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        match self.mode {
            WorkMode::NoSync => Ok(()),
            WorkMode::RetrySync => (0..RETRIES)
                .fold(file.sync_data(), |answer, _| answer.or_else(|_| file.sync_data())),
            _ => file.sync_data(),
        }
    }

    fn sync_directory(&self) -> io::Result<()> {
        match self.mode {
            WorkMode::NoSync | WorkMode::NoDirectorySync => Ok(()),
            _ => File::open(self.dir)?.sync_all(),
        }
    }
}
