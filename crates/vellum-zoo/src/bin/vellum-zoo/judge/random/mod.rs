//! `vellum-zoo judge --random SEED`: disks with faults by chance, and sound ones. The right answer
//! for each is known before the doctor is asked.

mod draw;
mod truth;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};
use vellum_command::private_dir::PrivateDir;

use super::cage::Cage;
use super::doctor::{Answer, Doctor};
use draw::{Drawn, Kind};
use truth::{PROGRAMS, Truth};
pub(super) use truth::{Word, words_for_etcd};

/// For how long the doctor looks at a disk.
pub(super) const SECONDS: u32 = 45;
/// One disk without a fault comes to so many faulty ones.
const SOUND_OF: u64 = 5;
/// One wrong verdict of so many is let pass.
const WRONG_OF: usize = 20;
/// A disk is drawn anew so often while it is near a limit of more than one program.
const REDRAWN: u64 = 20;
const VAGUE: usize = 1;

/// A disk, and the right answer for it.
pub(super) struct Case {
    drawn: Drawn,
    truth: Truth,
}

/// `count` faulty disks, and sound ones behind them.
pub(super) fn cases(seed: u64, count: u64, time: Duration) -> anyhow::Result<Vec<Case>> {
    let faulty = (0..count).map(|number| sharp(seed, number, time));
    let sound = (0..count.div_ceil(SOUND_OF)).map(|number| -> Result<Case, String> {
        let drawn = Drawn::sound(mixed(seed, u64::MAX - number, 0));
        Ok(Case { truth: Truth::of(&drawn, time)?, drawn })
    });
    let cases: Result<Vec<Case>, String> = faulty.chain(sound).collect();
    cases.map_err(anyhow::Error::msg)
}

/// A disk for which the right word is known for all programs but one.
fn sharp(seed: u64, number: u64, time: Duration) -> Result<Case, String> {
    let mut attempt = 0;
    loop {
        let drawn = Drawn::faulty(mixed(seed, number, attempt));
        let truth = Truth::of(&drawn, time)?;
        attempt += 1;
        if truth.vague() <= VAGUE || attempt == REDRAWN {
            return Ok(Case { drawn, truth });
        }
    }
}

/// One seed of three numbers.
fn mixed(seed: u64, number: u64, attempt: u64) -> u64 {
    [number, attempt].into_iter().fold(seed, |seed, next| {
        fastrand::Rng::with_seed(seed ^ next.wrapping_mul(0x9e37_79b9_7f4a_7c15)).u64(..)
    })
}

/// The result of a verdict, or of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    True,
    False,
    /// The machine was too busy, or no cause was named.
    Nothing,
}

/// The answer of the doctor about a disk.
#[derive(Debug)]
pub(super) struct Judged {
    words: Vec<String>,
    causes: BTreeSet<String>,
    verdict: Came,
    cause: Came,
    seconds: f64,
}

impl Case {
    fn is_sound(&self) -> bool {
        self.drawn.has(Kind::Sound)
    }

    /// Makes the disk below `dir`, and asks the doctor.
    pub(super) fn ask(&self, doctor: &Doctor, dir: &Path, seconds: u32) -> anyhow::Result<Judged> {
        let dir = PrivateDir::new(dir, "vellum-zoo-")?;
        let parameters = self.drawn.parameters();
        let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
        let cage = Cage::new(dir.path(), &self.drawn.names(), &parameters, self.drawn.seed)
            .with_context(|| format!("with {}", self.text()))?;
        let begun = Instant::now();
        let names = PROGRAMS.each_ref().map(|program| program.name);
        let answers = doctor.measure(&names, &cage.at(), seconds, &[]).unwrap_or_else(|error| {
            eprintln!("{error:#}");
            Vec::new()
        });
        Ok(self.judged(&answers, begun.elapsed().as_secs_f64()))
    }

