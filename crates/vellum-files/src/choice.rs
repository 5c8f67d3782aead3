//! The choices that options offer.

use std::str::FromStr;

use crate::{Error, ErrorKind, Result};

/// How records lie in the segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// Each record in a frame: 8 bytes of header with its length and checksum. Records are any
    /// bytes, and come back exactly as they were appended.
    #[default]
    Framed,
    /// The caller's bytes and nothing else, so that a segment is a plain file for `grep`, `cat`
    /// and log shippers. A record is read back line by line.
    Text,
}

/// How file space is made ready before records are reserved in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Preallocate {
    /// What suits the filesystem and the way to fill: [`Preallocate::Fallocate`] where it is
    /// supported, [`Preallocate::Off`] elsewhere and on btrfs. In a staged log, written zeros that
    /// are synced ahead of need, and trimmed segments used again; on btrfs without copy-on-write.
    #[default]
    Auto,
    /// Nothing ahead but the prefault window: the file grows with the log.
    Off,
    /// The size of the whole segment without its blocks; a text segment grows with its text.
    /// Records are written by `pwrite` only, because a store into a mapped hole kills the process
    /// when the disk is full.
    Sparse,
    /// Blocks allocated by `fallocate`, in steps ahead of the records; those of whole segments
    /// where [`Log::prepare`](../vellum/struct.Log.html#method.prepare) asks for them, and in a
    /// staged log.
    Fallocate,
    /// The blocks of the whole segment, written with zeros. Framed only.
    Zeros,
    /// As [`Preallocate::Fallocate`], but trimmed segments are kept and used again. Framed only.
    Recycle,
}

/// How records are written to the segment files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fill {
    /// Small records are stored through a shared mapping, large ones written by `pwrite`.
    Mapped,
    /// Every record is written by `pwrite`: one system call each, safe on any filesystem. Text is
    /// written in turns, so that the file only grows and other programs can follow it.
    Pwrite,
    /// Records are stored into a stage, and reach written blocks of the segments by direct,
    /// synchronous writes when they are committed. For framed logs that commit.
    ///
    /// The stage is one file for each segment with records that are not durable, in the log's
    /// directory: three at most unless
    /// [`staged_segments_max`](../vellum/struct.Tuning.html#method.staged_segments_max) says
    /// otherwise. Its pages are dropped when all of the segment is durable, so they hardly ever
    /// reach the device. Records that are not committed survive every process, but not a reboot.
    /// The last process to close the log commits everything. Where a mapping is not safe,
    /// on btrfs for one, each record is written to the stage by one system call.
    Staged,
}

/// How closed files of a text log are compressed:
/// [`Options::compress`](../vellum/struct.Options.html#method.compress).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// They stay as they are.
    #[default]
    None,
    /// To `.log.zst`: smaller and faster than gzip. Needs the feature `zstd`.
    Zstd,
    /// To `.log.gz`, for `zgrep`, `zless` and scripts that know only these. Needs the feature
    /// `gzip`.
    Gzip,
}

impl Compression {
    /// Whether this build of the library can compress so, and read files that are compressed so.
    #[doc(hidden)]
    pub fn is_built(self) -> bool {
        match self {
            Compression::None => true,
            Compression::Zstd => cfg!(feature = "zstd"),
            Compression::Gzip => cfg!(feature = "gzip"),
        }
    }
}

impl From<bool> for Compression {
    fn from(compresses: bool) -> Compression {
        if compresses { Compression::Zstd } else { Compression::None }
    }
}

/// Implements `Display` by the lower-case names of an enum's variants, and `FromStr` where it is
/// said what the enum is.
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    ($type:ident, $($variant:ident = $name:literal),+) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self { $($type::$variant => $name),+ })
            }
        }
    };
    ($type:ident, $what:literal, $($variant:ident = $name:literal),+) => {
        named!($type, $($variant = $name),+);

        impl FromStr for $type {
            type Err = Error;

            fn from_str(name: &str) -> Result<$type> {
                match name {
                    $($name => Ok($type::$variant),)+
                    _ => Err(Error::new(ErrorKind::InvalidOption, format!(
                        concat!("{:?} is not a ", $what, "; it is one of ", $($name, " "),+),
                        name
                    ))),
                }
            }
        }
    };
}
#[doc(hidden)]
pub use named;

named!(Layout, "layout", Framed = "framed", Text = "text");
named!(
    Preallocate,
    "way to preallocate",
    Auto = "auto",
    Off = "off",
    Sparse = "sparse",
    Fallocate = "fallocate",
    Zeros = "zeros",
    Recycle = "recycle"
);
named!(Compression, "compression", None = "none", Zstd = "zstd", Gzip = "gzip");
named!(Fill, "way to fill", Mapped = "mapped", Pwrite = "pwrite", Staged = "staged");
