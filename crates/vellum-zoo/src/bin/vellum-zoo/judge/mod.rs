//! `vellum-zoo judge`: does `vellum doctor` name what is wrong with each disk, and nothing on a
//! sound one?
//!
//! ```text
//!   exam     each animal, and what has to be said of it      cage    a disk of `vellum-zoo run`
//!   claim    is the animal as it says?                       doctor  asking, and the answer
//!   sound    disks without a fault                            random  disks with faults by chance
//! ```

mod cage;
mod claim;
mod doctor;
mod exam;
mod output;
mod random;
mod sound;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use vellum_command::private_dir::PrivateDir;
use vellum_zoo::filesystem::Filesystem;
use vellum_zoo::look_for_needs;

use cage::Cage;
pub(super) use claim::p99;
use doctor::{Answer, Doctor};
use exam::{Asked, CASES, EXAMS, Exam};
use output::written;
use sound::Sound;
pub(super) use tools::{ToolsArguments, run as tools};

/// How long the doctor measures.
const SECONDS: u32 = 30;
const SECONDS_SOUND: u32 = 8;
/// The animals of the exams have the times of this one.
const SEED: u64 = 1;
/// One wrong answer of so many is let pass.
const WRONG_OF: usize = 12;
/// Too many answers were wrong, or there was a false alarm.
const WRONG: u8 = 1;
const INTERRUPTED: u8 = 130;

#[derive(Args, Clone, Debug)]
pub(super) struct JudgeArguments {
    /// Only these animals, as slow-flush,stalls.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    animals: Vec<String>,
    /// In place of the animals, disks of which others reported that a tool was wrong; the tool is
    /// asked before the doctor.
    #[arg(long, conflicts_with = "animals")]
    cases: bool,
    /// In place of the animals, disks with faults that the seed makes: which, how strong, when and
    /// for how long, and of some of them two. What has to be said of each for etcd, PostgreSQL,
    /// SQLite and Vellum, and which causes may be named, follows from the faults.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["animals", "cases", "sound"])]
    random: Option<u64>,
    /// So many of them, and a sound one to each five.
    #[arg(long, value_name = "COUNT", default_value_t = 20, requires = "random")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000))]
    count: u64,
    /// So many runs on sound disks: ext4, XFS and btrfs, in memory and in a file, idle and beside
    /// a writer, in turns.
    #[arg(long, value_name = "COUNT", default_value_t = 12)]
    sound: usize,
    /// Have the doctor measure for so many seconds on each animal [default: 30; with --random 45].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: Option<u32>,
    /// Have it measure for a third of the time.
    #[arg(long)]
    quick: bool,
    /// Write all answers as JSON to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The doctor [default: vellum-doctor beside this program, or of the path].
    #[arg(long, value_name = "PROGRAM")]
    doctor: Option<PathBuf>,
    /// Where the files of the disks are made; sparse, and never more than a few hundred MiB.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl JudgeArguments {
    fn shortened(&self, seconds: u32) -> u32 {
        if self.quick { seconds.div_ceil(3) } else { seconds }
    }
}

/// A line of the table.
struct Row {
    disk: String,
    expected: String,
    named: String,
    verdict: String,
    line: String,
    /// The figures that were seen without the doctor, and whether they agree with the animal.
    figures: String,
    is_as_told: bool,
    is_right: bool,
    seconds: f64,
}

impl Row {
    fn print(&self) {
        let Row { disk, expected, named, verdict, seconds, .. } = self;
        let answer = match (self.is_as_told, self.is_right) {
            (false, _) => "NOT AS IT SAYS",
            (true, true) => "right",
            (true, false) => "WRONG",
        };
        println!("{disk:<25} {expected:<16} {named:<24} {verdict:<15} {seconds:>4.0} s  {answer}");
        println!("{:<25} {}", "", self.figures);
        for line in self.line.lines() {
            println!("{:<25} {line}", "");
        }
    }

