//! `vellum-examples`: the stores of `examples/wal.rs` and `examples/raft_log` as workloads of
//! `vellum-powercut`.
//!
//! `map-work DIR COUNT` and `raft-work DIR COUNT` print `ACK n` for each step that is durable;
//! `map-check DIR` and `raft-check DIR` print the steps that are there, or `BAD` and a reason.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;
use std::thread;

use vellum::{Options, Tuning};

#[path = "../../../vellum/examples/raft_log/store.rs"]
#[allow(dead_code, reason = "not all of the example is needed here")]
mod store;
#[path = "../../../vellum/examples/wal.rs"]
#[allow(dead_code, reason = "not all of the example is needed here")]
mod wal;

use store::{Entry, LogId, RaftLog};
use wal::Map;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const THREADS: u64 = 3;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let checked = match arguments[..] {
        ["map-work", dir, count] => return map_work(dir.as_ref(), count.parse()?),
        ["raft-work", dir, count] => return raft_work(dir.as_ref(), count.parse()?),
        ["map-check", dir] => map_check(dir.as_ref()),
        ["raft-check", dir] => raft_check(dir.as_ref()),
        _ => {
            return Err("usage: map-work|raft-work DIR COUNT, map-check|raft-check DIR".into());
        }
    };
    // A log that does not open is a finding, and no failure of this command.
    checked.or_else(|error| say(&format!("BAD {error}")))
}

/// A log so small that many cuts find a checkpoint close by.
fn options() -> Options {
    Options::wal().tuning(Tuning::new().segment_capacity_bytes(16384).checkpoint_after_bytes(8192))
}

/// Prints a line by one call, so that it is in the recording where it was printed.
fn say(line: &str) -> Result<()> {
    let mut out = stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    Ok(out.flush()?)
}

/// The number of a thread's transaction among those of all threads.
fn number(thread: u64, count: u64) -> u64 {
    (count - 1) * THREADS + thread + 1
}

fn map_work(dir: &Path, count: u64) -> Result<()> {
    let map = Map::open(dir, &options())?;
    thread::scope(|scope| {
        let work = |thread| {
            let tell = move |count| say(&format!("ACK {}", number(thread, count))).unwrap();
            let map = &map;
            move || wal::count(map, thread, count, tell)
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })
}

fn map_check(dir: &Path) -> Result<()> {
    let map = Map::open(dir, &options())?;
    for thread in 0..THREADS {
        let count = map.get(&wal::counter(thread)).map_or(Ok(0), |count| count.parse())?;
        let made = (1..=count).flat_map(|count| wal::transaction(thread, count));
        // The last change of each key counts.
        for (key, value) in made.collect::<BTreeMap<_, _>>() {
            let found = map.get(&key);
            if found != value {
                say(&format!("BAD {key} is {found:?} and not {value:?} after {count}"))?;
            }
        }
        (1..=count).try_for_each(|count| say(&number(thread, count).to_string()))?;
    }
    Ok(())
}

/// Step `number` of the Raft log: its entry is of term `number`; each seventh replaces the last.
fn raft_step(entries: &BTreeMap<u64, Entry>, number: u64) -> Entry {
    let last = entries.last_key_value().map_or(0, |(index, _)| *index);
    let index = if number.is_multiple_of(7) { last } else { last + 1 };
    let payload = vec![number as u8; (number * 37 % 900) as usize];
    Entry { id: LogId { term: number, leader: 0, index }, payload }
}

fn raft_work(dir: &Path, count: u64) -> Result<()> {
    let log = RaftLog::open(dir, &options())?;
    let mut entries = BTreeMap::new();
    for number in 1..=count {
        let entry = raft_step(&entries, number);
        log.commit(log.append(std::slice::from_ref(&entry))?)?;
        say(&format!("ACK {number}"))?;
        entries.insert(entry.id.index, entry);
        if number.is_multiple_of(20) {
            let (_, kept) = entries.iter().nth_back(5).ok_or("so many are there")?;
            log.purge(kept.id)?;
        }
    }
    Ok(())
}

fn raft_check(dir: &Path) -> Result<()> {
    let log = RaftLog::open(dir, &options())?;
    let Some(last) = log.last() else { return Ok(()) };
    let mut entries = BTreeMap::new();
    for number in 1..=last.term {
        let entry = raft_step(&entries, number);
        entries.insert(entry.id.index, entry);
    }
    let purged = log.state().purged.map_or(0, |id| id.index);
    let expected: Vec<Entry> = entries.split_off(&(purged + 1)).into_values().collect();
    if log.read(0..u64::MAX)? != expected {
        say(&format!("BAD entries behind {purged}, of {} steps", last.term))?;
    }
    say(&format!("1-{}", last.term))
}