    /// The results of the answers for all programs. No answer is wrong, and no end of the others.
    fn judged(&self, answers: &[Answer], seconds: f64) -> Judged {
        let mut words: Vec<String> = answers.iter().map(|answer| answer.verdict.clone()).collect();
        words.resize(PROGRAMS.len(), NO_ANSWER.to_owned());
        let faults = answers.iter().flat_map(Answer::faults);
        let causes: BTreeSet<String> = faults.map(str::to_owned).collect();
        let is_right =
            |(words, said): (&Vec<Word>, &String)| words.iter().any(|word| word.name() == said);
        let pairs = || self.truth.words.iter().zip(&words);
        let verdict = match pairs().all(|pair| is_right(pair) || pair.1 == CANNOT_TELL) {
            false => Came::False,
            true if pairs().all(is_right) => Came::True,
            true => Came::Nothing,
        };
        let is_false = |cause: &String| !self.truth.causes.contains(cause.as_str());
        let cause = match causes.iter().any(is_false) {
            true => Came::False,
            false if causes.is_empty() => Came::Nothing,
            false => Came::True,
        };
        Judged { words, causes, verdict, cause, seconds }
    }

    /// As it is told to `vellum-zoo run`.
    fn text(&self) -> String {
        let told = self.drawn.parameters().into_iter().map(|word| format!(" --param {word}"));
        let told: String = told.collect();
        format!("{}{told} --seed {}", self.drawn.names(), self.drawn.seed)
    }

    pub(super) fn print(&self, number: usize, judged: &Judged) {
        let truth: Vec<String> = self.truth.words.iter().map(|words| letters(words)).collect();
        let words: Vec<&str> = judged.words.iter().map(|word| letter(word)).collect();
        let verdict = match judged.verdict {
            Came::True => "right",
            Came::False => "WRONG",
            Came::Nothing => "cannot tell",
        };
        let cause = match judged.cause {
            Came::True => "true",
            Came::False => "FALSE",
            Came::Nothing => "none",
        };
        let causes: Vec<&str> = judged.causes.iter().map(String::as_str).collect();
        println!(
            "{number:>3}  {:<14} {:<9} {verdict:<12} {cause:<6} {:<30} {:>4.0} s",
            truth.join(" "),
            words.join(" "),
            causes.join(", "),
            judged.seconds
        );
        println!("     {}", self.text());
    }

    pub(super) fn json(&self, judged: &Judged) -> Value {
        let by_program = |words: Vec<Value>| -> Value {
            let names = PROGRAMS.iter().map(|program| program.name.to_owned());
            Value::Object(names.zip(words).collect())
        };
        let names = |words: &Vec<Word>| -> Value { words.iter().map(|word| word.name()).collect() };
        json!({
            "disk": self.text(), "seed": self.drawn.seed, "sound": self.is_sound(),
            "hurts": self.truth.hurts(), "causes": self.truth.causes,
            "truth": by_program(self.truth.words.iter().map(names).collect()),
            "verdicts": by_program(judged.words.iter().map(|word| word.clone().into()).collect()),
            "named": judged.causes, "verdict": judged.verdict.name(), "cause": judged.cause.name(),
            "seconds": judged.seconds,
        })
    }
}

const CANNOT_TELL: &str = "cannot-tell";
const NO_ANSWER: &str = "no-answer";

impl Came {
    fn name(self) -> &'static str {
        match self {
            Came::True => "true",
            Came::False => "false",
            Came::Nothing => "nothing",
        }
    }
}

/// The lines above the table.
pub(super) fn print_head(seed: u64, seconds: u32) {
    let names = PROGRAMS.each_ref().map(|program| program.name).join(", ");
    println!(
        "seed {seed}, {seconds} s each; {names}: G good, M marginal, B not good enough, ? cannot tell, \
         - no answer"
    );
    println!(" nr  {:<14} {:<9} {:<12} {:<6} causes", "truth", "said", "verdict", "cause");
}

fn letters(words: &[Word]) -> String {
    words.iter().map(|word| letter(word.name())).collect()
}

fn letter(word: &str) -> &'static str {
    match word {
        "good" => "G",
        "marginal" => "M",
        "not-good-enough" => "B",
        NO_ANSWER => "-",
        _ => "?",
    }
}

/// How many of which.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    faulty: usize,
    right: usize,
    cannot_tell: usize,
    named: usize,
    false_causes: usize,
    sound: usize,
    alarms: usize,
}

impl Totals {
    pub(super) fn of(judged: &[(&Case, Judged)]) -> Totals {
        let mut totals = Totals::default();
        for (case, judged) in judged {
            let has_cause = judged.cause != Came::Nothing;
            if case.is_sound() {
                totals.sound += 1;
                // A machine that is too busy says nothing of the disk.
                totals.alarms += usize::from(judged.verdict == Came::False || has_cause);
                continue;
            }
            totals.faulty += 1;
            totals.right += usize::from(judged.verdict == Came::True);
            totals.cannot_tell += usize::from(judged.verdict == Came::Nothing);
            totals.named += usize::from(has_cause);
            totals.false_causes += usize::from(judged.cause == Came::False);
        }
        totals
    }

