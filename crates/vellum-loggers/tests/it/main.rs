//! Events of the crates `tracing` and `log`, from several processes into one log.

use std::path::PathBuf;

use tempfile::TempDir;
use vellum::{Fill, Layout, Log, Lsn, Options, Tuning};
use vellum_loggers::{LogWriter, Logger};
use vellum_testing::child::{self, Child};
use vellum_testing::{fork, scratch, until};

const EVENTS: usize = 400;

/// Where a second process of a test starts; an ordinary run passes over it.
#[test]
fn child_entry() {
    child::run_role(&[&[("log with", log_with), ("log from a static", log_from_a_static)]]);
}

/// A log's place in a scratch directory.
fn place(dir: &TempDir) -> PathBuf {
    dir.path().join("log")
}

/// Options of a log with small segments, filled through the mapping.
fn small(layout: Layout) -> Options {
    vellum::internal::options(layout)
        .tuning(Tuning::new().segment_capacity_bytes(4096).fill(Fill::Mapped))
}

/// The payloads of all records.
fn payloads(log: &Log) -> Vec<Vec<u8>> {
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push(record.payload.to_vec());
    }
    all
}

/// Asserts that nothing is wrong with a log.
fn assert_sound(log: &Log) {
    let report = log.verify().unwrap();
    assert!(report.damage.is_empty(), "{:#?}", report.damage);
}

fn tracing_to(log: Log) -> LogWriter {
    let writer = LogWriter::new(log);
    let format = tracing_subscriber::fmt().with_ansi(false).with_writer(writer.clone());
    format.init();
    writer
}

fn tracing_event(name: &str, number: usize) {
    tracing::info!(number, "{name}");
}

fn log_event(name: &str, number: usize) {
    log::info!("{name} number={number}");
}

/// Logs numbered events, half of them in a forked child.
fn log_events(event: fn(&str, usize), name: &str) {
    (0..EVENTS / 2).for_each(|number| event(name, number));
    let pid = fork::fork(|| {
        (EVENTS / 2..EVENTS).for_each(|number| event(name, number));
        0
    });
    (0..EVENTS).for_each(|number| event("parent", number));
    assert_eq!(fork::wait_patiently(pid), Some(0));
    child::say("done");
}

/// In a process of its own, because its threads and its logger are there for good.
fn log_with(arguments: &[String]) {
    let log = Options::default().open(&arguments[0]).unwrap();
    match arguments[1].as_str() {
        "tracing" => {
            let writer = tracing_to(log);
            log_events(tracing_event, &arguments[2]);
            assert_eq!(writer.lost(), 0);
        }
        "log" => {
            Logger::new(log).init().unwrap();
            log::debug!("below the level");
            log_events(log_event, &arguments[2]);
        }
        way => panic!("no way to log: {way}"),
    }
}

/// As the page for Rust shows it: the writer is in a `static`, so nothing closes the log.
fn log_from_a_static(arguments: &[String]) {
    let options = Options::text().rotate_bytes(50_000_000).retain_files(10);
    let log = options.open(&arguments[0]).unwrap();
    match arguments[1].as_str() {
        "tracing" => {
            tracing_to(log);
            tracing_event("hello", 1);
        }
        "log" => {
            Logger::new(log).init().unwrap();
            log_event("hello", 1);
        }
        way => panic!("no way to log: {way}"),
    }
    child::say("done");
    // A word to go, or a signal.
    if child::hear().is_some() {
        std::process::exit(0);
    }
}

/// Asserts that the file holds `lines` events and nothing but text, whatever ended its writers.
fn check_static(way: &str) {
    let dir = scratch();
    let path = place(&dir);
    let check = |lines: usize, what: &str| {
        let text = std::fs::read_to_string(path.join("current")).unwrap();
        assert!(text.lines().all(|line| line.ends_with("hello number=1")), "{what}: {text:?}");
        assert_eq!(text.matches('\n').count(), lines, "{what}");
    };
    for (number, end) in (1..).zip([None, Some(libc::SIGTERM), Some(libc::SIGKILL)]) {
        let mut child = Child::start("log from a static", &[path.to_str().unwrap(), way]);
        child.expect("done");
        check(number, "while the writer lives");
        match end {
            None => child.tell("go"),
            Some(signal) => child.signal(signal),
        }
        child.finish();
        check(number, &format!("after {end:?}"));
    }
}

#[test]
fn a_file_of_tracing_is_text_also_where_nobody_closes_the_log() {
    check_static("tracing");
}

