//! Any single word of the control file, scribbled over: errors are allowed, crashes and hangs are
//! not, and what is read is what was appended.
//!
//! A second process tries one scribble after the other and says which. When it dies or falls
//! silent, the scribble it named last is to blame, and another process goes on behind it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use vellum::{Layout, Log, Lsn, Options};

use crate::support::child::{self, Child};
use crate::support::{
    LAYOUTS, Numbers, adopt_control, copy_log, memory_scratch, payload, place, read_all, small,
};

/// Where the shared words start, and what is in front of the participants.
const WORDS: u64 = 4096;
const PARTICIPANTS: u64 = WORDS + 8 * 128;
const SLOTS: u64 = PARTICIPANTS + 1024 * 64;
/// So long may one scribble take.
const BOUND: Duration = Duration::from_secs(20);

/// Offsets of words: all that are used by few participants, the last ones, and some between.
fn offsets() -> Vec<u64> {
    let header = (0..8).map(|word| word * 8);
    let globals = (0..8).flat_map(|line| (0..4).map(move |word| WORDS + line * 128 + word * 8));
    let participant = |index: u64| (0..4).map(move |word| PARTICIPANTS + index * 64 + word * 8);
    let slot = |index: u64| [0, 8, 16, 64].map(|byte| SLOTS + index * 128 + byte);
    let few = [0, 1, 2, 1023];
    let mut all: Vec<u64> = header.chain(globals).collect();
    all.extend(few.into_iter().flat_map(participant));
    all.extend(few.into_iter().flat_map(slot));
    let mut numbers = Numbers::new(11);
    all.extend((0..20).map(|_| (WORDS + numbers.below(SLOTS + 1024 * 128 - WORDS)) / 8 * 8));
    all
}

/// Whether a value makes a lock look held by a living participant: who waits for it then waits
/// for as long as that one lives, which `docs/protocol.md` says of hostile writers.
fn is_held_by_the_living(offset: u64, value: u64) -> bool {
    let holders = [WORDS + 4 * 128, WORDS + 5 * 128];
    holders.contains(&offset) && [1 << 10, 3 << 10].contains(&value)
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
    for _ in 0..2 {
        for from in [Lsn::ZERO, log.begin(), log.published()] {
            read_some(log, from, known);
        }
        let _ = log.verify();
        let _ = log.trim(log.published());
        let _ = log.append(b"after\n");
    }
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
        let log = Options::new().open(path);
        write_word(&control, offset, value);
        log
    } else {
        write_word(&control, offset, value);
        Options::new().open(path)
    };
    if let Ok(view) = Options::new().read_only(true).open(path) {
        read_some(&view, Lsn::ZERO, known);
        let _ = view.stat();
        let _ = view.verify();
    }
    if let Ok(log) = opened {
        do_everything(&log, known);
        let second = Options::new().open(path);
        second.iter().for_each(|second| do_everything(second, known));
    }
}

/// Tries scribbles from a given one on.
pub(crate) fn scribble(arguments: &[String]) {
    let [template, work, from] = arguments else { panic!("three arguments") };
    let (template, work) = (Path::new(template), Path::new(work));
    // Nonsense must not become gigabytes.
    let limit = libc::rlimit { rlim_cur: 4 << 30, rlim_max: 4 << 30 };
    // SAFETY: `limit` outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    let known = known_records(template, work);
    let mut numbers = Numbers::new(5);
    let mut index = 0u64;
    for offset in offsets() {
        let old = read_word(&template.join("control"), offset);
        for value in values(old, &mut numbers) {
            if is_held_by_the_living(offset, value) {
                continue;
            }
            for is_open in [false, true] {
                index += 1;
                if index <= from.parse().unwrap() {
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

fn known_records(template: &Path, work: &Path) -> HashSet<Vec<u8>> {
    let _ = fs::remove_dir_all(work);
    copy_log(template, work);
    adopt_control(work);
    let log = Options::new().open(work).unwrap();
    let mut known: HashSet<_> = read_all(&log).into_iter().map(|read| read.1).collect();
    known.extend([b"small\n".to_vec(), b"after\n".to_vec()]);
    known.insert([b"x".repeat(20_000), b"\n".to_vec()].concat());
    known
}

#[test]
fn no_scribbled_word_of_a_framed_log_crashes_or_hangs_a_participant() {
    scribble_over(LAYOUTS[0]);
}

#[test]
fn no_scribbled_word_of_a_text_log_crashes_or_hangs_a_participant() {
    scribble_over(LAYOUTS[1]);
}

fn scribble_over(layout: Layout) {
    let dir = memory_scratch();
    let log = small(layout).open(place(&dir)).unwrap();
    for index in 0..40 {
        log.append(&payload(layout, index, 300)).unwrap();
    }
    log.trim(read_all(&log)[15].0).unwrap();
    drop(log);
    let work = dir.path().join("work");
    let (template, work) = (place(&dir), work.to_str().unwrap());
    let (mut faults, mut from, mut tried) = (Vec::new(), 0, 0);
    // A few are enough to know; each hang costs its bound.
    while faults.len() < 4 {
        let from_text = from.to_string();
        let mut child =
            Child::start("scribble", &[template.to_str().unwrap(), work, from_text.as_str()]);
        let mut last = String::from("0 before the first");
        let fault = loop {
            match child.hears_within(BOUND) {
                Ok(Some(line)) if line == "done" => break None,
                Ok(Some(line)) if line.ends_with("panicked") => {
                    faults.push(format!("{last}: panic"))
                }
                Ok(Some(line)) => (last, tried) = (line, tried + 1),
                Ok(None) => break Some("crash"),
                Err(()) => break Some("hang"),
            }
        };
        let Some(fault) = fault else { break };
        faults.push(format!("{last}: {fault}"));
        from = last.split(' ').next().unwrap().parse().unwrap();
    }
    println!("{layout}: {tried} scribbles tried");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(tried > 1000, "only {tried} were tried");
}
