//! Looking at every byte of a running log, changing none.

use std::sync::Arc;

use crate::files::verify::{Reserved, VerifyReport, damage, note_holes, verify_frames};
use crate::log::read::reader::Reader;
use crate::log::repair::read_limit::ReadLimit;
use crate::log::state::core::Core;
use crate::lsn::Range;
use crate::{ErrorKind, Layout, Lsn, Result};

/// Verifies everything from the beginning to the published end.
pub(crate) fn verify(core: &Arc<Core>) -> Result<VerifyReport> {
    core.check_words()?;
    let begin = core.begin();
    let read_limit = ReadLimit::of(core);
    core.check_region()?;
    let mut report = VerifyReport::default();
    (report.begin, report.end) = (begin, read_limit.end);
    match core.files.geometry.layout {
        Layout::Framed => verify_frames(core, &mut report, |lsn| match read_limit.hole_at(lsn) {
            None => Reserved::Nothing,
            Some(hole) if hole.is_there(core) => Reserved::Until(hole.range.end()),
            Some(_) => Reserved::Padded,
        })?,
        _ => walk_lines(core, &mut report)?,
    }
    // A file that was trimmed away meanwhile is not damage.
    let begin = core.begin().get();
    report.damage.retain(|damage| core.files.segment_end(damage.lsn).get() > begin);
    Ok(report)
}

fn walk_lines(core: &Arc<Core>, report: &mut VerifyReport) -> Result<()> {
    let mut from = report.begin;
    while from < report.end {
        match walk_lines_from(core, from, report) {
            // Trimmed away meanwhile: continue with the rest.
            Err(error) if error.kind() == ErrorKind::Trimmed => {
                from = core.begin();
            }
            answer => return answer,
        }
    }
    Ok(())
}

fn walk_lines_from(core: &Arc<Core>, from: Lsn, report: &mut VerifyReport) -> Result<()> {
    let mut reader = Reader::new(Arc::clone(core), from)?.leave_no_trace();
    reader.skip_damage(true);
    let answer = count_lines(&mut reader, core, report);
    for gap in reader.take_gaps() {
        let first = core.files.segment_of(gap.from);
        let mut there = damage(&**core, first, gap.from, gap.what());
        there.path = gap.path;
        report.damage.push(there);
    }
    answer
}

fn count_lines(reader: &mut Reader, core: &Core, report: &mut VerifyReport) -> Result<()> {
    while reader.position() < report.end {
        let position = reader.position();
        let Some(record) = reader.next()? else { break };
        report.records += 1;
        report.record_bytes += record.payload.len() as u64;
        if record.payload.contains(&0) {
            let range = Range { start: position, len: record.payload.len() as u64 };
            note_holes(core, range, report)?;
        }
    }
    Ok(())
}
