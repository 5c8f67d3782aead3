//! Facts that only the kernel knows: the system calls of a process, the instructions of an append,
//! and the event that woke a process.
//!
//! Not in the usual harness: a process that forks and traces here has one thread.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use vellum::{Fill, Layout, Lsn, Options, Tuning};
use vellum_testkit::killpoints::call::{self, Call};
use vellum_testkit::killpoints::victim::report;
use vellum_testkit::trace::{self, Go, Pid, SharedPage, Stop};

/// Word of the shared page: how many processes have come to where they wait.
const READY: usize = 0;

fn main() {
    if let Err(error) = trace::try_tracing() {
        return vellum_testing::missing::skip(format_args!(
            "a child process cannot be traced here: {error}"
        ));
    }
    let tests: [(&str, fn()); 12] = [
        ("appends_through_a_mapping_make_a_few_system_calls_a_window", count_calls_of_appends),
        ("long_records_make_two_system_calls_each", count_calls_of_long_appends),
        ("a_commit_asks_for_the_times_of_no_file", look_at_files_asked_for_times),
        ("an_append_has_one_locked_instruction", count_instructions_of_appends),
        ("opening_a_log_that_was_closed_makes_few_calls", count_calls_of_opening),
        ("nothing_is_prepared_while_a_record_is_in_flight", look_at_files_changed_in_flight),
        ("a_line_of_a_closed_file_costs_no_system_call", count_calls_of_reading_lines),
        ("a_record_at_its_position_costs_one_system_call", count_calls_of_reading_at_positions),
        ("who_follows_is_woken_and_does_not_just_look_again", look_by_what_a_follower_wakes),
        ("processes_that_commit_share_their_syncs", count_syncs_of_processes),
        ("the_newest_record_is_found_near_the_end", count_bytes_read_for_the_newest),
        ("a_time_is_found_without_reading_the_log", count_bytes_read_for_a_time),
    ];
    for (name, test) in tests {
        trace::watchdog(120);
        test();
        println!("test {name} ... ok");
    }
}

/// Every layout and way in which records are stored through a mapping.
fn mapped() -> Vec<Options> {
    let framed = Options::events();
    vec![
        framed.clone(),
        framed.clone().tuning(Tuning::new().fill(Fill::Staged)),
        // The clock of envelopes is in memory.
        framed.clone().envelope(true),
        framed.tuning(Tuning::new().fill(Fill::Mapped)),
        Options::mapped_text().tuning(Tuning::new().fill(Fill::Mapped)),
    ]
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for temporary files")
}

/// A traced child that runs `work` and has come to its first mark.
fn start(page: &SharedPage, work: impl FnOnce() -> anyhow::Result<()>) -> Pid {
    let live = || {
        report(page, || {
            trace::trace_me()?;
            work()
        })
    };
    let child = trace::fork(live).unwrap();
    assert_eq!(trace::wait(child).unwrap(), Stop::Mark, "{}", page.text());
    trace::set_options(child).unwrap();
    child
}

/// Continues a child to its next stop.
fn stop_after(child: Pid, go: Go) -> Stop {
    loop {
        trace::go(child, go).unwrap();
        match trace::wait(child).unwrap() {
            Stop::Harmless => {}
            stop => return stop,
        }
    }
}

/// A reader or a commit waits for ranges that are reserved and not published. So space is made
/// ready before, or afterwards.
fn look_at_files_changed_in_flight() {
    const RECORD: &[u8] = &[b'x'; 4096];
    const CHANGES: [i64; 7] = [
        libc::SYS_pwrite64,
        libc::SYS_fallocate,
        libc::SYS_ftruncate,
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_renameat,
        libc::SYS_renameat2,
    ];
    for options in mapped() {
        let dir = scratch();
        let place = dir.path().join("log");
        let options = options.tuning(Tuning::new().segment_capacity_bytes(2 << 20));
        let page = SharedPage::new().unwrap();
        let child = start(&page, || {
            let log = options.open(&place)?;
            trace::mark();
            for _ in 0..3 * (2 << 20) / RECORD.len() {
                log.append(RECORD)?;
            }
            trace::mark();
            Ok(())
        });
        let view = Options::default().read_only(true).open(&place).unwrap();
        let mut changes = 0;
        look_at_calls(child, |call| {
            if CHANGES.contains(&call.number) {
                changes += 1;
                let (published, tail) = (view.published(), view.tail());
                assert_eq!(published, tail, "{options:?}: call {} in flight", call.number);
            }
        });
        end(child);
        assert!(changes > 3, "{options:?} made {changes} calls that change files");
    }
}

