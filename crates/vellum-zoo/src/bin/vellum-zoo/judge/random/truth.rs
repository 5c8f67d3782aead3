//! The right answer for a drawn disk. It follows from the faults, from the requests of each program
//! to a disk, and from the disk's own times: a program is played by a clock without waiting.
//! Nothing of it is the doctor's.

use std::collections::BTreeSet;
use std::time::Duration;

use vellum_command::samples::quantile_of;
use vellum_zoo::{Animal, Request, Times};

use super::draw::{Drawn, Fault, Kind, When};

/// A word about a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Word {
    Good,
    Marginal,
    NotGoodEnough,
}

/// All of them, in this order.
const WORDS: [Word; 3] = [Word::Good, Word::Marginal, Word::NotGoodEnough];

impl Word {
    /// As the doctor writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Word::Good => "good",
            Word::Marginal => "marginal",
            Word::NotGoodEnough => "not-good-enough",
        }
    }
}

/// How a program commits, and its limits.
pub(super) struct Program {
    pub(super) name: &'static str,
    /// Records of a second.
    pace: u32,
    /// Has each record a commit of its own? Otherwise those that come meanwhile share the next one.
    is_alone: bool,
    bytes: usize,
    /// Is its file new at each commit, so that the filesystem commits its journal too?
    grows: bool,
    /// Of p99, p99.9 and the longest: good, and still bearable, in milliseconds.
    limits: [(f64, f64); 3],
}

/// Those that the doctor is asked for: etcd by its FAQ, its tuning guide and `etcdctl check perf`,
/// and the others by limits of ours, as programs that have none.
pub(super) const PROGRAMS: [Program; 4] = [
    Program {
        name: "etcd",
        pace: 150,
        is_alone: false,
        bytes: 4096,
        grows: true,
        limits: [(10.0, 20.0), (100.0, 1000.0), (500.0, 1000.0)],
    },
    Program {
        name: "postgres",
        pace: 100,
        is_alone: false,
        bytes: 8192,
        grows: false,
        limits: [(10.0, 50.0), (200.0, 1000.0), (1000.0, 5000.0)],
    },
    Program {
        name: "sqlite",
        pace: 20,
        is_alone: true,
        bytes: 12_288,
        grows: false,
        limits: [(17.0, 100.0), (1000.0, 5000.0), (1000.0, 5000.0)],
    },
    Program {
        name: "vellum",
        pace: 100,
        is_alone: false,
        bytes: 4096,
        grows: false,
        limits: [(10.0, 50.0), (200.0, 1000.0), (1000.0, 5000.0)],
    },
];

/// The right answer for a disk.
#[derive(Debug)]
pub(super) struct Truth {
    /// For each program of [`PROGRAMS`] the words that are right: several, where a limit is near.
    pub(super) words: [Vec<Word>; PROGRAMS.len()],
    /// The causes that may be named.
    pub(super) causes: BTreeSet<&'static str>,
}

impl Truth {
    /// That of a disk which is looked at for so long.
    pub(super) fn of(disk: &Drawn, time: Duration) -> Result<Truth, String> {
        let mut longest_ms = 0.0_f64;
        let mut words = [const { Vec::new() }; PROGRAMS.len()];
        for (words, program) in words.iter_mut().zip(&PROGRAMS) {
            let luck = if disk.is_by_chance() { LUCK } else { 1 };
            let bounds = program.bounds(|luck| disk.animal(luck), luck, time)?;
            longest_ms = longest_ms.max(bounds.1[2]);
            *words = program.words(bounds);
            if disk.has(Kind::Fails) || disk.has(Kind::Drops) {
                *words = vec![Word::NotGoodEnough];
            }
        }
        let causes = disk.faults.iter().flat_map(|fault| causes(fault, longest_ms)).collect();
        Ok(Truth { words, causes })
    }

    /// For how many programs more than one word is right.
    pub(super) fn vague(&self) -> usize {
        self.words.iter().filter(|words| words.len() > 1).count()
    }

