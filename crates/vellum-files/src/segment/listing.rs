//! Which segment is in which file, by the names in the log's directory.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{STAGE_SUFFIX, names};
use crate::error::OsResult;
use crate::format::segment::{compressed_path, parse_file_name, path, text_file_pattern};
use crate::format::{gzip, zstd};
use crate::sys::{self, Dir};
use crate::{Compression, Error, ErrorKind, Layout, Lsn, Result};

/// A segment file.
#[derive(Clone, Debug)]
pub struct SegmentFile {
    /// First position of the segment.
    pub first: Lsn,
    /// When its first record went in, in seconds since 1970, where the name tells it.
    pub time: Option<u64>,
    /// Whether it continues the file before it, which was full.
    pub is_continuation: bool,
    /// How the file is compressed.
    pub compression: Compression,
    /// Its path.
    pub path: PathBuf,
    /// The file that it was compressed from, where that is still there.
    pub plain: Option<PathBuf>,
}

/// The segment files of a log, oldest first.
///
/// Where a file is there compressed and as it was, because a process died between the two, the
/// compressed one counts: it was on the device before it got its name, and a power cut may bring
/// back the other as it was long before. Of two that differ in time the later counts: the other is
/// of a creation that failed, and could not even be undone.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The segments.
    pub files: Vec<SegmentFile>,
    /// The files of the stage, in no order.
    pub stages: Vec<PathBuf>,
}

/// The closed files of a text log as a thread of this process listed them last: a read of a single
/// record has no listing of its own, and the directory may have thousands of names.
///
/// A hint: a reader that does not find a file there, or under the name there, lists the directory.
#[derive(Debug, Default)]
pub(crate) struct LastListing(Mutex<Arc<Listing>>);

impl LastListing {
    /// Empty where another thread is at it, perhaps one of the process that forked this one.
    pub(crate) fn get(&self) -> Arc<Listing> {
        self.0.try_lock().map(|last| Arc::clone(&last)).unwrap_or_default()
    }

    /// Keeps the files before `newest`. Those behind it may yet be made anew, under other names.
    pub(crate) fn keep(&self, listing: &Listing, newest: Lsn) {
        let files = listing.files.iter().take_while(|file| file.first < newest).cloned();
        if let Ok(mut last) = self.0.try_lock() {
            *last = Arc::new(Listing { files: files.collect(), stages: Vec::new() });
        }
    }
}

impl Listing {
    /// Lists the files of the log in `dir`.
    pub fn read(dir: &Dir) -> Result<Listing> {
        let mut stages = Vec::new();
        let parse = |name: String| {
            if name.ends_with(STAGE_SUFFIX) {
                stages.push(dir.join(name));
                return None;
            }
            let parsed = parse_file_name(&name)?;
            let (first, time) = (parsed.first, parsed.time);
            let (is_continuation, compression) = (parsed.is_continuation, parsed.compression);
            let path = dir.join(name);
            Some(SegmentFile { first, time, is_continuation, compression, path, plain: None })
        };
        let mut files: Vec<SegmentFile> = names(dir)?.into_iter().filter_map(parse).collect();
        files.sort_unstable_by_key(|file| (file.first, !file.is_compressed(), Reverse(file.time)));
        files.dedup_by(|file, kept| {
            let is_plain = !file.is_compressed();
            if is_plain && compressed_path(&file.path, kept.compression) == kept.path {
                kept.plain = Some(std::mem::take(&mut file.path));
            }
            file.first == kept.first
        });
        Ok(Listing { files, stages })
    }

    /// The file of the segment at `first`.
    pub fn get(&self, first: Lsn) -> Option<&SegmentFile> {
        let index = self.files.binary_search_by_key(&first, |file| file.first).ok()?;
        self.files.get(index)
    }

    /// Path of the segment at `first`, where it is there.
    pub fn path_of(&self, first: Lsn) -> Option<PathBuf> {
        Some(self.get(first)?.path.clone())
    }

    /// How many of `files`, which follow one another, lie wholly before `position`: the next one
    /// begins there or earlier.
    pub fn count_before(files: &[SegmentFile], position: Lsn) -> usize {
        files.windows(2).take_while(|pair| pair[1].first <= position).count()
    }