/// Kills a child that has done what it was for.
fn end(child: Pid) {
    trace::kill_and_reap(child).unwrap();
}

/// Shows `look` each system call that a child makes on its way to the next mark, when it begins.
fn look_at_calls(child: Pid, mut look: impl FnMut(Call)) {
    while stop_after(child, Go::ToSystemCall) == Stop::SystemCall {
        if let Some(call) = call::at_entry(child).unwrap() {
            look(call);
        }
        assert_eq!(stop_after(child, Go::ToSystemCall), Stop::SystemCall);
    }
}

/// The numbers of the system calls that a child makes on its way to the next mark.
fn calls_to_mark(child: Pid) -> Vec<i64> {
    let mut calls = Vec::new();
    look_at_calls(child, |call| calls.push(call.number));
    // The mark itself is a signal that the child sends to itself.
    calls.retain(|number| ![libc::SYS_kill, libc::SYS_getpid].contains(number));
    calls
}

fn count_calls_of_appends() {
    const COUNT: usize = 1000;
    // They use three windows, the shortest there are, because a process that is stopped at each
    // call is slow. Each is made by a dozen calls, and populated by two.
    const MOST: usize = 3 * 14;
    for options in mapped() {
        let dir = scratch();
        let page = SharedPage::new().unwrap();
        let child = start(&page, || {
            let log = options.open(dir.path().join("log"))?;
            for _ in 0..2 {
                log.append(b"the first one opens and maps, the second populates\n")?;
            }
            trace::mark();
            for _ in 0..COUNT {
                log.append(b"a line like any other\n")?;
            }
            trace::mark();
            Ok(())
        });
        let mut calls = calls_to_mark(child);
        end(child);
        // Once a second an append looks whether the files are still in their place.
        calls.retain(|number| *number != libc::SYS_newfstatat);
        assert!(calls.len() <= MOST, "{COUNT} appends made the calls {calls:?}: {options:?}");
    }
}

/// Records that are written by system call: one to write them, and one to ask how large a file this
/// process may make. Blocks are given for many of them at a time.
fn count_calls_of_long_appends() {
    const COUNT: usize = 100;
    // Each by a dozen calls, from a quarter of a mebibyte at a time on.
    const STEPS: usize = 24;
    let kinds = [Options::events(), Options::mapped_text()];
    // The shorter ones only where no other thread appends, which takes a while to see.
    for (options, len) in kinds.iter().flat_map(|kind| [(kind, 200_000), (kind, 60_000)]) {
        let dir = scratch();
        let page = SharedPage::new().unwrap();
        let mut record = vec![b'x'; len];
        record.push(b'\n');
        let child = start(&page, || {
            let log = options.open(dir.path().join("log"))?;
            for _ in 0..80 {
                log.append(&record)?;
            }
            trace::mark();
            for _ in 0..COUNT {
                log.append(&record)?;
            }
            trace::mark();
            Ok(())
        });
        let mut calls = calls_to_mark(child);
        end(child);
        calls.retain(|number| *number != libc::SYS_newfstatat);
        let opened = calls.iter().filter(|number| **number == libc::SYS_openat).count();
        assert!(opened <= STEPS, "{COUNT} appends opened {opened} files: {options:?}");
        let is_write = |number: &&i64| [libc::SYS_pwrite64, libc::SYS_pwritev].contains(number);
        assert!(calls.iter().filter(is_write).count() >= COUNT, "{options:?}: {len} bytes");
        let most = 2 * COUNT + 12 * STEPS;
        assert!(calls.len() <= most, "{COUNT} appends made {} calls: {options:?}", calls.len());
    }
}

