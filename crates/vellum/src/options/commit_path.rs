//! How a commit group gets to the device: [`CommitPath`].

use std::fmt;
use std::str::FromStr;

use crate::options::choice::named;
use crate::{Error, ErrorKind, Result};

/// The blocks in which commit groups can be written.
const BLOCKS_BYTES: [u64; 4] = [512, 1024, 2048, 4096];
/// Commit groups that can be in flight, at most.
const LANES_MAX: u32 = 4;

/// The step that makes a direct write survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceWrite {
    /// One write with `O_DSYNC`: the device writes past its cache (FUA), or the kernel flushes the
    /// cache behind it.
    Dsync,
    /// A write without it, and an `fdatasync`, which flushes the device's cache.
    Fdatasync,
}

named!(DeviceWrite, "write to the device", Dsync = "dsync", Fdatasync = "fdatasync");

/// How a [staged](crate::Fill::Staged) log brings a commit group to the device.
///
/// It belongs to the process and the device, and not to the log's content: processes may differ,
/// and each commit group is as durable by any path. As text it is `dsync/4096/2`: write, block in
/// bytes, lanes.
///
/// ```
/// use vellum::{CommitPath, DeviceWrite};
///
/// let path: CommitPath = "fdatasync/4096/1".parse()?;
/// assert_eq!(path.write, DeviceWrite::Fdatasync);
/// assert_eq!(path.to_string(), "fdatasync/4096/1");
/// # Ok::<(), vellum::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommitPath {
    /// The step that makes the write durable.
    pub write: DeviceWrite,
    /// Bytes of the blocks that commit groups are written in: 512, 1024, 2048 or 4096.
    pub block_bytes: u64,
    /// Commit groups that may be in flight at the same time: 1 to 4.
    pub lanes: u32,
}

impl CommitPath {
    /// Refuses what is out of range.
    pub(crate) fn check(&self) -> Result<()> {
        let is_possible =
            BLOCKS_BYTES.contains(&self.block_bytes) && (1..=LANES_MAX).contains(&self.lanes);
        if is_possible { Ok(()) } else { Err(refusal(&self.to_string())) }
    }
}

impl fmt::Display for CommitPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}/{}", self.write, self.block_bytes, self.lanes))
    }
}

impl FromStr for CommitPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<CommitPath> {
        let refused = || refusal(text);
        let mut parts = text.split('/');
        let mut next = || parts.next().ok_or_else(refused);
        let path = CommitPath {
            write: next()?.parse()?,
            block_bytes: next()?.parse().map_err(|_| refused())?,
            lanes: next()?.parse().map_err(|_| refused())?,
        };
        if parts.next().is_some() {
            return Err(refused());
        }
        path.check().map(|()| path)
    }
}

fn refusal(text: &str) -> Error {
    let message = format!(
        "{text:?} is not a \0commit_path\0; write it as dsync/4096/2: dsync or fdatasync, a block of \
         512, 1024, 2048 or 4096 bytes, 1 to {LANES_MAX} lanes"
    );
    Error::new(ErrorKind::InvalidOption, message)
}

/// Where a log's commit path comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathOrigin {
    /// From what is known of the filesystem and the device.
    Default,
    /// From a measurement on this device, which is stored beside the log.
    Measured,
    /// A user chose it for this device, and it is stored beside the log.
    Chosen,
    /// From [`Tuning::commit_path`](crate::Tuning::commit_path).
    Options,
}

named!(
    PathOrigin,
    "origin of a commit path",
    Default = "default",
    Measured = "measured",
    Chosen = "chosen",
    Options = "options"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_both_ways_as_text() {
        for text in ["dsync/512/2", "fdatasync/4096/1", "dsync/1024/4"] {
            assert_eq!(text.parse::<CommitPath>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_path_out_of_range_is_refused_with_an_example() {
        let wrong =
            ["", "dsync", "dsync/512", "dsync/511/1", "dsync/8192/1", "dsync/512/0", "dsync/512/5"];
        for text in wrong.into_iter().chain(["dsync/512/1/1", "sync/512/1", "dsync/-1/1"]) {
            let error = text.parse::<CommitPath>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOption, "{text}");
            assert!(error.to_string().contains("dsync"), "{error}");
        }
    }
}
