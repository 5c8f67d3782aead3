//! The campaign: writers of many threads die, stop, fork and are replaced, at random.
//!
//! Every writer has a number and counts its records. A record is *acknowledged* when its count is
//! in a file that survives the writer (one `pwrite` after the append has returned). In the end each
//! writer's records must be there from the first to the last acknowledged one, each once, whole and
//! in order; at most the record that was being appended when it died may be there beyond.
//!
//! `VELLUM_STRESS_SECONDS` makes it as long as one likes.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use vellum::{Fill, Layout, Log, Lsn, Options, Tuning};

use crate::support::child::{Child, command};
use crate::support::{
    LAYOUTS, Numbers, PATIENCE, assert_sound, fork, kernel, memory_scratch, payload, place,
    scratch, small, until,
};

/// The roles of the processes.
const HAMMER: &str = "hammer";
const HAMMER_WITHOUT_ADVICE: &str = "hammer without advice";
/// Writers that a process plays one after the other have numbers from a block of this many.
const NUMBERS_PER_PROCESS: u64 = 1 << 16;
/// Most records that one append can hold.
const BATCH_MAX: u64 = 5;
const THREADS: u64 = 2;

/// Counts of acknowledged records, by writer; the first is not a writer but the sign to stop.
struct Acknowledged(File);

impl Acknowledged {
    fn open(path: &str) -> Acknowledged {
        Acknowledged(File::options().read(true).write(true).open(path).unwrap())
    }

    fn get(&self, writer: u64) -> u64 {
        let mut bytes = [0; 8];
        let _ = self.0.read_exact_at(&mut bytes, writer * 8);
        u64::from_le_bytes(bytes)
    }

    /// Of each writer, by its number.
    fn counts(&self) -> Vec<u64> {
        let mut bytes = vec![0; self.0.metadata().unwrap().len() as usize];
        self.0.read_exact_at(&mut bytes, 0).unwrap();
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    }

    fn set(&self, writer: u64, count: u64) {
        self.0.write_all_at(&count.to_le_bytes(), writer * 8).unwrap();
    }

    fn must_stop(&self) -> bool {
        self.get(0) != 0
    }
}

/// A record tells its writer, its count and, by a pattern, whether it is whole.
fn record(layout: Layout, writer: u64, count: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(writer << 20 ^ count);
    let len = match numbers.below(20) {
        0 => 4000 + numbers.below(200),
        1 => 9000 + numbers.below(9000),
        2..5 => numbers.below(1500),
        _ => numbers.below(100),
    };
    let mut bytes = format!("{writer} {count} {len} ").into_bytes();
    bytes.extend(payload(layout, writer ^ count, len as usize));
    if layout == Layout::Text {
        *bytes.last_mut().unwrap() = b'\n';
    }
    bytes
}

/// One writer's life in one thread.
struct Writer<'a> {
    log: &'a Log,
    acknowledged: &'a Acknowledged,
    number: u64,
    count: u64,
    numbers: Numbers,
}

impl Writer<'_> {
    fn next(&mut self) -> Vec<u8> {
        self.count += 1;
        record(self.log.layout(), self.number, self.count - 1)
    }

    /// Appends in one of the ways there are, and acknowledges.
    fn append(&mut self) {
        match self.numbers.below(10) {
            0 => {
                let record = self.next();
                let mut reservation = self.log.reserve(record.len()).unwrap();
                for piece in record.chunks(record.len() / 3 + 1) {
                    reservation.write_all(piece).unwrap();
                }
                reservation.publish().unwrap();
            }
            1 => {
                let mut batch = self.log.batch();
                for _ in 0..=self.numbers.below(BATCH_MAX) {
                    let record = self.next();
                    batch.push(&record).unwrap();
                }
                batch.append().unwrap();
            }
            2 => drop(self.log.reserve(1 + self.numbers.below(300) as usize).unwrap()),
            _ => {
                let record = self.next();
                self.log.append(&record).unwrap();
            }
        }
        self.acknowledged.set(self.number, self.count);
    }

    fn append_many(&mut self, most: u64) {
        for _ in 0..self.numbers.below(most) {
            if self.acknowledged.must_stop() {
                return;
            }
            self.append();
        }
    }
}