/// The kernel keeps exact time for files whose times a process has read, and then a direct write
/// writes the inode of its file, too.
fn look_at_files_asked_for_times() {
    let dir = scratch();
    let page = SharedPage::new().unwrap();
    let child = start(&page, || {
        let log = Options::wal().open(dir.path().join("log"))?;
        log.append_durable(b"the first one makes the files")?;
        trace::mark();
        for len in [4096; 40].into_iter().chain([200_000; 10]) {
            log.append_durable(&vec![b'x'; len])?;
        }
        trace::mark();
        Ok(())
    });
    let (mut writes, mut asked) = (0, Vec::new());
    look_at_calls(child, |call| {
        writes += usize::from(call.is_direct);
        if call.number == libc::SYS_fstat {
            asked.extend(call::file_of(child, &call));
        }
    });
    end(child);
    // Only a file that is made is asked whose it is.
    asked.retain(|path| !path.ends_with("log") && !path.ends_with("segment.new"));
    assert!(asked.is_empty(), "{asked:?}");
    assert!(writes >= 50, "{writes} direct writes");
}

/// An append that has become longer, or locks memory once more, is seen here. The record has one
/// byte; the limits are in instructions of a build with optimizations (`make instructions`).
fn count_instructions_of_appends() {
    if cfg!(not(target_arch = "x86_64")) {
        println!("instructions are not counted: this needs x86_64");
        return;
    }
    for (options, most) in [(Options::mapped_text(), 170), (Options::events(), 215)] {
        // The look at the files of the log comes after a number of appends that a process learns,
        // and learns again in each try: so each counts elsewhere.
        let mut tries = (0..20).map(|turn| step_over_appends(&options, 3000 + 37 * turn));
        let appends = tries.find(|all| all.len() >= 4);
        let mut appends = appends.expect("each time something came in between");
        appends.sort_unstable();
        let [instructions, locked] = appends[appends.len() / 2];
        println!("  {instructions} instructions, {locked} of them locked");
        assert_eq!(locked, 1, "{options:?}");
        let is_optimized = cfg!(not(debug_assertions));
        assert!(!is_optimized || instructions <= most, "{instructions}: {options:?}");
    }
}

/// Instructions of each of a few appends of one byte behind `before` others, and how many of them
/// are locked.
fn step_over_appends(options: &Options, before: usize) -> Vec<[usize; 2]> {
    let dir = scratch();
    let page = SharedPage::new().unwrap();
    let child = start(&page, || {
        let log = options.open(dir.path().join("log"))?;
        // The last of them have made enough ready for those that are counted.
        for _ in 0..before {
            log.append(b"x")?;
        }
        trace::mark();
        for _ in 0..8 {
            log.append(b"x")?;
        }
        trace::mark();
        Ok(())
    });
    let memory = File::open(format!("/proc/{child}/mem")).unwrap();
    // Where in the stretch, and where in the code.
    let (mut count, mut locked) = (0, Vec::new());
    // Up to the mark behind them, or to the look at the files of the log once a second.
    while stop_after(child, Go::OneStep) == Stop::Step {
        let address = trace::instruction_address(child).unwrap();
        let mut code = [0; 15];
        let len = memory.read_at(&mut code, address).unwrap();
        if is_locked(&code[..len]) {
            locked.push((count, address));
        }
        count += 1;
    }
    end(child);
    // One of them is its append.
    let Some(&(_, the_same)) = locked.first() else { return Vec::new() };
    let ones: Vec<usize> = (0..locked.len()).filter(|&i| locked[i].1 == the_same).collect();
    ones.windows(2).map(|pair| [locked[pair[1]].0 - locked[pair[0]].0, pair[1] - pair[0]]).collect()
}