    fn json(&self) -> Value {
        json!({
            "disk": self.disk, "expected": self.expected, "named": self.named,
            "verdict": self.verdict, "line": self.line, "figures": self.figures,
            "as_told": self.is_as_told, "right": self.is_right, "seconds": self.seconds,
        })
    }
}

/// Asks the doctor of all disks; returns the exit status.
pub(super) fn run(arguments: &JudgeArguments) -> anyhow::Result<u8> {
    let exams = if arguments.cases { CASES.iter().collect() } else { exams(&arguments.animals)? };
    let seconds = arguments.shortened(arguments.seconds.unwrap_or(random::SECONDS));
    let cases = |seed| random::cases(seed, arguments.count, Duration::from_secs(seconds.into()));
    let cases = arguments.random.map(cases).transpose()?;
    look_for_needs()?;
    Filesystem::Ext4.look_for_maker()?;
    let doctor = Doctor::find(arguments.doctor.as_deref())?;
    let is_asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_asked))?;
    }
    let judge = Judge { arguments, doctor, is_asked: &is_asked };
    let judged = match (cases, arguments.random) {
        (Some(cases), Some(seed)) => judge.random(&cases, seed, seconds),
        _ => judge.all(&exams),
    };
    match judged {
        // An error of a run that was interrupted only follows from the interruption.
        Err(_) if is_asked.load(Ordering::SeqCst) => Ok(INTERRUPTED),
        judged => judged,
    }
}

fn exams(names: &[String]) -> anyhow::Result<Vec<&'static Exam>> {
    let all = || EXAMS.iter().map(|exam| exam.animal).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        let exam = EXAMS.iter().find(|exam| exam.animal == name);
        exam.with_context(|| format!("nothing is asked of \"{name}\"; there are {}", all()))
    };
    match names {
        [] => Ok(EXAMS.iter().collect()),
        names => names.iter().map(find).collect(),
    }
}

/// The answer of the doctor, and whether it is right.
struct Heard {
    is_right: bool,
    named: String,
    verdict: String,
    line: String,
}

fn heard(asked: Asked, answer: Answer) -> Heard {
    let mut named = answer.faults();
    let is_right = match asked {
        Asked::Measured { cause, line } => {
            named.first() == Some(&cause) && answer.line.contains(line)
        }
        Asked::Noted { cause, line } => {
            let is_named = answer.names(cause);
            named.extend(is_named.then_some(cause));
            is_named && answer.line.contains(line)
        }
        Asked::Nothing => named.is_empty() && answer.verdict == "good",
        Asked::Doubt => {
            let is_clear = named.is_empty();
            named.extend(answer.doubts());
            is_clear && answer.doubts().is_some()
        }
        Asked::Lies(_) => false,
    };
    let named = named.join(", ");
    Heard { is_right, named, verdict: answer.verdict, line: answer.line }
}

/// Threads that use all processors until this is dropped.
struct Load(Arc<AtomicBool>);