    /// The programs for which `good` is not a right word.
    pub(super) fn hurts(&self) -> Vec<&'static str> {
        let hurt =
            PROGRAMS.iter().zip(&self.words).filter(|(_, words)| !words.contains(&Word::Good));
        hurt.map(|(program, _)| program.name).collect()
    }
}

/// The words that are right for etcd on such a disk, whose times are by chance.
pub(crate) fn words_for_etcd(
    of: impl Fn(u64) -> Result<Animal, String>,
    time: Duration,
) -> Result<Vec<Word>, String> {
    let [etcd, ..] = &PROGRAMS;
    Ok(etcd.words(etcd.bounds(of, LUCK, time)?))
}

/// A wait of so long can be called a stall.
const STALL_MS: f64 = 100.0;
/// A call of so long is slow.
const SLOW: Duration = Duration::from_micros(2500);

/// The causes that may be named for a fault; the longest wait on the disk is so long.
fn causes(fault: &Fault, longest_ms: f64) -> Vec<&'static str> {
    let mut causes = match fault.kind {
        Kind::Sound => vec![],
        Kind::SlowFlush => vec!["slow-flush"],
        Kind::SlowWrite => vec!["slow-device"],
        Kind::SlowJournal => vec!["slow-journal"],
        Kind::Stalls => vec!["stalls"],
        Kind::Bursts | Kind::Neighbour => vec!["neighbour"],
        // After the end of a budget it is a throttle.
        Kind::Budget => vec!["budget-ends", "throttle"],
        Kind::Throttled => vec!["throttle"],
        Kind::Jitter if fault.median() >= SLOW => vec!["jitter", "slow-device"],
        Kind::Jitter => vec!["jitter"],
        Kind::Sectors => vec!["emulated-sectors"],
        Kind::Fails => vec!["write-errors"],
        Kind::Drops => vec!["lost-writes"],
    };
    let comes_and_goes = fault.when == When::AtTimes || fault.kind == Kind::Bursts;
    match fault.when {
        // Nothing tells the one from the other while the disk is looked at.
        When::Later => causes.push("budget-ends"),
        When::AtTimes => causes.push("neighbour"),
        When::Always => {}
    }
    if longest_ms >= STALL_MS && (comes_and_goes || fault.kind == Kind::Jitter) {
        causes.push("stalls");
    }
    causes
}

impl Fault {
    /// Of times by chance.
    fn median(&self) -> Duration {
        let word = self.words.iter().find_map(|word| word.strip_prefix("median="));
        let word = word.unwrap_or_default();
        let number = |unit| word.strip_suffix(unit).and_then(|number| number.parse::<u64>().ok());
        match (number("us"), number("ms")) {
            (Some(micros), _) => Duration::from_micros(micros),
            (_, Some(millis)) => Duration::from_millis(millis),
            _ => Duration::ZERO,
        }
    }
}

/// The measured times are so far from the played ones …
const LEAST: f64 = 0.8;
const MOST: f64 = 1.15;
/// … and the machine takes its time for each request.
const REQUEST: Duration = Duration::from_micros(400);
/// The shares of records below p99, p99.9 and the longest, at least and at most: a program sees a
/// part of the time.
const SHARES_LEAST: [f64; 3] = [0.98, 0.997, 1.0];
const SHARES_MOST: [f64; 3] = [0.995, 0.9995, 1.0];
/// So often are times by chance drawn anew.
const LUCK: u64 = 3;

impl Program {
    fn word(&self, figures: [f64; 3]) -> Word {
        let word = |((good, bad), figure): (&(f64, f64), f64)| match figure {
            figure if figure <= *good => Word::Good,
            figure if figure <= *bad => Word::Marginal,
            _ => Word::NotGoodEnough,
        };
        self.limits.iter().zip(figures).map(word).max().unwrap_or(Word::Good)
    }