/// Whether an instruction of x86 locks memory: by its prefix, or as an exchange with memory does.
fn is_locked(code: &[u8]) -> bool {
    const LOCK: u8 = 0xf0;
    let is_prefix = |byte: &u8| matches!(*byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | LOCK);
    let prefixes = code.iter().take_while(|byte| is_prefix(byte)).count();
    let has_rex = matches!(code.get(prefixes), Some(0x40..=0x4f));
    let is_exchange = match code[prefixes + usize::from(has_rex)..] {
        [0x86 | 0x87, operands, ..] => operands < 0xc0,
        _ => false,
    };
    code[..prefixes].contains(&LOCK) || is_exchange
}

/// The directory is listed once, the control file mapped once, and little else is asked twice.
fn count_calls_of_opening() {
    // Calls for the memory of this process; and those of debug builds before they close a
    // descriptor.
    const BESIDE: [i64; 5] =
        [libc::SYS_brk, libc::SYS_mmap, libc::SYS_munmap, libc::SYS_mprotect, libc::SYS_fcntl];
    // How many listings, and how many calls.
    let logs = [(Options::wal(), 1, 132), (Options::events(), 1, 114), (Options::text(), 2, 115)];
    for (options, listings_most, most) in logs {
        let dir = scratch();
        let place = dir.path().join("log");
        let log = options.open(&place).unwrap();
        (0..100).for_each(|_| log.append(b"a line like any other\n").map(drop).unwrap());
        log.close().unwrap();
        let page = SharedPage::new().unwrap();
        let child = start(&page, || {
            trace::mark();
            let log = options.open(&place)?;
            trace::mark();
            drop(log);
            Ok(())
        });
        let calls = calls_to_mark(child);
        end(child);
        // One tells all names, and one that there are no more.
        let listings = calls.iter().filter(|call| **call == libc::SYS_getdents64).count() / 2;
        assert!(listings <= listings_most, "{listings} listings: {options:?}");
        let others = calls.iter().filter(|call| !BESIDE.contains(call)).count();
        assert!(others <= most, "{others} calls: {options:?}");
    }
}

fn count_calls_of_reading_lines() {
    const COUNT: usize = 1000;
    let dir = scratch();
    let place = dir.path().join("log");
    let log = Options::mapped_text().rotate_bytes(64 << 10).open(&place).unwrap();
    let line = "a line like any other, but long enough to need more than a few files\n";
    (0..4 * COUNT).for_each(|_| log.append(line.as_bytes()).map(drop).unwrap());
    let page = SharedPage::new().unwrap();
    let child = start(&page, || {
        let log = Options::default().open(&place)?;
        let mut reader = log.reader(Lsn::ZERO)?;
        reader.next()?;
        trace::mark();
        for _ in 0..COUNT {
            assert!(reader.next()?.is_some());
        }
        trace::mark();
        Ok(())
    });
    let calls = calls_to_mark(child);
    end(child);
    // Some for each file: it is opened, and the last lines before its end are looked for.
    assert!(calls.len() < COUNT / 4, "{COUNT} lines took {} calls", calls.len());
}

fn count_calls_of_reading_at_positions() {
    // Each second the few files are opened once more.
    const COUNT: usize = 400;
    for options in mapped() {
        for is_read_only in [false, true] {
            let dir = scratch();
            let place = dir.path().join("log");
            let options = options.clone().tuning(Tuning::new().segment_capacity_bytes(1 << 20));
            let log = options.open(&place).unwrap();
            let append = |_| log.append(&[&[b'x'; 127][..], b"\n"].concat()).unwrap();
            let places: Vec<Lsn> = (0..20_000).map(append).collect();
            let page = SharedPage::new().unwrap();
            let child = start(&page, || {
                let log = Options::default().read_only(is_read_only).open(&place)?;
                log.read_at(places[0])?;
                trace::mark();
                for index in 0..COUNT {
                    let lsn = places[index * 7919 % places.len()];
                    assert_eq!(log.read_at(lsn)?.lsn, lsn);
                }
                trace::mark();
                Ok(())
            });
            let calls = calls_to_mark(child);
            end(child);
            let others = calls.iter().filter(|number| **number != libc::SYS_pread64).count();
            assert_eq!(calls.len() - others, COUNT, "reads of {options:?}");
            assert!(others < COUNT / 4, "{COUNT} records took {others} other calls: {options:?}");
        }
    }
}

