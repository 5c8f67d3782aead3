//! The text in the files of a text log.

use std::sync::Arc;

use crate::files::open_files::{open_file, open_to_read};
use crate::files::view::View;
use crate::lsn::Range;
use crate::segment::listing::Listing;
use crate::{Lsn, Result};

/// The stretches without NULs of a text segment.
pub fn text_runs(view: &dyn View, listing: &mut Arc<Listing>, first: Lsn) -> Result<Vec<Range>> {
    const STEP: usize = 1 << 20;
    let segment = open_file(view, listing, first)?;
    let len = segment.data_len()?.min(view.files().capacity());
    let mut runs: Vec<Range> = Vec::new();
    let mut bytes = vec![0; STEP.min(len as usize)];
    let mut offset = 0;
    while offset < len {
        let wanted = bytes.len().min((len - offset) as usize);
        let count = segment.read(Lsn::new(first.get() + offset), &mut bytes[..wanted])?;
        let mut at = 0;
        while let Some(begin) = bytes[at..count].iter().position(|byte| *byte != 0) {
            let begin = at + begin;
            let rest = &bytes[begin..count];
            let run_len = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            let start = Lsn::new(first.get() + offset + begin as u64);
            match runs.last_mut().filter(|run| run.end() == start) {
                Some(run) => run.len += run_len as u64,
                None => runs.push(Range { start, len: run_len as u64 }),
            }
            at = begin + run_len;
        }
        if count < wanted {
            break;
        }
        offset += count as u64;
    }
    Ok(runs)
}

/// The last newline between `first`, where a segment starts, and `end` in it.
pub(crate) fn last_newline(view: &dyn View, first: Lsn, mut end: Lsn) -> Result<Option<Lsn>> {
    const STEP: u64 = 64 << 10;
    let segment = open_to_read(view, first)?;
    let mut bytes = vec![0; STEP as usize];
    while end > first {
        let start = Lsn::new(end.get().saturating_sub(STEP).max(first.get()));
        let wanted = (end.get() - start.get()) as usize;
        let count = segment.read(start, &mut bytes[..wanted])?;
        if let Some(newline) = memchr::memrchr(b'\n', &bytes[..count]) {
            return Ok(Some(Lsn::new(start.get() + newline as u64)));
        }
        end = start;
    }
    Ok(None)
}
