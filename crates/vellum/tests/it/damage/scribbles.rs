//! Any single word of the control file, scribbled over, while records are appended and committed,
//! files are made, left, trimmed and truncated: errors are allowed, crashes and hangs are not, and
//! readers get only appended records.
//!
//! A second process tries one scribble after the other and prints which. When it dies or falls
//! silent, the scribble it named last is to blame, and another process continues behind it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use vellum::{Fill, Layout, Log, Lsn, Options, Tuning};

use crate::support::child::{self, Child};
use crate::support::{
    Numbers, adopt_control, copy_log, memory_scratch, payload, place, read_all, small,
};

/// Where the shared words start, and the part in front of the participants.
const WORDS: u64 = 4096;
const PARTICIPANTS: u64 = WORDS + 8 * 128;
const SLOTS: u64 = PARTICIPANTS + 1024 * 64;
/// Behind the slots: commits, files of text logs, full disks. As far as the file goes.
const BEHIND: u64 = SLOTS + 1024 * 128;
/// How many values each of those words gets, of all that there are, unless VELLUM_SCRIBBLES is set.
const FEW: usize = 1;
/// Processes that share the scribbles: they spend most of their time waiting for events that never
/// come.
const SHARES: u64 = 4;
/// So long may one scribble take.
const BOUND: Duration = Duration::from_secs(20);

/// Offsets of words: all that are used by few participants, the last ones, and some between; and
/// all behind them.
fn offsets(control_len: u64, only_behind: bool) -> Vec<u64> {
    let behind = (BEHIND..control_len).step_by(8);
    if only_behind {
        return behind.collect();
    }
    let header = (0..8).map(|word| word * 8);
    let globals = (0..8).flat_map(|line| (0..4).map(move |word| WORDS + line * 128 + word * 8));
    let participant = |index: u64| (0..4).map(move |word| PARTICIPANTS + index * 64 + word * 8);
    let slot = |index: u64| [0, 8, 16, 64].map(|byte| SLOTS + index * 128 + byte);
    let few = [0, 1, 2, 1023];
    let mut all: Vec<u64> = header.chain(globals).collect();
    all.extend(few.into_iter().flat_map(participant));
    all.extend(few.into_iter().flat_map(slot));
    let mut numbers = Numbers::new(11);
    all.extend((0..20).map(|_| (WORDS + numbers.below(BEHIND - WORDS)) / 8 * 8));
    all.extend(behind);
    all
}

/// Whether a value makes a lock look held by a living participant: a waiter then waits for as long
/// as that one lives, which `docs/security.md` says of hostile writers.
fn is_held_by_the_living(offset: u64, value: u64) -> bool {
    let holders = [WORDS + 4 * 128, WORDS + 5 * 128];
    // Behind the slots there are locks and lanes.
    (holders.contains(&offset) || offset >= BEHIND) && [1 << 10, 3 << 10].contains(&value)
}

/// Values to scribble over a word.
fn values(old: u64, numbers: &mut Numbers) -> Vec<u64> {
    let mut values = vec![
        0,
        1,
        u64::MAX,
        numbers.next(),
        numbers.next() >> 32,
        old ^ 1,
        old.wrapping_add(4096),
        old.wrapping_sub(4096),
        old.wrapping_add(4096 << 10),
        1 << 40,
        1 << 50,
        1 << 63,
        // Owners: of a first and of a later life in the first place.
        1 << 10,
        3 << 10,
    ];
    values.sort_unstable();
    values.dedup();
    values.retain(|value| *value != old);
    values
}

/// The values for the word at `offset`.
fn values_at(offset: u64, old: u64, numbers: &mut Numbers) -> Vec<u64> {
    let mut values = values(old, numbers);
    values.retain(|value| !is_held_by_the_living(offset, *value));
    if offset >= BEHIND && std::env::var("VELLUM_SCRIBBLES").is_err() {
        while values.len() > FEW {
            values.swap_remove(numbers.below(values.len() as u64) as usize);
        }
    }
    values
}

fn write_word(control: &Path, offset: u64, value: u64) {
    let file = File::options().write(true).open(control).unwrap();
    file.write_all_at(&value.to_le_bytes(), offset).unwrap();
}