/// Appends in several threads, forks children that append, and replaces itself, until told to stop.
pub(crate) fn hammer(arguments: &[String]) {
    let [path, acknowledged_path, first] = arguments else { panic!("three arguments") };
    let first: u64 = first.parse().unwrap();
    let acknowledged = Acknowledged::open(acknowledged_path);
    let log = Options::default().open(path).unwrap();
    let mut numbers = Numbers::new(first);
    let mut fresh = first;
    for _ in 0..1 + numbers.below(6) {
        let writer = |number| Writer {
            log: &log,
            acknowledged: &acknowledged,
            number,
            count: 0,
            numbers: Numbers::new(number),
        };
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || writer(fresh + thread).append_many(2000));
            }
            if numbers.below(3) == 0 {
                let pid = fork::fork(|| {
                    writer(fresh + THREADS).append_many(300);
                    0
                });
                assert_eq!(fork::wait(pid), 0, "the forked child appends and ends");
            }
        });
        fresh += THREADS + 1;
        if acknowledged.must_stop() {
            return;
        }
    }
    // A new program in the same process; nothing is closed before.
    let next = fresh.to_string();
    panic!("{}", command(HAMMER, &[path, acknowledged_path, &next]).exec());
}

/// Hammers where the kernel says yes to every advice and follows none. The program that replaces
/// this one inherits that.
pub(crate) fn hammer_without_advice(arguments: &[String]) {
    kernel::ignore_advice();
    hammer(arguments);
}

/// The processes of a campaign, and its events.
struct Campaign {
    role: &'static str,
    arguments: [String; 2],
    numbers: Numbers,
    started: u64,
    hammers: Vec<Child>,
    killed: usize,
}

impl Campaign {
    fn start_one(&mut self) {
        self.started += 1;
        let first = (self.started * NUMBERS_PER_PROCESS).to_string();
        let arguments = [&*self.arguments[0], &*self.arguments[1], &first];
        self.hammers.push(Child::start(self.role, &arguments));
    }

    fn strike(&mut self) {
        let index = self.numbers.below(self.hammers.len() as u64) as usize;
        if self.numbers.below(3) == 0 {
            let victim = &self.hammers[index];
            victim.signal(libc::SIGSTOP);
            std::thread::sleep(Duration::from_millis(self.numbers.below(30)));
            victim.signal(libc::SIGCONT);
        } else {
            self.hammers.swap_remove(index).kill();
            self.killed += 1;
            self.start_one();
        }
    }
}

fn duration() -> Duration {
    let seconds = std::env::var("VELLUM_STRESS_SECONDS").ok().and_then(|s| s.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(2.0))
}

fn run_campaign(role: &'static str, layout: Layout, fill: Fill, seed: u64) {
    // Two filesystems; and in memory the many files of a long campaign cost less.
    let dir = if fill == Fill::Pwrite { memory_scratch() } else { scratch() };
    let log = small(layout).tuning(Tuning::new().fill(fill)).open(place(&dir)).unwrap();
    let acknowledged_path = dir.path().join("acknowledged");
    File::create(&acknowledged_path).unwrap();
    let acknowledged = Acknowledged::open(acknowledged_path.to_str().unwrap());
    let paths = [place(&dir), acknowledged_path.clone()];
    let mut campaign = Campaign {
        role,
        arguments: paths.map(|path| path.to_str().unwrap().to_string()),
        numbers: Numbers::new(seed),
        started: 0,
        hammers: Vec::new(),
        killed: 0,
    };
    (0..4).for_each(|_| campaign.start_one());
    let start = Instant::now();
    let mut seen = Seen::new(&log);
    while start.elapsed() < duration() {
        std::thread::sleep(Duration::from_millis(campaign.numbers.below(40)));
        campaign.strike();
        seen.read_on();
    }
    acknowledged.set(0, 1);
    let (started, killed) = (campaign.started, campaign.killed);
    campaign.hammers.into_iter().for_each(Child::finish_well);
    // Children of killed hammers may continue for a moment: later acknowledgements need not be
    // seen.
    let counts = acknowledged.counts();
    seen.read_to_the_end(&log);
    seen.check(&counts, &acknowledged);
    until("the end of all children", || {
        let participants = log.stat().unwrap().participants;
        (participants.iter().filter(|one| one.alive).count() == 1).then_some(())
    });
    assert_sound(&log);
    println!("{layout} {fill}: {} records of {started} processes, {killed} killed", seen.records);
    check_again_from_the_files(&dir, &log);
}