    /// The words that are right between these figures.
    fn words(&self, (least, most): ([f64; 3], [f64; 3])) -> Vec<Word> {
        let (least, most) = (self.word(least), self.word(most));
        WORDS.into_iter().filter(|word| (least..=most).contains(word)).collect()
    }

    /// The figures of the program on the disk, at the least and at the most, in milliseconds; times
    /// by chance are played so often.
    fn bounds(
        &self,
        of: impl Fn(u64) -> Result<Animal, String>,
        luck: u64,
        time: Duration,
    ) -> Result<([f64; 3], [f64; 3]), String> {
        let (mut least, mut most) = ([f64::INFINITY; 3], [0.0_f64; 3]);
        for luck in 0..luck {
            let played = |is_most| -> Result<Vec<f64>, String> {
                Ok(self.played(&mut of(luck)?.times()?, time, is_most))
            };
            let (few, many) = (played(false)?, played(true)?);
            for figure in 0..3 {
                let low = quantile_of(&few, SHARES_LEAST[figure]) * LEAST;
                let high = quantile_of(&many, SHARES_MOST[figure]) * MOST;
                least[figure] = least[figure].min(low);
                most[figure] = most[figure].max(high);
            }
        }
        Ok((least, most))
    }

    /// How long records wait from when they are due, in milliseconds.
    fn played(&self, times: &mut Times, time: Duration, is_most: bool) -> Vec<f64> {
        let count = (time.as_secs_f64() * f64::from(self.pace)) as u32;
        let due = |record: u32| Duration::from_secs(1) * record / self.pace;
        let (mut free, mut record, mut waits) = (Duration::ZERO, 0, Vec::new());
        for commit in 0.. {
            if record >= count {
                break;
            }
            let begun = due(record).max(free);
            let mut at = begun;
            self.commit(commit, is_most, |together| {
                let done = together.iter().map(|request| times.done(*request, at));
                let done = done.max().unwrap_or(at);
                at = done + if is_most { REQUEST } else { Duration::ZERO };
            });
            loop {
                waits.push((at - due(record)).as_secs_f64() * 1e3);
                record += 1;
                if self.is_alone || record >= count || due(record) > begun {
                    break;
                }
            }
            free = at;
        }
        waits
    }

