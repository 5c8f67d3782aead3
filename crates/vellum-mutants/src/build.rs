//! A copy of the repository with all mutants, and its test programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::areas::{CRATES, Tests};
use crate::mutate::{self, Mutant};

/// The question at the place of each mutant: `VELLUM_MUTANT` has the number of the chosen one.
/// `VELLUM_REACHED` names a file with a byte for each, which becomes 1 where a process asks.
const SWITCH: &str = include_str!("switch.rs");

/// Copies the files that git knows of the repository that this is called in, and removes files that
/// are gone there.
pub(crate) fn copy(work: &Path) -> Result<PathBuf> {
    let copy = work.join("copy");
    std::fs::create_dir_all(&copy)?;
    let listed = Command::new("git").args(["ls-files", "-z"]).output().context("git ls-files")?;
    let mut there = BTreeSet::new();
    for name in String::from_utf8(listed.stdout)?.split_terminator('\0') {
        // An unchanged file keeps its time, so that its programs are not built again.
        let (from, to) = (Path::new(name), copy.join(name));
        let Ok(text) = std::fs::read(from) else { continue };
        if std::fs::read(&to).ok().as_ref() != Some(&text) {
            std::fs::create_dir_all(to.parent().expect("it lies in the copy"))?;
            std::fs::write(&to, text)?;
        }
        there.insert(to);
    }
    remove_others(&copy, &there)?;
    Ok(copy.canonicalize()?)
}

fn remove_others(folder: &Path, there: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_others(&entry.path(), there)?;
        } else if !there.contains(&entry.path()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Puts all mutants of `files` into the copy, without those that do not compile.
pub(crate) fn mutate(copy: &Path, files: Vec<PathBuf>, work: &Path) -> Result<Vec<Mutant>> {
    let texts: BTreeMap<PathBuf, String> = files
        .into_iter()
        .map(|file| Ok((file.clone(), std::fs::read_to_string(file)?)))
        .collect::<Result<_>>()?;
    for name in CRATES {
        let root = copy.join("crates").join(name).join("src/lib.rs");
        std::fs::write(&root, std::fs::read_to_string(&root)? + SWITCH)?;
    }
    let mut broken = Vec::new();
    loop {
        let mut all: Vec<Mutant> = Vec::new();
        let mut first = 1;
        for (file, text) in &texts {
            // Numbers stay the same whatever is left out.
            let count = mutate::mutate(file.clone(), text, first, &[])?.0.len();
            let (mutants, changed) = mutate::mutate(file.clone(), text, first, &broken)?;
            first += count;
            std::fs::write(file, changed)?;
            all.extend(mutants);
        }
        let new = errors(copy, work)?;
        if new.is_empty() {
            return Ok(all);
        }
        ensure!(new.iter().any(|number| !broken.contains(number)), "the copy does not compile");
        broken.extend(new);
    }
}

fn cargo(copy: &Path, work: &Path, checker: Option<&str>) -> Result<Command> {
    let mut cargo = Command::new("cargo");
    let target = std::path::absolute(work)?.join(checker.unwrap_or("target"));
    cargo.current_dir(copy).env("CARGO_TARGET_DIR", target).stdout(Stdio::piped());
    if let Some(checker) = checker {
        cargo.env("RUSTFLAGS", format!("--cfg {checker}"));
    }
    Ok(cargo)
}

/// The mutants in lines that do not compile.
fn errors(copy: &Path, work: &Path) -> Result<Vec<usize>> {
    let output = cargo(copy, work, None)?
        .args(["check", "-p", "vellum", "--lib", "--features", "zstd"])
        .args(["--message-format", "json"])
        .stderr(Stdio::null())
        .output()?;
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line)?;
        if message["message"]["level"] != "error" {
            continue;
        }
        for span in message["message"]["spans"].as_array().into_iter().flatten() {
            for text in span["text"].as_array().into_iter().flatten() {
                let text = text["text"].as_str().unwrap_or_default();
                found.extend(text.split("mutant_switch::is(").skip(1).filter_map(|rest| {
                    rest.split(')').next().and_then(|number| number.parse::<usize>().ok())
                }));
            }
        }
        if found.is_empty() {
            bail!("{}", message["message"]["rendered"].as_str().unwrap_or_default());
        }
    }
    Ok(found)
}

/// Builds a test program.
pub(crate) fn program(copy: &Path, work: &Path, tests: &Tests) -> Result<PathBuf> {
    let mut cargo = cargo(copy, work, tests.checker)?;
    cargo.args(["test", "-p", tests.package, "--no-run", "--message-format", "json"]);
    cargo.args(if tests.is_integration { &["--test", "it"][..] } else { &["--lib"] });
    match tests.checker {
        Some(_) => cargo.args(["--profile", "model"]),
        None => cargo.args(["--features", "zstd"]),
    };
    let output = cargo.output()?;
    ensure!(output.status.success(), "the tests of the copy do not compile");
    let text = String::from_utf8(output.stdout)?;
    let mut programs = text.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    programs.next_back().context("cargo names no test program")
}
