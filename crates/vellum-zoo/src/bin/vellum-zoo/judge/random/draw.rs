//! Faulty disks that are made by chance: which faults, how strong, when and for how long. The seed
//! decides all of it.

use std::time::Duration;

use vellum_zoo::Animal;

/// A kind of fault, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Sound,
    SlowFlush,
    SlowWrite,
    SlowJournal,
    Stalls,
    Bursts,
    Budget,
    Throttled,
    Neighbour,
    Jitter,
    Sectors,
    Fails,
    Drops,
}

/// The faults, each as likely as the others.
pub(super) const FAULTS: [Kind; 12] = [
    Kind::SlowFlush,
    Kind::SlowWrite,
    Kind::SlowJournal,
    Kind::Stalls,
    Kind::Bursts,
    Kind::Budget,
    Kind::Throttled,
    Kind::Neighbour,
    Kind::Jitter,
    Kind::Sectors,
    Kind::Fails,
    Kind::Drops,
];

/// One disk of so many has two faults.
const TWO_OF: u32 = 4;

/// For which part of the time a fault holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Always,
    /// From a moment on, to the end.
    Later,
    /// In a part of each stretch.
    AtTimes,
}

/// A fault of a disk.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    pub(super) when: When,
    /// The parameters of the animal.
    pub(super) words: Vec<String>,
}

/// A disk.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Drawn {
    pub(super) faults: Vec<Fault>,
    /// The seed of its times.
    pub(super) seed: u64,
}

impl Kind {
    pub(super) fn species(self) -> &'static str {
        match self {
            Kind::Sound => "sound",
            Kind::SlowFlush | Kind::SlowWrite => "slow-flush",
            Kind::SlowJournal => "slow-journal",
            Kind::Stalls => "stalls",
            Kind::Bursts => "bursts",
            Kind::Budget => "budget",
            Kind::Throttled => "throttled",
            Kind::Neighbour => "neighbour",
            Kind::Jitter => "jitter",
            Kind::Sectors => "512e",
            Kind::Fails => "fails",
            Kind::Drops => "drops",
        }
    }

    /// Has it times that can begin late and come and go?
    fn has_windows(self) -> bool {
        matches!(self, Kind::SlowFlush | Kind::SlowWrite | Kind::SlowJournal | Kind::Jitter)
    }
}

impl Drawn {
    /// A disk with one or two faults.
    pub(super) fn faulty(seed: u64) -> Drawn {
        let mut dice = Dice(fastrand::Rng::with_seed(seed));
        let first = dice.kind();
        let mut kinds = vec![first];
        if dice.0.u32(..TWO_OF) == 0 {
            // One animal is in a disk once.
            let other =
                |dice: &mut Dice| Some(dice.kind()).filter(|it| it.species() != first.species());
            kinds.push((0..).find_map(|_: u32| other(&mut dice)).unwrap_or(Kind::Stalls));
        }
        let faults = kinds.into_iter().map(|kind| dice.fault(kind)).collect();
        Drawn { faults, seed: dice.0.u32(..).into() }
    }

    /// A disk without one; every other takes a moment for each request.
    pub(super) fn sound(seed: u64) -> Drawn {
        let mut dice = Dice(fastrand::Rng::with_seed(seed));
        let mut fault = Fault { kind: Kind::Sound, when: When::Always, words: Vec::new() };
        if dice.0.bool() {
            let (flush, write) = (dice.micros(100.0, 800.0), dice.micros(20.0, 200.0));
            fault.words = vec![format!("flush={flush}"), format!("write={write}")];
        }
        Drawn { faults: vec![fault], seed: dice.0.u32(..).into() }
    }

    /// Its names, for the command line.
    pub(super) fn names(&self) -> String {
        let species = self.faults.iter().map(|fault| match fault {
            Fault { kind: Kind::Sound, words, .. } if !words.is_empty() => "slow-flush",
            fault => fault.kind.species(),
        });
        species.collect::<Vec<_>>().join("+")
    }

    /// The parameters of its animals.
    pub(super) fn parameters(&self) -> Vec<String> {
        let told = |fault: &Fault| match self.faults.len() {
            1 => fault.words.clone(),
            _ => {
                fault.words.iter().map(|word| format!("{}.{word}", fault.kind.species())).collect()
            }
        };
        self.faults.iter().flat_map(told).collect()
    }

    /// The disk itself, with other times by chance for each `luck`.
    pub(super) fn animal(&self, luck: u64) -> Result<Animal, String> {
        let parameters = self.parameters();
        let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
        Animal::new(&self.names(), &parameters, self.seed.wrapping_add(luck))
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.faults.iter().any(|fault| fault.kind == kind)
    }

    /// Are its times by chance?
    pub(super) fn is_by_chance(&self) -> bool {
        self.has(Kind::Jitter) || self.has(Kind::Neighbour)
    }
}

struct Dice(fastrand::Rng);

impl Dice {
    fn kind(&mut self) -> Kind {
        FAULTS[self.0.usize(..FAULTS.len())]
    }