    pub(super) fn is_well(&self) -> bool {
        let wrong = self.faulty - self.right;
        wrong <= self.faulty / WRONG_OF && self.false_causes == 0 && self.alarms == 0
    }

    pub(super) fn text(&self) -> String {
        let Totals { faulty, right, cannot_tell, named, false_causes, sound, alarms } = self;
        format!(
            "{right} of {faulty} verdicts right, {cannot_tell} cannot tell; {false_causes} of {named} \
             disks with a false cause; {alarms} false alarms on {sound} sound disks"
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "faulty": self.faulty, "right": self.right, "cannot_tell": self.cannot_tell,
            "named": self.named, "false_causes": self.false_causes, "sound": self.sound,
            "false_alarms": self.alarms, "well": self.is_well(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(9);

    #[test]
    fn a_seed_is_the_same_disks_and_each_fifth_is_sound() {
        let texts = |seed| -> Vec<String> {
            cases(seed, 5, TIME).unwrap().iter().map(Case::text).collect()
        };
        assert_eq!((texts(1), texts(1).len()), (texts(1), 6));
        assert_ne!(texts(1), texts(2));
        let cases = cases(1, 5, TIME).unwrap();
        let sound: Vec<bool> = cases.iter().map(Case::is_sound).collect();
        assert_eq!(sound, [false, false, false, false, false, true]);
        assert!(cases.iter().all(|case| case.truth.vague() <= VAGUE));
    }

    fn case(kind: Kind, words: &[&str]) -> Case {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let fault = draw::Fault { kind, when: draw::When::Always, words };
        let drawn = Drawn { faults: vec![fault], seed: 1 };
        Case { truth: Truth::of(&drawn, TIME).unwrap(), drawn }
    }

    /// The doctor's words for all programs, and the cause that it finds at fault.
    fn came(case: &Case, words: [&str; 4], cause: Option<&str>) -> Judged {
        let causes = || cause.map(|cause| (cause.to_owned(), "reason".to_owned()));
        let answers = words.map(|word| Answer {
            verdict: word.to_owned(),
            causes: causes().into_iter().collect(),
            line: String::new(),
            p99_ms: None,
        });
        case.judged(&answers, 1.0)
    }

    #[test]
    fn words_and_causes_are_right_wrong_or_missing_and_all_are_counted() {
        let (bad, good, busy) = ("not-good-enough", "good", CANNOT_TELL);
        let slow = case(Kind::SlowFlush, &["flush=150ms"]);
        let right = came(&slow, [bad; 4], Some("slow-flush"));
        assert_eq!((right.verdict, right.cause), (Came::True, Came::True));
        let wrong = came(&slow, [bad, bad, good, bad], Some("jitter"));
        assert_eq!((wrong.verdict, wrong.cause), (Came::False, Came::False));
        let nothing = came(&slow, [bad, bad, busy, bad], None);
        assert_eq!((nothing.verdict, nothing.cause), (Came::Nothing, Came::Nothing));
        let silent = slow.judged(&[], 1.0);
        assert_eq!((silent.verdict, silent.cause), (Came::False, Came::Nothing));
        let sound = case(Kind::Sound, &[]);
        let (well, alarm, told) = (
            came(&sound, [good, good, busy, good], None),
            came(&sound, [good; 4], Some("jitter")),
            came(&sound, [bad, good, good, good], None),
        );
        let judged = [
            (&slow, right),
            (&slow, wrong),
            (&slow, nothing),
            (&sound, well),
            (&sound, alarm),
            (&sound, told),
        ];
        let totals = Totals::of(&judged);
        assert_eq!(
            totals.text(),
            "1 of 3 verdicts right, 1 cannot tell; 1 of 2 disks with a false cause; 2 false alarms on 3 \
             sound disks"
        );
        assert!(!totals.is_well());
        let totals = |right| Totals { faulty: 20, right, ..Totals::default() }.is_well();
        assert_eq!([18, 19, 20].map(totals), [false, true, true]);
    }
}
