use std::time::{Duration, SystemTime};

use proptest::prelude::*;

use super::*;
use crate::files::time_index::{CLOCK_STEP, CLOCK_STEP_NANOS, SECOND_NANOS, bisect};
use crate::format::envelope::{ENVELOPE_LEN, Envelope};
use crate::log::append::Append;
use crate::log::open::enter;
use crate::{Fill, Log, Options, Tuning, WriterId};

const SECOND: u64 = SECOND_NANOS;

fn small() -> Options {
    Options::default()
        .tuning(Tuning::new().segment_capacity_bytes(4096).fill(Fill::Pwrite))
        .envelope(true)
}

fn open(dir: &tempfile::TempDir, options: &Options) -> Log {
    Log { core: Arc::new(enter::open(&dir.path().join("log"), options).unwrap()) }
}

fn at(nanos: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos)
}

/// Appends a record as if the clock were at `nanos`.
fn append_at(log: &Log, nanos: u64, len: usize) -> Lsn {
    let envelope = Envelope { nanos, writer: WriterId::new(7) }.to_bytes();
    let payload = vec![b'x'; len];
    Append::of(&log.core).append_frame(&[&envelope, &payload], (ENVELOPE_LEN + len) as u64).unwrap()
}

/// Positions and times of all records in a range of positions.
fn read(log: &Log, range: Range<Lsn>) -> Vec<(Lsn, u64)> {
    let records = log.reader(range.start).unwrap().into_iter().map(Result::unwrap);
    let records = records.take_while(|record| record.lsn < range.end);
    records.map(|record| (record.lsn, nanos(record.time().unwrap()))).collect()
}

/// A change of a log.
#[derive(Clone, Debug)]
enum Step {
    /// The clock moves by so many seconds, and a record of this length is appended.
    Append(u64, usize),
    /// The same after the clock was set back by so many seconds.
    SetBack(u64, usize),
    /// Space is reserved and given up.
    Abandon(usize),
    /// A commit, whose frame has no envelope.
    Sync,
}

fn step() -> impl Strategy<Value = Step> {
    let len = || prop_oneof![20 => 0..700_usize, 1 => 3000..9000_usize];
    prop_oneof![
        10 => (0..40_u64, len()).prop_map(|(by, len)| Step::Append(by, len)),
        2 => (1..400_u64, len()).prop_map(|(by, len)| Step::SetBack(by, len)),
        1 => (1..3000_usize).prop_map(Step::Abandon),
        1 => Just(Step::Sync),
    ]
}

/// Does the steps; the clock goes back by `back_max` seconds at most behind any time before.
fn log_of(dir: &tempfile::TempDir, steps: &[Step], back_max: u64) -> Log {
    let log = open(dir, &small());
    let (mut now, mut latest) = (10_000, 10_000);
    for step in steps {
        match *step {
            Step::Append(by, len) => {
                now += by;
                append_at(&log, now * SECOND, len);
            }
            Step::SetBack(by, len) => {
                now = (now - by.min(now)).max(latest - back_max.min(latest));
                append_at(&log, now * SECOND, len);
            }
            Step::Abandon(len) => drop(log.reserve(len).unwrap()),
            Step::Sync => drop(log.sync().unwrap()),
        }
        latest = latest.max(now);
    }
    log
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn all_records_of_a_time_are_found_while_no_clock_is_set_back_by_much(
        steps in prop::collection::vec(step(), 0..120),
        since in 9_900..11_500_u64,
        len in 0..900_u64,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let log = log_of(&dir, &steps, CLOCK_STEP.as_secs());
        let all = read(&log, log.begin()..Lsn::MAX);
        let (since, until) = (since * SECOND, (since + len) * SECOND);
        let range = log.positions_of_time(Some(at(since)), Some(at(until))).unwrap();
        let is_wanted = |(_, time): &(Lsn, u64)| (since..until).contains(time);
        let found: Vec<_> = read(&log, range).into_iter().filter(is_wanted).collect();
        let wanted: Vec<_> = all.iter().copied().filter(is_wanted).collect();
        prop_assert_eq!(found, wanted);

        let first = all.iter().find(|(_, time)| *time >= since).map(|(lsn, _)| *lsn);
        let found = log.reader_at_time(at(since)).unwrap().next().unwrap().map(|r| r.lsn);
        prop_assert_eq!(found, first);
    }

    #[test]
    fn what_is_missing_was_before_a_clock_was_set_back(
        steps in prop::collection::vec(step(), 0..120),
        since in 9_000..11_500_u64,
        len in 0..900_u64,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let log = log_of(&dir, &steps, u64::MAX);
        let all = read(&log, log.begin()..Lsn::MAX);
        let (since, until) = (since * SECOND, (since + len) * SECOND);
        let range = log.positions_of_time(Some(at(since)), Some(at(until))).unwrap();
        for (index, (lsn, time)) in all.iter().enumerate() {
            if !(since..until).contains(time) || range.contains(lsn) {
                continue;
            }
            let behind = |earlier: u64, later: u64| later + CLOCK_STEP_NANOS < earlier;
            let is_explained = match *lsn < range.start {
                true => all[index..].iter().any(|(_, later)| behind(*time, *later)),
                false => all[..index].iter().any(|(_, earlier)| behind(*earlier, *time)),
            };
            prop_assert!(is_explained, "{lsn} of {time} is not in {range:?}");
        }
    }
}