    /// Each factor as likely as the others.
    fn between(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.0.f64())
    }

    fn whole(&mut self, least: f64, most: f64) -> u64 {
        self.between(least, most).round() as u64
    }

    fn share(&mut self, least: f64, most: f64) -> f64 {
        (self.between(least, most) * 1e3).round() / 1e3
    }

    /// A time for the command line, from microseconds.
    fn micros(&mut self, least: f64, most: f64) -> String {
        shown(Duration::from_micros(self.whole(least, most)))
    }

    fn seconds(&mut self, least: f64, most: f64) -> Duration {
        Duration::from_millis(self.whole(least * 10.0, most * 10.0) * 100)
    }

    fn fault(&mut self, kind: Kind) -> Fault {
        let mut words = self.strength(kind);
        let mut when = When::Always;
        if kind.has_windows() {
            match self.0.u32(..4) {
                0 => {
                    words.push(format!("begins={}", shown(self.seconds(9.0, 16.0))));
                    when = When::Later;
                }
                1 => {
                    let (each, lasts) = self.stretch();
                    words.extend([
                        format!("each={}", shown(each)),
                        format!("lasts={}", shown(lasts)),
                    ]);
                    when = When::AtTimes;
                }
                _ => {}
            }
        }
        Fault { kind, when, words }
    }

    /// The length of a stretch, and of the part of it that is slow.
    fn stretch(&mut self) -> (Duration, Duration) {
        let each = self.seconds(6.0, 15.0);
        (
            each,
            Duration::from_millis(
                (each.mul_f64(self.share(0.15, 0.5)).as_millis() / 100 * 100) as u64,
            ),
        )
    }

    fn strength(&mut self, kind: Kind) -> Vec<String> {
        match kind {
            Kind::Sound => vec![],
            Kind::SlowFlush => vec![format!("flush={}", self.micros(300.0, 80e3))],
            Kind::SlowWrite => {
                vec!["flush=0".to_owned(), format!("write={}", self.micros(300.0, 40e3))]
            }
            Kind::SlowJournal => vec![format!("cost={}", self.micros(1e3, 60e3))],
            Kind::Stalls => {
                let (every, pause) = (self.seconds(3.0, 12.0), self.whole(50.0, 3000.0));
                let pause = Duration::from_millis(pause).min(every / 2);
                vec![format!("every={}", shown(every)), format!("for={}", shown(pause))]
            }
            Kind::Bursts => {
                let (every, length) = self.stretch();
                let cost = self.micros(1e3, 80e3);
                vec![
                    format!("every={}", shown(every)),
                    format!("for={}", shown(length)),
                    format!("cost={cost}"),
                ]
            }
            Kind::Budget => vec![
                format!("operations={}", self.whole(200.0, 2000.0)),
                format!("operation-rate={}", self.whole(10.0, 60.0)),
            ],
            Kind::Throttled => vec![format!("operation-rate={}", self.whole(20.0, 1500.0))],
            Kind::Neighbour => vec![
                format!("share={}", self.share(0.3, 0.93)),
                format!("bytes={}K", self.whole(64.0, 1024.0)),
            ],
            Kind::Jitter => vec![
                format!("median={}", self.micros(200.0, 5e3)),
                format!("sigma={}", self.share(0.4, 1.4)),
            ],
            Kind::Sectors => vec![format!("cost={}", self.micros(1e3, 10e3))],
            // To the end: a single error may be met by no program.
            Kind::Fails => {
                let what = if self.0.bool() { "write" } else { "flush" };
                vec![format!("what={what}"), format!("at={}", self.whole(200.0, 2000.0))]
            }
            Kind::Drops => vec![format!("share={}", self.share(0.004, 0.04))],
        }
    }
}

/// A time as it is told to an animal.
fn shown(time: Duration) -> String {
    match time.as_micros() {
        micros if micros.is_multiple_of(1000) => format!("{}ms", micros / 1000),
        micros => format!("{micros}us"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_is_a_disk_and_another_seed_another() {
        let drawn: Vec<Drawn> = (0..50).map(Drawn::faulty).collect();
        assert_eq!(drawn, (0..50).map(Drawn::faulty).collect::<Vec<_>>());
        let texts: BTreeSet<String> = drawn.iter().map(|disk| format!("{disk:?}")).collect();
        assert_eq!(texts.len(), drawn.len());
        assert_eq!(Drawn::sound(3), Drawn::sound(3));
    }

    #[test]
    fn all_kinds_all_times_and_two_at_once_are_reached() {
        let drawn: Vec<Drawn> = (0..200).map(Drawn::faulty).collect();
        let faults = || drawn.iter().flat_map(|disk| &disk.faults);
        let kinds: BTreeSet<Kind> = faults().map(|fault| fault.kind).collect();
        assert_eq!(kinds, BTreeSet::from(FAULTS));
        for when in [When::Always, When::Later, When::AtTimes] {
            assert!(faults().any(|fault| fault.when == when), "{when:?}");
        }
        let two = drawn.iter().filter(|disk| disk.faults.len() == 2).count();
        assert!((25..75).contains(&two), "{two}");
    }

    #[test]
    fn each_is_a_disk_that_can_be_made() {
        for seed in 0..200 {
            for disk in [Drawn::faulty(seed), Drawn::sound(seed)] {
                disk.animal(0).unwrap_or_else(|error| panic!("{disk:?}: {error}"));
            }
        }
    }
}