fn read_word(control: &Path, offset: u64) -> u64 {
    let mut bytes = [0; 8];
    File::open(control).unwrap().read_exact_at(&mut bytes, offset).unwrap();
    u64::from_le_bytes(bytes)
}

/// Everything one can do with a log; errors are fine.
fn do_everything(log: &Log, known: &HashSet<Vec<u8>>) {
    let _ = log.append(b"small\n");
    let _ = log.append(&[b"x".repeat(20_000), b"\n".to_vec()].concat());
    let _ = log.reserve(50).map(|mut reservation| reservation.write(b"half"));
    let _ = log.stat().map(|stat| format!("{stat:?} {:?}", stat.held_back_by()));
    let mark = log.append_durable(b"durable\n");
    let _ = mark.and_then(|mark| log.checkpoint().set(mark));
    let _ = log.checkpoint();
    let _ = log.prepare(1);
    let _ = log.rotate();
    let mut batch = log.batch();
    let _ = batch.push(b"small\n").and_then(|()| batch.append());
    let _ = log.sync();
    ship(log);
    for _ in 0..2 {
        for from in [Lsn::ZERO, log.begin(), log.published()] {
            read_some(log, from, known);
        }
        let _ = log.verify();
        let _ = log.trim(log.published());
        let _ = log.append(b"after\n");
    }
}

/// The steps of a shipper, and of its waiters.
fn ship(log: &Log) {
    let soon = Duration::from_millis(1);
    let _ = log.ship().wait(log.begin(), Some(soon));
    let _ = log.ship().state().map(|state| format!("{state:?}"));
    let Ok(Some(shipper)) = log.ship().elect() else { return };
    let durable = shipper.durable().unwrap_or(Lsn::ZERO);
    shipper.wait(durable, soon);
    let mut buf = vec![0; 5000];
    for from in [shipper.begin(), log.ship().end(), durable] {
        let _ = shipper.read(from, &mut buf);
    }
    let _ = shipper.set_shipped(durable);
    let _ = log.ship().wait(log.begin(), Some(soon));
}