    /// All files since the one that the newest continues: as long as no rule and no call starts
    /// another, they count as one.
    pub fn newest_group(&self) -> &[SegmentFile] {
        let start = self.files.iter().rposition(|file| !file.is_continuation);
        &self.files[start.unwrap_or(0)..]
    }

    /// First positions, oldest first.
    pub fn firsts(&self) -> Vec<Lsn> {
        self.files.iter().map(|file| file.first).collect()
    }

    /// The latest time that a name tells.
    pub fn newest_time(&self) -> Option<u64> {
        self.files.iter().filter_map(|file| file.time).max()
    }
}

impl SegmentFile {
    /// Whether the file is compressed.
    pub fn is_compressed(&self) -> bool {
        self.compression != Compression::None
    }

    /// When it was changed last, in seconds since 1970, where that can be told.
    pub fn changed_at(&self, dir: &Dir) -> Option<u64> {
        u64::try_from(dir.stat(&self.path).ok()?.st_mtime).ok()
    }

    /// Bytes of text in a compressed file; `None` for one that is not compressed.
    pub fn content_len(&self, dir: &Dir) -> Result<Option<u64>> {
        if !self.is_compressed() {
            return Ok(None);
        }
        let told = self.told_len(dir).or_os("read the compressed segment", &self.path)?;
        told.map(Some).ok_or_else(|| {
            let message = "the compressed segment does not tell how long it was";
            Error::new(ErrorKind::Corrupt, message).at_path(&self.path)
        })
    }

    /// The length that the compressed file tells: zstd at its beginning, gzip at its end.
    fn told_len(&self, dir: &Dir) -> rustix::io::Result<Option<u64>> {
        let fd = dir.open_file(&self.path, OFlags::RDONLY)?;
        let mut header = [0; zstd::HEADER_LEN_MAX];
        let count = sys::file::read_up_to_at(&fd, &mut header, 0)?;
        if self.compression == Compression::Zstd {
            return Ok(zstd::content_len(&header[..count]));
        }
        let mut trailer = [0; gzip::TRAILER_LEN];
        let end = sys::file::len(&fd)?.saturating_sub(trailer.len() as u64);
        sys::file::read_up_to_at(&fd, &mut trailer, end)?;
        Ok(gzip::content_len(&header[..count], trailer))
    }

    /// Bytes of text in the file, compressed or not.
    pub fn text_len(&self, dir: &Dir) -> Result<u64> {
        if let Some(len) = self.content_len(dir)? {
            return Ok(len);
        }
        Ok(dir.stat(&self.path).or_os("look at", &self.path)?.st_size as u64)
    }

    /// Removes the file, and the one that it was compressed from.
    pub fn remove(&self, dir: &Dir) -> Result<()> {
        self.remove_plain(dir)?;
        remove(dir, &self.path)
    }

    /// Removes the file from which this one was compressed, if it is still there.
    pub fn remove_plain(&self, dir: &Dir) -> Result<()> {
        self.plain.as_deref().map_or(Ok(()), |plain| remove(dir, plain))
    }
}

/// Removes files, as many as it can: in a sticky directory those of other users stay, and keep none
/// of the others. Returns how many went, and why the first of those that stay does.
pub fn remove_all<'a>(
    dir: &Dir,
    files: impl IntoIterator<Item = &'a SegmentFile>,
) -> (usize, Result<()>) {
    let answers: Vec<Result<()>> = files.into_iter().map(|file| file.remove(dir)).collect();
    let count = answers.iter().filter(|answer| answer.is_ok()).count();
    (count, answers.into_iter().collect())
}

/// Removes a file, if it is there.
pub fn remove(dir: &Dir, path: &Path) -> Result<()> {
    match dir.unlink(path) {
        Err(Errno::NOENT) => Ok(()),
        answer => answer.or_os("remove the segment", path),
    }
}

/// Path of the segment at `first`, found by listing the directory where the name tells more than
/// that; for a missing file, the form of its path.
pub fn find(dir: &Dir, layout: Layout, first: Lsn) -> Result<PathBuf> {
    if !layout.names_have_times() {
        return Ok(path(dir, first));
    }
    let listing = Listing::read(dir)?;
    let found = listing.get(first).map(|file| file.path.clone());
    Ok(found.unwrap_or_else(|| missing(dir, first)))
}

/// The form of the path of the text segment at `first`.
pub fn missing(dir: &Dir, first: Lsn) -> PathBuf {
    dir.join(text_file_pattern(first))
}
