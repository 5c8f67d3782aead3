//! `vellum-zoo tools`: the tools that people know beside the doctor, on each disk of the zoo and on
//! one of this machine, one after the other. Prints a table for a page.
//!
//! ```text
//!   fio        etcd's recipe: p99 of fdatasync
//!   postgres   pg_test_fsync: a mean
//!   etcd       etcdctl check perf: a server that writes for a minute
//!   tool       starting one, and what it says
//! ```

mod etcd;
mod fio;
mod postgres;
mod tool;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use vellum_command::private_dir::PrivateDir;
use vellum_zoo::filesystem::Filesystem;
use vellum_zoo::{Animal, look_for_needs};

use super::cage::Cage;
use super::doctor::Doctor;
use super::exam::{Asked, EXAMS, Exam};
use super::output::written;
use super::random::{Word, words_for_etcd};
use tool::Said;

/// The animals have the times of this one.
const SEED: u64 = 1;
const SECONDS: u32 = 30;
/// A disk shows its properties in this time, however long it is measured.
const TRUTH: Duration = Duration::from_secs(60);
/// The figures of two tools on a sound disk may differ by so much.
const APART: f64 = 0.2;

#[derive(Args, Clone, Debug)]
pub(crate) struct ToolsArguments {
    /// Only these disks, as slow-flush,stalls; `sound` and `here` are two more.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    disks: Vec<String>,
    /// A directory on the disk of this machine that is called `here`.
    #[arg(long, value_name = "DIR", default_value = ".")]
    here: PathBuf,
    /// Have fio and the doctor measure for so many seconds on each disk.
    #[arg(long, value_name = "COUNT", default_value_t = SECONDS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Leave out `etcdctl check perf`, which takes a minute on each disk.
    #[arg(long)]
    no_etcd: bool,
    /// Write all answers as JSON to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The doctor [default: vellum-doctor beside this program, or of the path].
    #[arg(long, value_name = "PROGRAM")]
    doctor: Option<PathBuf>,
    /// Where the files of the disks are made.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// A disk, the right words for etcd, and the results of the tools.
struct Row {
    disk: String,
    /// The words that are right; nothing where that is not known.
    truth: Vec<Word>,
    said: [Said; TOOLS.len()],
}

const TOOLS: [&str; 4] = ["fio", "pg_test_fsync", "etcdctl", "doctor"];

impl Row {
    /// The tools whose word is wrong.
    fn wrong(&self) -> Vec<&'static str> {
        let is_wrong = |said: &Said| match (said.is_good, self.truth.as_slice()) {
            (None, _) | (_, []) => false,
            (Some(true), truth) => !truth.contains(&Word::Good),
            (Some(false), truth) => truth == [Word::Good],
        };
        let tools = TOOLS.into_iter().zip(&self.said);
        tools.filter(|(_, said)| is_wrong(said)).map(|(tool, _)| tool).collect()
    }

    /// As a row of a table.
    fn text(&self) -> String {
        let truth: Vec<&str> = self.truth.iter().map(|word| word.name()).collect();
        let truth = if truth.is_empty() { "?".to_owned() } else { truth.join(" or ") };
        let said: Vec<&str> = self.said.iter().map(|said| said.text.as_str()).collect();
        let wrong = self.wrong().join(", ");
        format!("| {} | {truth} | {} | {wrong} |", self.disk, said.join(" | "))
    }

    fn json(&self) -> Value {
        let said = TOOLS.iter().zip(&self.said).map(|(tool, said)| {
            let said = json!({ "p99_ms": said.p99_ms, "text": said.text, "good": said.is_good, "error": said.error });
            ((*tool).to_owned(), said)
        });
        let truth: Vec<&str> = self.truth.iter().map(|word| word.name()).collect();
        let said = Value::Object(said.collect());
        json!({ "disk": self.disk, "truth": truth, "said": said, "wrong": self.wrong() })
    }
}

/// Asks all tools of all disks.
pub(crate) fn run(arguments: &ToolsArguments) -> anyhow::Result<()> {
    look_for_needs()?;
    Filesystem::Ext4.look_for_maker()?;
    let doctor = Doctor::find(arguments.doctor.as_deref())?;
    let is_asked = |name: &str| {
        arguments.disks.is_empty() || arguments.disks.iter().any(|asked| asked == name)
    };
    let (mut rows, bench) = (Vec::new(), Bench { arguments, doctor });
    println!("| disk | for etcd it is | fio | pg_test_fsync | etcdctl | doctor | wrong |");
    println!("|---|---|---|---|---|---|---|");
    let mut add = |row: Row| {
        println!("{}", row.text());
        rows.push(row);
    };
    if is_asked("here") {
        add(bench.here()?);
    }
    if is_asked("sound") {
        add(bench.zoo("sound", "sound", &[], false)?);
    }
    for exam in EXAMS.iter().filter(|exam| is_asked(exam.name())) {
        let lies = matches!(exam.asked, Asked::Lies(true));
        add(bench.exam(exam, lies).with_context(|| format!("with {}", exam.name()))?);
    }
    println!("\n{}", machine());
    println!("{}", agreement(&rows));
    let told: Vec<Value> = rows.iter().map(Row::json).collect();
    written(arguments.json.as_deref(), &json!({ "machine": machine(), "disks": told }))
}

/// Where it was measured.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (kernel, load) = (read("/proc/sys/kernel/osrelease"), read("/proc/loadavg"));
    let load: Vec<&str> = load.split(' ').take(3).collect();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} cores, Linux {}, load {} at the end", kernel.trim(), load.join(" "))
}