/// Answers of a follower's sleep.
#[derive(Debug, PartialEq, Eq)]
enum Sleep {
    /// Another process woke it.
    Woken,
    /// Its time was over, and it looks by itself.
    Over,
}

fn look_by_what_a_follower_wakes() {
    for options in mapped() {
        for is_durable in [false, true] {
            look_by_what_a_follower_of(&options, is_durable);
        }
    }
}

fn look_by_what_a_follower_of(options: &Options, is_durable: bool) {
    const ROUNDS: u32 = 50;
    let dir = scratch();
    let place = dir.path().join("log");
    let log = options.open(&place).unwrap();
    let page = SharedPage::new().unwrap();
    let child = start(&page, || {
        let log = Options::default().open(&place)?;
        let reader = log.reader(Lsn::ZERO)?;
        let mut reader = if is_durable { reader.durable() } else { reader };
        trace::mark();
        while reader.follow(None)?.is_some() {}
        Ok(())
    });
    let append = || match is_durable {
        true => log.append_durable(b"wake up\n"),
        false => log.append(b"wake up\n"),
    };
    // On a busy machine it may be late enough to look by itself. Were it never woken, it would
    // look by itself always.
    let is_woken = |_| sleep_of_follower(child, append).unwrap() == Sleep::Woken;
    assert!((0..ROUNDS).any(is_woken), "no follower was woken: {is_durable}, {options:?}");
    end(child);
}

/// Appends a record when the follower sleeps; tells how that sleep ended.
fn sleep_of_follower(
    child: Pid,
    append: impl Fn() -> vellum::Result<Lsn>,
) -> anyhow::Result<Sleep> {
    loop {
        assert_eq!(stop_after(child, Go::ToSystemCall), Stop::SystemCall);
        let call = call::at_entry(child)?.expect("the call is known");
        let waits = call.number == libc::SYS_futex && call.arguments[1] & 0x7f == 0;
        trace::go(child, Go::ToSystemCall)?;
        if waits {
            while trace::state(child)? == 'R' {
                std::thread::yield_now();
            }
            append()?;
        }
        assert_eq!(trace::wait(child)?, Stop::SystemCall);
        if waits {
            let is_woken = call::answer_at_exit(child)? == 0;
            return Ok(if is_woken { Sleep::Woken } else { Sleep::Over });
        }
    }
}

fn count_syncs_of_processes() {
    const COMMITTERS: u64 = 6;
    for options in mapped() {
        let dir = scratch();
        let place = dir.path().join("log");
        let log = options.open(&place).unwrap();
        log.append_durable(b"the first one has names to sync\n").unwrap();
        let is_staged = log.stat().unwrap().stage.is_some();
        let before = log.stat().unwrap().commits;
        let page = SharedPage::new().unwrap();
        let leader = start(&page, || commit_one(&place, &page));
        let is_at_device = |call: &call::Call| call.brings_to_the_device(is_staged);
        while !call::at_entry(leader).unwrap().is_some_and(|call| is_at_device(&call)) {
            assert_eq!(stop_after(leader, Go::ToSystemCall), Stop::SystemCall);
        }
        // They come while the first batch is on its way, and have appended before it is written.
        let commit = || report(&page, || commit_one(&place, &page));
        let others: Vec<Pid> = (0..COMMITTERS).map(|_| trace::fork(commit).unwrap()).collect();
        while page.word(READY).load(Ordering::SeqCst) < 1 + COMMITTERS {
            assert_eq!(page.text(), "");
            std::thread::yield_now();
        }
        while matches!(stop_after(leader, Go::ToMark), Stop::Mark) {}
        for other in others {
            assert_eq!(trace::wait(other).unwrap(), Stop::Exited(0), "{}", page.text());
        }
        let commits = log.stat().unwrap().commits;
        let (called, synced) = (commits.commits - before.commits, commits.syncs - before.syncs);
        // The leader's batch, one beside it where two may be on their way, and one for all others.
        let most = if is_staged { 3 } else { 2 };
        assert!(called >= 2 && synced <= most, "{synced} syncs for {called} commits: {options:?}");
        assert_eq!(log.durable(), log.published());
    }
}