/// The records of a reader in this process, one by one.
struct Seen {
    layout: Layout,
    reader: vellum::Reader,
    next: HashMap<u64, u64>,
    records: u64,
}

impl Seen {
    fn new(log: &Log) -> Seen {
        let reader = log.reader(Lsn::ZERO).unwrap();
        Seen { layout: log.layout(), reader, next: HashMap::new(), records: 0 }
    }

    /// Reads what there is, but no more than a while: the writers may be faster.
    fn read_on(&mut self) {
        for _ in 0..2000 {
            let Some(found) = self.reader.next().unwrap() else { return };
            let bytes = found.payload;
            if self.layout == Layout::Text && (bytes == b"\n" || bytes[0] == b'~') {
                continue;
            }
            let at = found.lsn;
            let mut fields = bytes.splitn(3, |byte| *byte == b' ');
            let mut number = || {
                let text = fields.next().and_then(|field| std::str::from_utf8(field).ok());
                text.and_then(|text| text.parse::<u64>().ok())
            };
            let (Some(writer), Some(count)) = (number(), number()) else {
                panic!("no record at {at}: {:?}", String::from_utf8_lossy(bytes));
            };
            assert!(bytes == record(self.layout, writer, count), "torn record at {at}");
            let next = self.next.entry(writer).or_default();
            assert_eq!(count, *next, "writer {writer}: each once and in order, at {at}");
            *next += 1;
            self.records += 1;
        }
    }

    fn read_to_the_end(&mut self, log: &Log) {
        let start = Instant::now();
        while self.reader.position() < log.tail() {
            self.read_on();
            assert!(start.elapsed() < PATIENCE, "{:?}", log.stat().unwrap());
        }
    }

    /// Whether all is there that was acknowledged before reading, and not more than has been since.
    fn check(&self, counts: &[u64], acknowledged: &Acknowledged) {
        for (writer, count) in (1..).zip(&counts[1..]).filter(|(_, count)| **count > 0) {
            let found = self.next.get(&writer).copied().unwrap_or_default();
            assert!(found >= *count, "writer {writer}: {count} acknowledged, {found} there");
            let count = acknowledged.get(writer);
            assert!(found <= count + BATCH_MAX, "writer {writer}: {count}, but {found} there");
        }
    }
}

/// The same records come back when nothing but the segments is left.
fn check_again_from_the_files(dir: &tempfile::TempDir, log: &Log) {
    let tail = log.tail();
    let copy = dir.path().join("copy");
    crate::support::copy_log(&place(dir), &copy);
    std::fs::remove_file(copy.join("control")).unwrap();
    let rebuilt = Options::default().open(&copy).unwrap();
    assert_eq!(rebuilt.begin(), log.begin());
    assert_eq!(rebuilt.tail(), tail);
    assert_sound(&rebuilt);
}

#[test]
fn framed_writers_die_at_random_and_nothing_acknowledged_is_lost() {
    run_campaign(HAMMER, Layout::Framed, Fill::Mapped, 1);
    run_campaign(HAMMER, Layout::Framed, Fill::Pwrite, 2);
}

#[test]
fn text_writers_die_at_random_and_nothing_acknowledged_is_lost() {
    run_campaign(HAMMER, Layout::Text, Fill::Mapped, 3);
    run_campaign(HAMMER, Layout::Text, Fill::Pwrite, 4);
}

#[test]
fn nothing_is_lost_either_where_no_advice_is_followed() {
    for layout in LAYOUTS {
        run_campaign(HAMMER_WITHOUT_ADVICE, layout, Fill::Mapped, 5);
    }
}