/// How far apart the tools are on the disks that are good.
fn agreement(rows: &[Row]) -> String {
    let apart = |row: &Row| -> Option<String> {
        let [fio, .., doctor] = &row.said;
        let (fio, doctor) = (fio.p99_ms?, doctor.p99_ms?);
        let word = if (doctor / fio - 1.0).abs() <= APART { "agree" } else { "differ" };
        Some(format!("{}: p99 {fio:.2} and {doctor:.2} ms {word}", row.disk))
    };
    let good = rows.iter().filter(|row| row.truth == [Word::Good]);
    let told: Vec<String> = good.filter_map(apart).collect();
    format!("fio and the doctor on good disks, by a fifth: {}", told.join("; "))
}

struct Bench<'a> {
    arguments: &'a ToolsArguments,
    doctor: Doctor,
}

impl Bench<'_> {
    /// The disk of this machine, for which the right words are not known.
    fn here(&self) -> anyhow::Result<Row> {
        let dir = PrivateDir::new(&self.arguments.here, "vellum-zoo-")?;
        // fio takes no path that ends with a link of the kernel's.
        let at = dir.path().join("at");
        std::fs::create_dir(&at)?;
        let said = self.said(|| Ok(Place { dir: at.clone(), _cage: None }))?;
        Ok(Row { disk: "here".to_owned(), truth: Vec::new(), said })
    }

    fn exam(&self, exam: &Exam, lies: bool) -> anyhow::Result<Row> {
        self.zoo(exam.name(), exam.animal, exam.parameters, lies)
    }

    fn zoo(
        &self,
        name: &str,
        animal: &str,
        parameters: &[&str],
        lies: bool,
    ) -> anyhow::Result<Row> {
        let truth = match (lies, animal) {
            (true, _) | (_, "fails" | "drops") => vec![Word::NotGoodEnough],
            _ => {
                let of = |luck| Animal::new(animal, parameters, SEED + luck);
                words_for_etcd(of, TRUTH).map_err(anyhow::Error::msg)?
            }
        };
        let base = self.arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
        let dir = PrivateDir::new(&base, "vellum-zoo-")?;
        // Anew for each tool: a budget that has ended is another disk.
        let said = self.said(|| {
            let cage = Cage::new(dir.path(), animal, parameters, SEED)?;
            Ok(Place { dir: cage.at(), _cage: Some(cage) })
        })?;
        Ok(Row { disk: name.to_owned(), truth, said })
    }

    fn said(
        &self,
        place: impl Fn() -> anyhow::Result<Place>,
    ) -> anyhow::Result<[Said; TOOLS.len()]> {
        let seconds = self.arguments.seconds;
        let fio = fio::ask(&place()?.dir, seconds);
        let postgres = postgres::ask(&place()?.dir);
        let etcd = match self.arguments.no_etcd {
            true => Said::nothing(),
            false => etcd::ask(&place()?.dir),
        };
        Ok([fio, postgres, etcd, self.doctor(&place()?.dir, seconds)?])
    }

    fn doctor(&self, dir: &Path, seconds: u32) -> anyhow::Result<Said> {
        let answer = self.doctor.measure_etcd(dir, seconds, &[])?;
        let is_good = match answer.verdict.as_str() {
            "cannot-tell" => None,
            verdict => Some(verdict == Word::Good.name()),
        };
        let word = answer.verdict.replace('-', " ");
        let text = match answer.p99_ms {
            Some(p99_ms) => format!("p99 {p99_ms:.2} ms, {word}"),
            None => word,
        };
        Ok(Said::new(text, answer.p99_ms, is_good))
    }
}

/// A directory on a disk, which is there while this is held.
struct Place {
    dir: PathBuf,
    _cage: Option<Cage>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(is_good: Option<bool>) -> Said {
        Said::new("p99".to_owned(), Some(1.0), is_good)
    }

    #[test]
    fn a_tool_is_wrong_by_the_truth_and_not_where_it_says_nothing() {
        let wrong = |truth: &[Word], good: [Option<bool>; 4]| {
            Row { disk: "d".to_owned(), truth: truth.to_vec(), said: good.map(said) }.wrong()
        };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(wrong(&[Word::Good], [yes, no, None, yes]), ["pg_test_fsync"]);
        assert_eq!(wrong(&[Word::NotGoodEnough], [yes, None, no, no]), ["fio"]);
        assert_eq!(wrong(&[Word::Good, Word::Marginal], [yes, no, yes, no]), [""; 0]);
        assert_eq!(wrong(&[], [yes, no, None, no]), [""; 0]);
    }

    #[test]
    fn a_row_is_one_of_a_table_and_tools_on_good_disks_are_compared() {
        let mut fio = said(Some(true));
        (fio.p99_ms, fio.text) = (Some(1.3), "p99 1.30 ms".to_owned());
        let others = [said(None), said(None), said(Some(true))];
        let [pg, etcd, doctor] = others;
        let row =
            Row { disk: "sound".into(), truth: vec![Word::Good], said: [fio, pg, etcd, doctor] };
        assert_eq!(row.text(), "| sound | good | p99 1.30 ms | p99 | p99 | p99 |  |");
        let told = agreement(&[row]);
        assert!(told.ends_with("sound: p99 1.30 and 1.00 ms differ"), "{told}");
    }
}