/// Appends a record, stops at a mark if it is traced, and commits.
fn commit_one(place: &Path, page: &SharedPage) -> anyhow::Result<()> {
    let log = Options::default().open(place)?;
    let lsn = log.append(b"a record that is committed\n")?;
    if page.word(READY).fetch_add(1, Ordering::SeqCst) == 0 {
        trace::mark();
    }
    log.commit(lsn)?;
    Ok(())
}

/// A log of several MiB in one segment, committed now and then: records far before the end are not
/// read to find the newest record.
fn count_bytes_read_for_the_newest() {
    const FEW_BYTES: u64 = 2 << 20;
    for layout in [Layout::Framed, Layout::Text] {
        let dir = scratch();
        let place = dir.path().join("log");
        let log = vellum::internal::options(layout)
            .tuning(Tuning::new().segment_capacity_bytes(64 << 20));
        let log = log.open(&place).unwrap();
        for _ in 0..100 {
            for _ in 0..100 {
                log.append(&[b'x'; 1000]).unwrap();
            }
            log.append_durable(b"a line\n").unwrap();
        }
        let page = SharedPage::new().unwrap();
        let child = start(&page, || {
            let log = Options::default().read_only(true).open(&place)?;
            trace::mark();
            let newest = log.backwards(Lsn::MAX)?.next().transpose()?;
            trace::mark();
            anyhow::ensure!(newest.is_some());
            Ok(())
        });
        let read = bytes_read(child);
        assert!((1..FEW_BYTES).contains(&read), "{read} bytes were read of a {layout} log");
    }
}

/// Bytes that a child reads until its next mark; ends it.
fn bytes_read(child: Pid) -> u64 {
    let mut read = 0;
    while stop_after(child, Go::ToSystemCall) == Stop::SystemCall {
        let call = call::at_entry(child).unwrap();
        assert_eq!(stop_after(child, Go::ToSystemCall), Stop::SystemCall);
        if call.is_some_and(|call| call.number == libc::SYS_pread64) {
            read += call::answer_at_exit(child).unwrap().max(0) as u64;
        }
    }
    end(child);
    read
}

/// A log of 256 segments: to find a time, one record is read of a few of them, and one is walked.
fn count_bytes_read_for_a_time() {
    const SEGMENT_BYTES: u64 = 64 << 10;
    // A reader reads ahead as much.
    const FEW_BYTES: u64 = 2 * (256 << 10);
    let dir = scratch();
    let place = dir.path().join("log");
    let log = Options::default()
        .envelope(true)
        .tuning(Tuning::new().segment_capacity_bytes(SEGMENT_BYTES));
    let log = log.open(&place).unwrap();
    while log.tail().get() < 256 * SEGMENT_BYTES {
        log.append(&[b'x'; 4000]).unwrap();
    }
    let page = SharedPage::new().unwrap();
    let child = start(&page, || {
        let log = Options::default().read_only(true).open(&place)?;
        // A minute before this nothing had been appended.
        let later = SystemTime::now() + Duration::from_secs(120);
        trace::mark();
        let position = log.reader_at_time(later)?.position();
        trace::mark();
        anyhow::ensure!(position == log.published());
        Ok(())
    });
    let read = bytes_read(child);
    assert!((1..FEW_BYTES).contains(&read), "{read} bytes were read to find a time");
}
