//! How one large file is written by several threads: a name in `vellum.toml`.

use std::str::FromStr;

use crate::options::choice::named;
use crate::{Error, ErrorKind, Result};

/// How the crate `vellum-parallel` writes one large file from several threads.
///
/// It is here because `vellum.toml` may name one, and `vellum-parallel` does not need that crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// The method that suits the filesystem and whether the file is synced: see the table in the
    /// documentation of `vellum-parallel`.
    #[default]
    Auto,
    /// `pwrite` into the page cache: works everywhere, one thread at a time. On ext4 into allocated
    /// blocks.
    Buffered,
    /// `pwrite` past the page cache into allocated blocks, all threads at the same time. On btrfs
    /// the file is made without copy-on-write, and so without checksums and compression. A thread
    /// that writes alone goes through the page cache, which keeps nothing (Linux 6.14). Where there
    /// are no direct writes, [`Method::Buffered`] takes its place.
    Direct,
    /// Into the page cache. On tmpfs all threads store into huge pages. Elsewhere, and where there
    /// are none, the thread that finds no other there uses `pwrite`, and the others store through a
    /// shared mapping. Where such a mapping is not safe (btrfs, FUSE, overlay, network),
    /// [`Method::Buffered`] takes its place.
    Mapped,
}

named!(
    Method,
    "method of writing",
    Auto = "auto",
    Buffered = "buffered",
    Direct = "direct",
    Mapped = "mapped"
);