#[test]
fn a_file_of_log_is_text_also_where_nobody_closes_the_log() {
    check_static("log");
}

/// The numbers of the events whose text holds `name`.
fn numbers(lines: &[Vec<u8>], name: &str) -> Vec<usize> {
    let lines = lines.iter().map(|line| std::str::from_utf8(line).unwrap());
    let lines = lines.filter(|line| line.contains(&format!(" {name} ")));
    lines.map(|line| line.trim_end().rsplit_once("number=").unwrap().1.parse().unwrap()).collect()
}

fn check_two_processes(way: &str) {
    for layout in [Layout::Text, Layout::Framed] {
        let dir = scratch();
        let log = small(layout).open(place(&dir)).unwrap();
        let path = place(&dir);
        let start = |name: &str| Child::start("log with", &[path.to_str().unwrap(), way, name]);
        let mut children = [start("a"), start("b")];
        for _ in 0..20 {
            // A writer continues in a new file without a gap.
            let _ = log.rotate();
            log.append(b"between\n").unwrap();
        }
        children.iter_mut().for_each(|child| child.expect("done"));
        children.into_iter().for_each(Child::finish_well);
        let mut lines = payloads(&log);
        lines.retain(|line| !line.starts_with(b"between"));
        let has_newline = |line: &[u8]| line.ends_with(b"\n");
        let is_text = layout == Layout::Text;
        assert!(lines.iter().all(|line| has_newline(line) == is_text));
        assert_eq!(lines.len(), 4 * EVENTS, "each event is a record, and no other");
        for name in ["a", "b"] {
            assert!(numbers(&lines, name).into_iter().eq(0..EVENTS), "all of {name}, in order");
        }
        assert_eq!(numbers(&lines, "parent").len(), 2 * EVENTS);
        assert_sound(&log);
    }
}

#[test]
fn events_of_tracing_from_two_processes_and_their_children_are_whole() {
    check_two_processes("tracing");
}

#[test]
fn messages_of_log_from_two_processes_and_their_children_are_whole() {
    check_two_processes("log");
}

#[test]
fn an_event_in_pieces_is_one_record_and_one_that_is_refused_is_counted() {
    use std::io::Write;
    use tracing_subscriber::fmt::MakeWriter;

    let dir = scratch();
    let log = small(Layout::Text).open(place(&dir)).unwrap();
    let view = Options::default().read_only(true).open(place(&dir)).unwrap();
    let writer = LogWriter::new(log);
    let (mut one, mut other) = (writer.make_writer(), writer.make_writer());
    for piece in ["a", " b"] {
        one.write_all(piece.as_bytes()).unwrap();
        other.write_all(piece.as_bytes()).unwrap();
    }
    drop(one);
    other.write_all(b" c\n").unwrap();
    drop(other);
    assert_eq!(payloads(&view), [b"a b\n".to_vec(), b"a b c\n".to_vec()]);
    assert_eq!(writer.lost(), 0);
    let refused = LogWriter::new(view);
    for _ in 0..3 {
        refused.make_writer().write_all(b"nowhere\n").unwrap();
    }
    assert_eq!(refused.lost(), 3);
    assert!(refused.clone().make_writer().flush().is_ok(), "nothing was written");
}

#[test]
fn events_go_on_in_a_new_log_when_theirs_is_moved() {
    use std::io::Write;

    use tracing_subscriber::fmt::MakeWriter;

    let dir = scratch();
    let writer = LogWriter::new(small(Layout::Text).open(place(&dir)).unwrap());
    let write = |number: usize| writeln!(writer.make_writer(), "{number}").unwrap();
    let moved: Vec<_> = ["moved", "again"].map(|name| dir.path().join(name)).into();
    let mut number = 0;
    for to in &moved {
        std::fs::rename(place(&dir), to).unwrap();
        until("events go to the new log", || {
            // Several threads meet the old one at the same time.
            std::thread::scope(|scope| {
                (number..number + 4).for_each(|number| drop(scope.spawn(move || write(number))));
            });
            number += 4;
            place(&dir).exists().then_some(())
        });
    }
    write(number);
    assert_eq!(writer.lost(), 0);
    let newest = place(&dir);
    let logs = moved.iter().chain([&newest]).map(|path| Options::default().open(path).unwrap());
    let found: Vec<Vec<u8>> = logs.flat_map(|log| payloads(&log)).collect();
    let mut numbers: Vec<usize> = found
        .iter()
        .map(|line| std::str::from_utf8(line).unwrap().trim().parse().unwrap())
        .collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..=number), "each event is in one of the logs");
}
