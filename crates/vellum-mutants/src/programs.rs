//! Test programs: which of their tests reach which mutants, and running them.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Tests that take so many times as long as without a mutant have noticed it.
const PATIENCE: u32 = 5;
/// The machine may be busy with something else for so long.
const BUSY: Duration = Duration::from_secs(10);

/// A test, and its result without a mutant.
pub(crate) struct Test {
    /// Which of the programs it is in.
    pub(crate) program: usize,
    pub(crate) name: String,
    pub(crate) took: Duration,
    /// For each mutant whether the test comes to its place.
    reached: Vec<u8>,
}

impl Test {
    pub(crate) fn reaches(&self, mutant: usize) -> bool {
        self.reached.get(mutant).is_some_and(|byte| *byte != 0)
    }
}

/// Finds out which tests come to which mutants, by running each test alone.
pub(crate) fn tests(
    programs: &[(PathBuf, &'static [&'static str])],
    copy: &Path,
    mutants: usize,
    jobs: usize,
) -> Result<Vec<Test>> {
    let mut listed = Vec::new();
    for (program, (path, names)) in programs.iter().enumerate() {
        let mut command = Command::new(path);
        let output = command.arg("--list").args(*names).current_dir(folder(copy)).output()?;
        let text = String::from_utf8(output.stdout)?;
        let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
        listed.extend(tests.map(|name| (program, name.to_owned())));
    }
    println!("{} tests run alone, to see which mutants they reach", listed.len());
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        while let Some((program, name)) = listed.get(next.fetch_add(1, Ordering::Relaxed)) {
            let path = &programs[*program].0;
            match look(*program, path, name, copy, mutants)? {
                Some(test) => found.lock().expect("no thread panics").push(test),
                None => println!("left out: {name} fails without a mutant"),
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    let mut tests = found.into_inner().expect("no thread panics");
    tests.sort_by_key(|test: &Test| test.took);
    Ok(tests)
}

/// `None` if the test fails without a mutant.
fn look(
    program: usize,
    path: &Path,
    name: &str,
    copy: &Path,
    mutants: usize,
) -> Result<Option<Test>> {
    let scratch = Scratch::new()?;
    let map = scratch.0.join("reached");
    std::fs::write(&map, vec![0; mutants + 1])?;
    let begun = Instant::now();
    let environment = ("VELLUM_REACHED", map.display().to_string());
    let limit = Duration::from_secs(3600);
    if failure(path, copy, &[name], environment, limit)?.is_some() {
        return Ok(None);
    }
    let (took, reached) = (begun.elapsed(), std::fs::read(&map)?);
    Ok(Some(Test { program, name: name.to_owned(), took, reached }))
}

/// Runs tests with a mutant, and returns the one that noticed it.
pub(crate) fn notices(
    path: &Path,
    copy: &Path,
    tests: &[&Test],
    mutant: usize,
) -> Result<Option<String>> {
    let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
    let limit = tests.iter().map(|test| test.took).sum::<Duration>() * PATIENCE + BUSY;
    failure(path, copy, &names, ("VELLUM_MUTANT", mutant.to_string()), limit)
}

/// A folder for the files of tests, which goes with all that is left in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("vellum-mutants-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Leftover files of a mutant may be in the way.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs tests until the first fails, and returns its name; or how the program ended else.
fn failure(
    path: &Path,
    copy: &Path,
    names: &[&str],
    (key, value): (&str, String),
    limit: Duration,
) -> Result<Option<String>> {
    let scratch = Scratch::new()?;
    let mut command = Command::new(path);
    command.arg("--exact").args(names).current_dir(folder(copy));
    command.env(key, value).env("TMPDIR", &scratch.0).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let lines = lines(child.stdout.take().context("it is a pipe")?);
    let end = Instant::now() + limit;
    let seen = loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                let failed =
                    line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
                if let Some(name) = failed {
                    break Some(name.to_owned());
                }
            }
            Err(mpsc::RecvTimeoutError::Timeout) => break Some("the limit of time".to_owned()),
            Err(mpsc::RecvTimeoutError::Disconnected) => break None,
        }
    };
    if seen.is_some() {
        end_group(&mut child)?;
        return Ok(seen);
    }
    let status = child.wait()?;
    Ok((!status.success()).then(|| status.to_string()))
}

/// Lines of a program as they come.
fn lines(out: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        lines.map_while(|line| sender.send(line).ok()).for_each(drop);
    });
    receiver
}

/// Ends a test program and the processes that it has started.
fn end_group(child: &mut Child) -> Result<()> {
    let group = format!("-{}", child.id());
    Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status()?;
    child.wait()?;
    Ok(())
}

fn folder(copy: &Path) -> PathBuf {
    copy.join("crates/vellum")
}