    /// The requests of a commit to the disk behind ext4, in this order; some of them together. The
    /// kernel writes blocks that follow one another at once, or each by itself.
    fn commit(&self, number: u32, is_most: bool, mut ask: impl FnMut(&[Request<'_>])) {
        let offset = u64::from(number % 256) * self.bytes as u64;
        let content = vec![0; self.bytes];
        let piece = if is_most { BLOCK_LEN } else { self.bytes };
        let pieces = content.chunks(piece).zip((offset..).step_by(piece));
        let pieces = pieces.map(|(bytes, offset)| Request::Write(offset, bytes));
        ask(&pieces.collect::<Vec<_>>());
        let mut journal = [0; BLOCK_LEN];
        journal[..4].copy_from_slice(&JOURNAL);
        let journal = Request::Write(1 << 28, &journal);
        // Every other record begins a block of which the filesystem learns that it is written.
        if self.grows && (is_most || number.is_multiple_of(2)) {
            ask(&[journal]);
            ask(&[Request::Flush]);
            ask(&[journal]);
        }
        ask(&[Request::Flush]);
    }
}

const BLOCK_LEN: usize = 4096;
/// How a block of the journal of ext4 begins.
const JOURNAL: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(45);

    fn disk(kind: Kind, when: When, words: &[&str]) -> Drawn {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Drawn { faults: vec![Fault { kind, when, words }], seed: 1 }
    }

    fn always(kind: Kind, words: &[&str]) -> Drawn {
        disk(kind, When::Always, words)
    }

    /// The words for etcd, PostgreSQL, SQLite and Vellum, each by its letter, and the causes.
    fn told(disk: &Drawn) -> (String, Vec<&'static str>) {
        let truth = Truth::of(disk, TIME).unwrap();
        let letter = |word: &Word| match word {
            Word::Good => 'G',
            Word::Marginal => 'M',
            Word::NotGoodEnough => 'B',
        };
        let letters = truth.words.iter().map(|words| words.iter().map(letter).collect::<String>());
        (letters.collect::<Vec<_>>().join(" "), truth.causes.into_iter().collect())
    }

    #[test]
    fn a_disk_without_a_fault_is_good_and_has_no_cause() {
        assert_eq!(told(&always(Kind::Sound, &[])), ("G G G G".into(), vec![]));
        assert_eq!(told(&Drawn::sound(1)).0, "G G G G");
        assert!(Truth::of(&always(Kind::Sound, &[]), TIME).unwrap().hurts().is_empty());
    }

    #[test]
    fn a_slow_flush_hurts_by_its_length() {
        let flush = |time: &str| told(&always(Kind::SlowFlush, &[&format!("flush={time}")]));
        assert_eq!(flush("1ms"), ("G G G G".into(), vec!["slow-flush"]));
        assert_eq!(flush("20ms"), ("B M GM M".into(), vec!["slow-flush"]));
        assert_eq!(flush("150ms").0, "B B B B");
    }

    #[test]
    fn a_pause_longer_than_an_election_is_not_good() {
        let (words, causes) = told(&always(Kind::Stalls, &["every=20s", "for=2s"]));
        assert_eq!(words, "B B B B");
        assert_eq!(causes, ["stalls"]);
        let short = told(&always(Kind::Stalls, &["every=20s", "for=60ms"]));
        assert_eq!(short.0, "G G G G", "a pause of a thousandth of the time");
    }

    #[test]
    fn a_neighbour_that_takes_a_fifth_of_the_time_is_not_good() {
        let (words, causes) = told(&always(Kind::Bursts, &["every=10s", "for=2s", "cost=40ms"]));
        assert_eq!(words, "B B B B");
        assert_eq!(causes, ["neighbour", "stalls"]);
    }

    #[test]
    fn a_slow_journal_hurts_only_what_needs_it() {
        let (words, causes) = told(&always(Kind::SlowJournal, &["cost=15ms"]));
        assert_eq!((words.as_str(), causes), ("B G G G", vec!["slow-journal"]));
    }

    #[test]
    fn a_limit_of_operations_hurts_where_more_are_asked_for() {
        let rate =
            |rate: u32| told(&always(Kind::Throttled, &[&format!("operation-rate={rate}")])).0;
        assert_eq!(rate(15), "B B B B");
        assert_eq!(rate(240), "B GM G G", "a commit of 8 KiB is two writes or one");
        assert_eq!(rate(1500), "G G G G");
    }

    #[test]
    fn what_is_lost_or_fails_is_good_for_nobody() {
        let told = |kind, words: &[&str]| told(&always(kind, words));
        assert_eq!(told(Kind::Drops, &["share=0.002"]), ("B B B B".into(), vec!["lost-writes"]));
        assert_eq!(told(Kind::Fails, &["at=500"]), ("B B B B".into(), vec!["write-errors"]));
    }

    #[test]
    fn the_time_at_which_a_fault_holds_allows_more_causes() {
        let later = disk(Kind::SlowFlush, When::Later, &["flush=20ms", "begins=10s"]);
        assert_eq!(told(&later), ("B M GM M".into(), vec!["budget-ends", "slow-flush"]));
        let at_times =
            disk(Kind::SlowFlush, When::AtTimes, &["flush=20ms", "each=10s", "lasts=2s"]);
        assert_eq!(told(&at_times), ("B M GM M".into(), vec!["neighbour", "slow-flush"]));
        let both =
            Drawn { faults: [later.faults, always(Kind::Drops, &[]).faults].concat(), seed: 1 };
        assert_eq!(told(&both).1, ["budget-ends", "lost-writes", "slow-flush"]);
    }
}