#[test]
fn a_log_of_many_segments_is_not_read_to_find_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, &small());
    let lsns: Vec<Lsn> = (0..400).map(|i| append_at(&log, 1_000 * i * SECOND, 3000)).collect();
    // Whatever is not the first record of its segment, or of the one that is meant, may be damaged.
    let range = log.positions_of_time(Some(at(300_000 * SECOND)), None).unwrap();
    assert!(range.contains(&lsns[300]) && lsns[297] < range.start, "{range:?}");
    let range = log.positions_of_time(None, Some(at(100_000 * SECOND))).unwrap();
    assert!(range.contains(&lsns[99]) && range.end < lsns[103], "{range:?}");
    assert_eq!(log.positions_of_time(None, None).unwrap(), log.begin()..Lsn::MAX);
    let mut looked = 0;
    bisect(0..16_384, |index| {
        looked += 1;
        Ok(index < 5)
    })
    .unwrap();
    assert_eq!(looked, 14);
}

#[test]
fn a_segment_that_is_gone_tells_no_time_and_hides_none() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, &small());
    let lsns: Vec<Lsn> = (0..64).map(|i| append_at(&log, 1_000 * i * SECOND, 3000)).collect();
    let middle = log.core.segment_path(log.core.files.segment_of(lsns[32]));
    std::fs::remove_file(middle).unwrap();
    for index in [3, 31, 33, 60] {
        let time = 1_000 * index as u64 * SECOND;
        let range = log.positions_of_time(Some(at(time)), Some(at(time + 1))).unwrap();
        assert!(range.contains(&lsns[index]), "{index}: {range:?}");
    }
    let error = log.reader_at_time(at(32_000 * SECOND)).unwrap().next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn a_record_that_is_shorter_than_its_envelope_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(&dir, &small());
    let lsn = Append::of(&log.core).append_frame(&[b"short"], 5).unwrap();
    log.append(b"whole").unwrap();
    let error = log.reader(Lsn::ZERO).unwrap().next().unwrap_err();
    assert_eq!((error.kind(), error.lsn()), (ErrorKind::Corrupt, Some(lsn)));
    assert!(log.read_at(lsn).is_err());
    let report = log.verify().unwrap();
    assert_eq!((report.records, report.record_bytes, report.damage.len()), (1, 5, 1));
}

#[test]
fn a_text_log_finds_the_files_of_a_time_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let text = Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(4096));
    let log = open(&dir, &text);
    assert_eq!(log.positions_of_time(Some(at(0)), Some(at(1))).unwrap().end, Lsn::MAX);
    log.append(b"first\n").unwrap();
    drop(log);
    let place = dir.path().join("log");
    for (first, time) in [(8192, "20300101T000000Z"), (12288, "20300102T000000Z")] {
        std::fs::write(place.join(format!("{time}-{first:016x}.log")), "a line\n").unwrap();
    }
    std::fs::remove_file(place.join("control")).unwrap();
    let log = open(&dir, &Options::default());
    let day = |day: u64| Some(at((1_893_456_000 + (day - 1) * 86_400) * SECOND));
    let find = |since, until| {
        let range = log.positions_of_time(since, until).unwrap();
        (range.start.get(), range.end)
    };
    assert_eq!(find(None, None), (4096, Lsn::MAX));
    assert_eq!(find(day(1), None), (8192, Lsn::MAX));
    assert_eq!(find(day(2), None), (12288, Lsn::MAX));
    assert_eq!(find(day(3), day(4)), (12288, Lsn::MAX));
    assert_eq!(find(Some(at(0)), day(1)), (4096, Lsn::new(8192)));
    assert_eq!(find(day(1), day(2)), (8192, Lsn::new(12288)));
    let reader = log.reader_at_time(day(2).unwrap()).unwrap();
    assert_eq!(reader.position().get(), 12288);
}

#[test]
fn a_framed_log_without_times_says_what_would_have_them() {
    let dir = tempfile::tempdir().unwrap();
    let plain =
        Options::default().tuning(Tuning::new().segment_capacity_bytes(4096).fill(Fill::Pwrite));
    let log = open(&dir, &plain);
    log.append(b"a record").unwrap();
    let error = log.reader_at_time(at(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("envelopes"), "{error}");
    drop(log);
    // The policy has the segments note times.
    let log = open(&dir, &Options::default().retain_age(Duration::from_secs(86_400)));
    let lsns: Vec<Lsn> = (0..6).map(|_| log.append(&[b'x'; 3000]).unwrap()).collect();
    let now = SystemTime::now();
    let range = log.positions_of_time(Some(now - Duration::from_secs(5)), Some(now)).unwrap();
    assert_eq!(range, log.begin()..Lsn::MAX, "all of them came just now");
    let later = now + Duration::from_secs(5);
    let range = log.positions_of_time(Some(later), None).unwrap();
    assert!(lsns[0] < range.start && range.start <= *lsns.last().unwrap(), "{range:?}");
    let range = log.positions_of_time(None, Some(at(0))).unwrap();
    assert!(range.contains(&lsns[0]) && !range.contains(lsns.last().unwrap()), "{range:?}");
}
