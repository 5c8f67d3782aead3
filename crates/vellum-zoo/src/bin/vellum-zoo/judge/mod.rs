//! `vellum-zoo judge`: does `vellum doctor` name what is wrong with each disk, and nothing on a
//! sound one?
//!
//! ```text
//!   exam     each animal, and what has to be said of it      cage    a disk of `vellum-zoo run`
//!   claim    is the animal as it says?                       doctor  asking, and the answer
//!   sound    disks without a fault
//! ```

mod cage;
mod claim;
mod doctor;
mod exam;
mod sound;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use vellum_zoo::filesystem::Filesystem;
use vellum_zoo::look_for_needs;

use cage::Cage;
use doctor::Doctor;
use exam::{Asked, EXAMS, Exam};
use sound::Sound;

/// How long the doctor measures.
const SECONDS: u32 = 30;
const SECONDS_SOUND: u32 = 8;
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
    /// So many runs on sound disks: ext4, XFS and btrfs, in memory and in a file, idle and beside
    /// a writer, in turns.
    #[arg(long, value_name = "COUNT", default_value_t = 12)]
    sound: usize,
    /// Have the doctor measure for so many seconds on each animal [default: 30].
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

/// A line of the table.
struct Row {
    disk: String,
    expected: String,
    named: String,
    verdict: String,
    line: String,
    /// What was seen without the doctor, and whether that is what the animal says.
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
    let exams = exams(&arguments.animals)?;
    look_for_needs()?;
    Filesystem::Ext4.look_for_maker()?;
    let doctor = Doctor::find(arguments.doctor.as_deref())?;
    let is_asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_asked))?;
    }
    let judged = Judge { arguments, doctor, is_asked: &is_asked }.all(&exams);
    match judged {
        // What ends a run that was interrupted is only what follows from that.
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

struct Judge<'a> {
    arguments: &'a JudgeArguments,
    doctor: Doctor,
    is_asked: &'a AtomicBool,
}

impl Judge<'_> {
    fn all(&self, exams: &[&Exam]) -> anyhow::Result<u8> {
        let (mut animals, mut sound) = (Vec::new(), Vec::new());
        for exam in exams {
            let row = self.exam(exam).with_context(|| format!("with {}", exam.animal))?;
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
        if let Some(path) = &self.arguments.json {
            let rows = |rows: &[Row]| rows.iter().map(Row::json).collect::<Vec<_>>();
            let told = json!({ "animals": rows(&animals), "sound": rows(&sound) });
            fs::write(path, format!("{told:#}\n"))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        let is_well = all - right <= all / WRONG_OF && alarms == 0;
        Ok(if is_well { 0 } else { WRONG })
    }

    fn go_on(&self) -> anyhow::Result<()> {
        ensure!(!self.is_asked.load(Ordering::SeqCst), "interrupted");
        Ok(())
    }

    fn dir(&self) -> PathBuf {
        self.arguments.dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    fn shortened(&self, seconds: u32) -> u32 {
        if self.arguments.quick { seconds.div_ceil(3) } else { seconds }
    }

    /// The animal is looked at first, and then made anew for the doctor.
    fn exam(&self, exam: &Exam) -> anyhow::Result<Row> {
        self.go_on()?;
        let dir = tempfile::Builder::new().prefix("vellum-zoo-").tempdir_in(self.dir())?;
        let cage = || Cage::new(dir.path(), exam.animal, exam.parameters);
        let seen = exam.claim.check(&mut cage()?)?;
        self.go_on()?;
        let mut cage = cage()?;
        let begun = Instant::now();
        let heard = match exam.asked {
            Asked::Lies(lies) => {
                let said = self.doctor.lies(&mut cage, &dir.path().join("promises"))?;
                let start = if lies { "It lied" } else { "Honest so far" };
                let is_right = said.starts_with(start);
                let named = said.split([':', '.']).next().unwrap_or_default().to_lowercase();
                (is_right, named, String::new(), said)
            }
            Asked::Measured { cause, line } | Asked::Noted { cause, line } => {
                let seconds = self.shortened(self.arguments.seconds.unwrap_or(SECONDS));
                let answer = self.doctor.measure(&cage.at(), seconds, &[])?;
                let faults = answer.faults();
                let is_named = match exam.asked {
                    Asked::Noted { .. } => answer.names(cause),
                    _ => faults.first() == Some(&cause),
                };
                let mut named = faults.clone();
                named.extend((is_named && !faults.contains(&cause)).then_some(cause));
                let is_right = is_named && answer.line.contains(line);
                (is_right, named.join(", "), answer.verdict.clone(), answer.line.clone())
            }
        };
        let (is_right, named, verdict, line) = heard;
        Ok(Row {
            disk: exam.animal.to_owned(),
            expected: exam.expected().to_owned(),
            named,
            verdict,
            line,
            figures: seen.what,
            is_as_told: seen.is_as_told,
            is_right,
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    fn sound(&self, disk: Sound) -> anyhow::Result<Row> {
        self.go_on()?;
        let begun = Instant::now();
        let seconds = self.arguments.seconds.unwrap_or(SECONDS).min(SECONDS_SOUND);
        let heard = disk.ask(&self.doctor, &self.dir(), self.shortened(seconds))?;
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
