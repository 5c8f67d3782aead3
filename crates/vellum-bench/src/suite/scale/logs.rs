//! Many logs that one process has open.

use std::path::Path;

use super::taken::{Taken, disk_kib};
use super::{Entry, Figure, LIMIT, RECORD_BYTES, limits, subdirectory, timed};
use crate::error::Result;
use crate::process::figures;
use crate::record::Records;
use crate::setting::Setting;
use crate::verify::Ledger;
use crate::ways::{Appender, Prepared};

/// The most that an open log takes of the disk beside its records.
pub(super) const LOG_BYTES_MAX: u64 = 3 << 20;

/// Each is that of one log.
pub(super) const FIGURES: [Figure; 8] = [
    Figure::steady("open", "us"),
    Figure::steady("append", "ns/record"),
    Figure::cost("own memory", "KiB"),
    Figure::cost("mapped", "KiB"),
    Figure::cost("descriptors", "per log"),
    Figure::cost("mappings", "per log"),
    Figure::cost("disk", "KiB"),
    Figure::steady("close", "us"),
];

pub(super) fn measure(entry: Entry, records: u64, dir: &Path) -> Result<Vec<f64>> {
    let setting = Setting::new(1, (records / u64::from(entry.count)).max(2), RECORD_BYTES);
    figures(LIMIT, FIGURES.len(), || one_turn(entry, setting, dir))
}

fn one_turn(entry: Entry, setting: Setting, dir: &Path) -> Result<Vec<f64>> {
    limits::raise()?;
    let Entry { way, count } = entry;
    let way = way.way(&vellum::Options::default());
    let make = |index| way.prepare(&subdirectory(dir, index)?, &setting);
    let made = (0..count).map(make).collect::<Result<Vec<_>>>()?;
    let mut records: Vec<Records> = (0..count).map(|_| Records::new(0, RECORD_BYTES)).collect();
    let mut logs = Vec::with_capacity(made.len());
    let before = Taken::now()?;
    let ((), open) =
        timed(|| made.iter().try_for_each(|log| log.open(0).map(|log| logs.push(log))))?;
    append_to_all(&mut logs, &mut records, 1)?;
    let ((), append) = timed(|| append_to_all(&mut logs, &mut records, setting.records - 1))?;
    let taken = Taken::now()?.added(before, count);
    let disk = disk_kib(dir)? / f64::from(count);
    let ((), close) = timed(|| {
        drop(logs);
        Ok(())
    })?;
    made.iter().try_for_each(|log| verify(&**log, &setting))?;
    let logs = f64::from(count);
    Ok(vec![
        open / logs / 1e3,
        append / logs / (setting.records - 1) as f64,
        taken.own_kib,
        taken.mapped_kib,
        taken.descriptors,
        taken.mappings,
        disk,
        close / logs / 1e3,
    ])
}

/// So many records to each log, in turn.
fn append_to_all(
    logs: &mut [Box<dyn Appender>],
    records: &mut [Records],
    count: u64,
) -> Result<()> {
    for _ in 0..count {
        for (log, records) in logs.iter_mut().zip(&mut *records) {
            log.append(records.next_record())?;
        }
    }
    Ok(())
}

fn verify(log: &dyn Prepared, setting: &Setting) -> Result<()> {
    let mut ledger = Ledger::new(setting);
    log.read_back(&mut |record| ledger.enter(record))?;
    ledger.close().map(drop)
}
