//! Removing the oldest files of a text log, as its policy says.
//!
//! Done by a writer that began a new file, an opener of the log, and an append that finds the disk
//! full. Only files that are closed and wholly published are removed; the one that is written never
//! is.
//!
//! **If the process dies here**: `begin` is raised before files are removed, the oldest first; the
//! next process removes the files wholly before it.

use std::time::Duration;

use crate::Result;
use crate::log::keep::cursors::file::CursorFile;
use crate::log::layout::closed_files;
use crate::log::layout::text::{TextLog, TextWriter};
use crate::log::state::place;
use crate::options::policy::Policy;
use crate::segment::listing::{Listing, SegmentFile, remove_all};
use crate::shared::files::RemovalRule;
use crate::shared::tail_word;
use crate::sys::clock;

impl TextLog<'_> {
    /// The rules by which files are to go, oldest first, one for each that is more than the policy
    /// allows.
    fn excess(self, policy: &Policy, files: &[SegmentFile]) -> Result<Vec<RemovalRule>> {
        let closed = Listing::count_before(files, tail_word::published(self.core.words()));
        let lens = match policy.retain_bytes {
            Some(_) => closed_files::lens_of(self.core, files)?,
            None => vec![0; files.len()],
        };
        let mut kept_bytes: u64 = lens.iter().sum();
        let now = clock::seconds();
        let ends = match policy.retain_age {
            Some(_) => closed_files::ends_of(self.core, files, now),
            None => vec![now; files.len()],
        };
        let excess_groups = policy.retain_files.map_or(0, |kept| excess_by_files(files, kept));
        let mut rules = Vec::new();
        for index in 0..closed {
            let is_old = |age: Duration| ends[index].saturating_add(age.as_secs()) <= now;
            let rule = if index < excess_groups {
                RemovalRule::Files
            } else if policy.retain_bytes.is_some_and(|limit| kept_bytes > limit) {
                RemovalRule::Bytes
            } else if policy.retain_age.is_some_and(is_old) {
                RemovalRule::Age
            } else {
                break;
            };
            rules.push(rule);
            kept_bytes -= lens[index];
        }
        Ok(rules)
    }
}

impl TextWriter<'_> {
    /// Removes the files that are not to be kept; returns how many.
    ///
    /// Lists and removes without the prepare lock, which writers need: no process uses files before
    /// `begin`, and files only come behind those that were listed.
    pub(crate) fn remove_old(self, policy: &Policy) -> Result<usize> {
        let core = self.writer.core;
        let words = core.words();
        core.check_words()?;
        // Another log may have taken the place.
        place::require(core)?;
        let files = Listing::read(&core.files.dir)?.files;
        let left_over = Listing::count_before(&files, core.begin());
        let (files_left, excess) =
            (&files[left_over..], TextLog::of(core).excess(policy, &files[left_over..])?);
        let mut gone = left_over + excess.len();
        if gone > left_over {
            // Before the lock, which writers need.
            let holding = CursorFile::of(core).sync_holding_cursors()?;
            let len = |file: &SegmentFile| file.text_len(&core.files.dir).unwrap_or(0);
            let lens: Vec<u64> = files_left[..excess.len()].iter().map(len).collect();
            let _held = self.writer.lock_prepare()?;
            let kept = CursorFile::of(core).held_from(holding)?;
            gone = left_over + Listing::count_before(files_left, kept).min(excess.len());
            let begin = words.raise_begin(files[gone].first);
            core.check_region()?;
            // Others may have come first with some of them.
            let removed = files_left[..gone - left_over].iter();
            for ((file, rule), len) in removed.zip(&excess).zip(lens) {
                if file.first >= begin {
                    words.removed.count(*rule, len);
                }
            }
        }
        // Those that stay `Stat::left_over` tells.
        Ok(remove_all(&core.files.dir, &files[..gone]).0)
    }
}

/// How many of `files`, oldest first, are more than `kept` beside the newest. A file that continues
/// another counts as one with it, and goes with it: else a rule would remove what was written a
/// moment ago because there was much of it.
fn excess_by_files(files: &[SegmentFile], kept: u64) -> usize {
    let mut starts: Vec<usize> =
        (0..files.len()).filter(|index| !files[*index].is_continuation).collect();
    if starts.first() != Some(&0) && !files.is_empty() {
        // Its beginning has gone before.
        starts.insert(0, 0);
    }
    let excess = (starts.len() as u64).saturating_sub(1).saturating_sub(kept) as usize;
    starts.get(excess).copied().unwrap_or(0)
}
