//! The choices of a measurement, and which of them have room.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::ArgPredicate;
use vellum_command::values;

use super::source::STAMP_BYTES;
use super::state::State;
use crate::bytes::size;
use crate::conditions::{free_bytes, memory_bytes};
use crate::error::{Error, Result};
use crate::names::named;
use crate::place::Scope;
use crate::suite::check_unique;
use crate::suite::options::{from_words, usual};

/// Files are made of whole blocks of this size, for `O_DIRECT` takes no less.
const BLOCK_BYTES: u64 = 4096;
/// A file smaller than this is no measure of anything.
const BYTES_MIN: u64 = 1 << 20;
/// For directories, journals and other data of the filesystem: a sixteenth, and so much.
const SPARE_SHARE: u64 = 16;
const SPARE_BYTES: u64 = 8 << 20;
/// Neither a machine with more is known, nor would each have a page of the smallest file.
const THREADS_MAX: u32 = 256;
/// One call takes no more.
const CHUNK_BYTES_MAX: u64 = 1 << 30;

named! {
    /// A question, and the table that answers it.
    pub enum Table, "is not a table" {
        /// The cost of making a file of a size
        Create = "create",
        /// How fast are stores into a mapped file, by several threads?
        Mmap = "mmap",
        /// How fast does one thread write, by the call and the size of its pieces?
        Simple = "simple",
        /// How fast do several threads write one file, or one each?
        Parallel = "parallel",
    }
}

const EXAMPLES: &str = "\
Examples:
  vellum bench write --quick
  vellum bench write --dir /mnt/data --json result.json
  vellum bench write --fs ext4,xfs,btrfs,tmpfs --tables parallel --threads 1,2,4
  vellum bench write --tables simple --bytes 256M --states preallocated --chunks 4K,64K,1M
  vellum bench write --tables parallel --ways 'files,vellum-parallel sync' --rounds 9";

/// Every way to make a file and to fill it: how fast, with and without a sync?
///
/// Four tables: `create`, the cost of making a file of a size; `mmap`, stores into a mapped file;
/// `simple`, one thread, by the call and the size of its pieces; `parallel`, several threads and
/// one file, or one each. All cases of a table take turns in rounds, the first of which is not
/// counted; after each, the file is read back and compared. Cases that this system can't run are
/// reported with the reason.
///
/// The full run takes half an hour to an hour on each filesystem; --quick takes less than half a
/// minute. Files are made smaller where disk or memory would not hold them, and a warning says so.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = EXAMPLES,
    mut_arg("rounds", |option| usual(option, "3", "2")),
    mut_arg("quick", |option| option.help(
        "64 MiB, two rounds, chunks of 4 KiB and 1 MiB, one and two threads, files emptied and \
         preallocated, as far as nothing else is asked for",
    )),
)]
#[non_exhaustive]
pub struct Config {
    /// Which tables: create, mmap, simple, parallel [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_values_t = Table::ALL, hide_default_value = true)]
    pub tables: Vec<Table>,
    /// How long the file is, or all files of a case together
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    #[arg(default_value = "1GiB", default_value_if("quick", ArgPredicate::IsPresent, "64MiB"))]
    pub bytes: u64,
    /// How long the file is, for the table `create`, as 1M,64M,1G: a table for each [default: as
    /// --bytes]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::bytes)]
    pub sizes: Vec<u64>,
    /// How much is written at a time, for the table `simple`; sizes beyond that of the file are
    /// left out
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::bytes)]
    #[arg(
        default_value = "1K,4K,8K,16K,64K,1M,16M,64M,512M,1G",
        default_value_if("quick", ArgPredicate::IsPresent, "4K,1M")
    )]
    pub chunks: Vec<u64>,
    /// How much a thread writes at a time, for the table `parallel`
    #[arg(id = "piece", long, value_name = "BYTES", value_parser = values::bytes)]
    #[arg(default_value = "1MiB")]
    pub piece_bytes: u64,
    /// How many threads write
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    #[arg(default_value = "1,2,4,8,16", default_value_if("quick", ArgPredicate::IsPresent, "1,2"))]
    pub threads: Vec<u32>,
    /// The state of the file before: emptied, sparse, preallocated, written [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[arg(default_values_t = State::ALL, hide_default_value = true)]
    #[arg(default_value_if("quick", ArgPredicate::IsPresent, "emptied,preallocated"))]
    pub states: Vec<State>,
    /// Which ways, by their names in the report, as `files,vellum-parallel` [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub ways: Vec<String>,
    /// No single measurement may take longer; the default is ten minutes. Then its process is
    /// killed and the case has failed.
    #[arg(skip = Duration::from_secs(600))]
    pub limit: Duration,
    /// Where, and how many rounds.
    #[command(flatten)]
    pub scope: Scope,
}

impl Config {
    /// All of it, in `directory`.
    pub fn new(directory: impl Into<PathBuf>) -> Config {
        from_words(&[], directory)
    }

    /// The same in a few seconds: 64 MiB, two rounds, two sizes, one and two threads, an empty and
    /// a preallocated file.
    pub fn quick(directory: impl Into<PathBuf>) -> Config {
        from_words(&["--quick"], directory)
    }