fn read_some(log: &Log, from: Lsn, known: &HashSet<Vec<u8>>) {
    let Ok(mut reader) = log.reader(from) else { return };
    for _ in 0..1000 {
        match reader.follow(Some(Duration::from_millis(1))) {
            Ok(Some(record)) if log.layout() == Layout::Framed => {
                assert!(known.contains(record.payload), "a record that nobody appended");
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

/// One scribble: before the log is opened, or while it is open.
fn try_scribble(path: &Path, offset: u64, value: u64, is_open: bool, known: &HashSet<Vec<u8>>) {
    let control = path.join("control");
    let opened = if is_open {
        let log = Options::default().open(path);
        write_word(&control, offset, value);
        log
    } else {
        write_word(&control, offset, value);
        Options::default().open(path)
    };
    if let Ok(view) = Options::default().read_only(true).open(path) {
        read_some(&view, Lsn::ZERO, known);
        let _ = view.stat();
        let _ = view.verify();
    }
    if let Ok(log) = opened {
        do_everything(&log, known);
        let _ = log.append(b"after\n").and_then(|lsn| log.truncate(lsn));
        let second = Options::default().open(path);
        second.iter().for_each(|second| do_everything(second, known));
    }
}

/// Tries scribbles from a given one on.
pub(crate) fn scribble(arguments: &[String]) {
    let [template, work, share, from] = arguments else { panic!("four arguments") };
    let (template, work) = (Path::new(template), Path::new(work));
    // Nonsense must not become gigabytes.
    let limit = libc::rlimit { rlim_cur: 4 << 30, rlim_max: 4 << 30 };
    // SAFETY: `limit` outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    let [share, from]: [u64; 2] = [share, from].map(|number| number.parse().unwrap());
    let (known, fill) = known_records(template, work);
    let mut numbers = Numbers::new(5);
    let mut index = 0u64;
    let control = template.join("control");
    // The others are the same in every framed log.
    let only_behind = fill == Fill::Staged;
    for offset in offsets(fs::metadata(&control).unwrap().len(), only_behind) {
        let old = read_word(&control, offset);
        for value in values_at(offset, old, &mut numbers) {
            for is_open in [false, true] {
                index += 1;
                if index % SHARES != share || index <= from {
                    continue;
                }
                let _ = fs::remove_dir_all(work);
                copy_log(template, work);
                adopt_control(work);
                let when = if is_open { "while open" } else { "before opening" };
                child::say(&format!("{index} byte {offset}: {old:#x} to {value:#x} {when}"));
                let tried = catch_unwind(AssertUnwindSafe(|| {
                    try_scribble(work, offset, value, is_open, &known);
                }));
                if tried.is_err() {
                    child::say(&format!("{index} panicked"));
                }
            }
        }
    }
    child::say("done");
}

fn known_records(template: &Path, work: &Path) -> (HashSet<Vec<u8>>, Fill) {
    let _ = fs::remove_dir_all(work);
    copy_log(template, work);
    adopt_control(work);
    let log = Options::default().open(work).unwrap();
    let mut known: HashSet<_> = read_all(&log).into_iter().map(|read| read.1).collect();
    known.extend([b"small\n".to_vec(), b"after\n".to_vec(), b"durable\n".to_vec()]);
    known.insert([b"x".repeat(20_000), b"\n".to_vec()].concat());
    (known, log.stat().unwrap().fill)
}

#[test]
fn no_scribbled_word_of_a_framed_log_crashes_or_hangs_a_participant() {
    scribble_over(&small(Layout::Framed));
}

#[test]
fn no_scribbled_word_of_a_text_log_crashes_or_hangs_a_participant() {
    scribble_over(&small(Layout::Text).rotate_bytes(3000).tuning(Tuning::new().fill(Fill::Pwrite)));
}

#[test]
fn no_scribbled_word_of_a_staged_log_crashes_or_hangs_a_participant() {
    scribble_over(
        &Options::wal().exclusive(false).tuning(Tuning::new().segment_capacity_bytes(4096)),
    );
}

fn scribble_over(options: &Options) {
    let dir = memory_scratch();
    let log = options.open(place(&dir)).unwrap();
    for index in 0..40 {
        log.append(&payload(log.layout(), index, 300)).unwrap();
    }
    log.trim(read_all(&log)[15].0).unwrap();
    let what = format!("{} {:?}", log.layout(), log.stat().unwrap().fill);
    drop(log);
    let template = place(&dir);
    let (template, tried) = (template.to_str().unwrap(), AtomicU64::new(0));
    let faults: Vec<String> = thread::scope(|scope| {
        let share = |number| {
            let (tried, work) = (&tried, dir.path().join(format!("work-{number}")));
            scope.spawn(move || share_of(number, template, work.to_str().unwrap(), tried))
        };
        let shares: Vec<_> = (0..SHARES).map(share).collect();
        shares.into_iter().flat_map(|share| share.join().unwrap()).collect()
    });
    let tried = tried.into_inner();
    println!("{what}: {tried} scribbles tried");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(tried > 700, "only {tried} were tried");
}

/// Has a process try its share, and another continue where one crashes or hangs; returns the
/// faults.
fn share_of(number: u64, template: &str, work: &str, tried: &AtomicU64) -> Vec<String> {
    let (mut faults, mut from) = (Vec::new(), 0);
    // A few are enough to know; each hang costs its bound.
    while faults.len() < 3 {
        let [number, from_text] = [number, from].map(|number: u64| number.to_string());
        let mut child = Child::start("scribble", &[template, work, &number, &from_text]);
        let mut last = String::from("0 before the first");
        let fault = loop {
            match child.hears_within(BOUND) {
                Ok(Some(line)) if line == "done" => return faults,
                Ok(Some(line)) if line.ends_with("panicked") => {
                    faults.push(format!("{last}: panic"));
                }
                Ok(Some(line)) => {
                    last = line;
                    tried.fetch_add(1, Ordering::Relaxed);
                }
                Ok(None) => break "crash",
                Err(_) => break "hang",
            }
        };
        faults.push(format!("{last}: {fault}"));
        from = last.split(' ').next().unwrap().parse().unwrap();
    }
    faults
}