impl Load {
    fn new() -> Load {
        let has_ended = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..2 * processors {
            let has_ended = Arc::clone(&has_ended);
            thread::spawn(move || {
                while !has_ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Load(has_ended)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Judge<'a> {
    arguments: &'a JudgeArguments,
    doctor: Doctor,
    is_asked: &'a AtomicBool,
}

impl Judge<'_> {
    fn all(&self, exams: &[&Exam]) -> anyhow::Result<u8> {
        let (mut animals, mut sound) = (Vec::new(), Vec::new());
        for exam in exams {
            let row = self.exam(exam).with_context(|| format!("with {}", exam.name()))?;
            row.print();
            animals.push(row);
        }
        for number in 0..self.arguments.sound {
            let disk = Sound::nth(number);
            let row = self.sound(disk).with_context(|| format!("with {}", disk.name()))?;
            row.print();
            sound.push(row);
        }
        let right = animals.iter().filter(|row| row.is_right && row.is_as_told).count();
        let alarms = sound.iter().filter(|row| !row.is_right).count();
        let all = animals.len();
        println!("{right} of {all} animals right, {alarms} false alarms in {} runs", sound.len());
        let rows = |rows: &[Row]| rows.iter().map(Row::json).collect::<Vec<_>>();
        written(
            self.arguments.json.as_deref(),
            &json!({ "animals": rows(&animals), "sound": rows(&sound) }),
        )?;
        let is_well = all - right <= all / WRONG_OF && alarms == 0;
        Ok(if is_well { 0 } else { WRONG })
    }

    /// Disks with faults by chance.
    fn random(&self, cases: &[random::Case], seed: u64, seconds: u32) -> anyhow::Result<u8> {
        let mut judged = Vec::new();
        random::print_head(seed, seconds);
        for (number, case) in cases.iter().enumerate() {
            self.go_on()?;
            let heard = case.ask(&self.doctor, &self.dir(), seconds)?;
            case.print(number, &heard);
            judged.push((case, heard));
        }
        let totals = random::Totals::of(&judged);
        println!("{}", totals.text());
        let rows: Vec<Value> = judged.iter().map(|(case, heard)| case.json(heard)).collect();
        written(
            self.arguments.json.as_deref(),
            &json!({
                "seed": seed, "seconds": seconds, "disks": rows, "totals": totals.json(),
            }),
        )?;
        Ok(if totals.is_well() { 0 } else { WRONG })
    }

    fn go_on(&self) -> anyhow::Result<()> {
        ensure!(!self.is_asked.load(Ordering::SeqCst), "interrupted");
        Ok(())
    }

    fn dir(&self) -> PathBuf {
        self.arguments.dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// The animal is looked at first, and then made anew for the doctor.
    fn exam(&self, exam: &Exam) -> anyhow::Result<Row> {
        self.go_on()?;
        let dir = PrivateDir::new(&self.dir(), "vellum-zoo-")?;
        let cage = || Cage::new(dir.path(), exam.animal, exam.parameters, SEED);
        let seen = exam.claim.check(&mut cage()?)?;
        self.go_on()?;
        let mut cage = cage()?;
        let begun = Instant::now();
        let heard = match exam.asked {
            Asked::Lies(lies) => {
                self.heard_of_lies(lies, &mut cage, &dir.path().join("promises"))?
            }
            _ => {
                let _load = matches!(exam.asked, Asked::Doubt).then(Load::new);
                let seconds = self.arguments.shortened(self.arguments.seconds.unwrap_or(SECONDS));
                heard(exam.asked, self.doctor.measure_etcd(&cage.at(), seconds, &[])?)
            }
        };
        Ok(Row {
            disk: exam.name().to_owned(),
            expected: exam.expected().to_owned(),
            named: heard.named,
            verdict: heard.verdict,
            line: heard.line,
            figures: seen.what,
            is_as_told: seen.is_as_told,
            is_right: heard.is_right,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    fn heard_of_lies(&self, lies: bool, cage: &mut Cage, witness: &Path) -> anyhow::Result<Heard> {
        let line = self.doctor.lies(cage, witness)?;
        let start = if lies { "It lied" } else { "Honest so far" };
        let named = line.split([':', '.']).next().unwrap_or_default().to_lowercase();
        Ok(Heard { is_right: line.starts_with(start), named, verdict: String::new(), line })
    }

    fn sound(&self, disk: Sound) -> anyhow::Result<Row> {
        self.go_on()?;
        let begun = Instant::now();
        let seconds = self.arguments.seconds.unwrap_or(SECONDS).min(SECONDS_SOUND);
        let heard = disk.ask(&self.doctor, &self.dir(), self.arguments.shortened(seconds))?;
        Ok(Row {
            disk: disk.name(),
            expected: "nothing".to_owned(),
            named: heard.alarm.clone().unwrap_or_default(),
            verdict: heard.answer.verdict.clone(),
            line: if heard.alarm.is_some() { heard.answer.line } else { String::new() },
            figures: format!("p99 of a commit is {:.2} ms", heard.own_p99_ms),
            is_as_told: true,
            is_right: heard.alarm.is_none(),
            seconds: begun.elapsed().as_secs_f64(),
        })
    }
}