    /// Refuses what can't be run or could not be verified.
    pub(super) fn check(&self) -> Result<()> {
        let lists = [
            self.tables.is_empty(),
            self.chunks.is_empty(),
            self.threads.is_empty(),
            self.states.is_empty(),
        ];
        if lists.contains(&true) {
            let text = "at least one table, chunk, number of threads and state are needed";
            return Err(Error::invalid(text));
        }
        let is_odd = |bytes: &&u64| **bytes < BYTES_MIN || !bytes.is_multiple_of(BLOCK_BYTES);
        if let Some(bytes) = self.sizes.iter().chain([&self.bytes]).find(is_odd) {
            return Err(Error::invalid(format!(
                "a file of {bytes} bytes can't be measured: 1 MiB at least, and whole blocks of \
                 4 KiB"
            )));
        }
        check_unique(&self.sizes, "size")?;
        for (chunk, unit) in self
            .chunks
            .iter()
            .map(|chunk| (*chunk, STAMP_BYTES))
            .chain([(self.piece_bytes, BLOCK_BYTES)])
        {
            if chunk == 0 || !chunk.is_multiple_of(unit) || chunk > CHUNK_BYTES_MAX {
                return Err(Error::invalid(format!(
                    "{chunk} bytes can't be written at a time: multiples of {unit} up to 1 GiB"
                )));
            }
        }
        match self.threads.iter().find(|threads| !(1..=THREADS_MAX).contains(*threads)) {
            Some(threads) => {
                Err(Error::invalid(format!("{threads} threads are not from 1 to {THREADS_MAX}")))
            }
            None => Ok(()),
        }
    }

    /// The free bytes that a filesystem needs for files of `bytes`.
    pub(super) fn needed(&self, bytes: u64) -> u64 {
        let bytes = bytes * self.scope.versions();
        bytes + bytes / SPARE_SHARE + SPARE_BYTES
    }

    /// The longest file that is asked for.
    pub(super) fn longest(&self) -> u64 {
        self.sizes.iter().copied().chain([self.bytes]).max().unwrap_or(self.bytes)
    }

    /// How long the file can be, and why not as long as it should be.
    ///
    /// # Errors
    ///
    /// Not even the smallest has room.
    pub(super) fn fit(&self, home: &Path) -> Result<(u64, Option<String>)> {
        let asked = self.longest();
        let mut bytes = asked;
        let mut reason = String::new();
        // The file may be in memory itself, and so may what is written; the rest is not ours.
        let memory = memory_bytes("MemAvailable").unwrap_or(u64::MAX);
        let versions = self.scope.versions();
        if bytes > memory / 4 / versions {
            bytes = memory / 4 / versions;
            reason = format!("what has room in the {} MiB of memory available", memory >> 20);
        }
        if self.scope.in_directory {
            let free = free_bytes(home)?;
            if self.needed(bytes) > free {
                let usable = free.saturating_sub(SPARE_BYTES) / versions;
                bytes = usable - usable.div_ceil(SPARE_SHARE + 1);
                reason = format!("what has room in the {} MiB free on the disk", free >> 20);
            }
        }
        if reason.is_empty() {
            return Ok((bytes, None));
        }
        bytes -= bytes % BYTES_MIN;
        let (asked, taken) = (size(asked), size(bytes));
        if bytes == 0 {
            return Err(Error::no_space(format!("not even a file of 1 MiB has room: {reason}")));
        }
        Ok((bytes, Some(format!("files are {taken} and not {asked}: {reason}"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::ScratchKind;

    #[test]
    fn a_filesystem_that_keeps_old_blocks_needs_room_for_both() {
        let mut config = Config::new("/proc");
        let one = config.needed(1 << 30);
        config.scope.scratch = vec![ScratchKind::Xfs];
        assert_eq!(config.needed(1 << 30), one);
        for kind in [ScratchKind::Btrfs, ScratchKind::BtrfsRaid0] {
            config.scope.scratch = vec![ScratchKind::Xfs, kind];
            assert!(config.needed(1 << 30) >= one + (1 << 30), "{kind}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::new(".");
            change(&mut config);
            assert_eq!(config.check().unwrap_err().kind(), crate::ErrorKind::InvalidOption);
        };
        refused(|config| config.bytes = 4096);
        refused(|config| config.bytes = (1 << 20) + 1);
        refused(|config| config.chunks = vec![1000]);
        refused(|config| config.piece_bytes = 1024);
        refused(|config| config.threads = vec![0]);
        refused(|config| config.threads = vec![1000]);
        refused(|config| config.tables.clear());
        refused(|config| config.sizes = vec![4096]);
        refused(|config| config.sizes = vec![1 << 20, 1 << 20]);
    }

    #[test]
    fn a_file_that_has_no_room_is_made_smaller_and_that_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new(dir.path());
        config.bytes = 1 << 20;
        assert_eq!(config.fit(dir.path()).unwrap(), (1 << 20, None));
        config.bytes = 1 << 60;
        let (bytes, warning) = config.fit(dir.path()).unwrap();
        assert!(bytes < 1 << 60 && bytes % BYTES_MIN == 0, "{bytes}");
        assert!(warning.unwrap().contains("and not"));
    }
}
