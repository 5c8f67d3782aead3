//! The kept inputs, and then random ones for a while, with any compiler.
//!
//! `VELLUM_FUZZ_SECONDS` says for how long in each target (4 unless told otherwise), and
//! `VELLUM_FUZZ_SEED` where the random inputs start. An input that fails is printed as a `printf`
//! that makes the file of it; it then goes into `fuzz/corpus` under the name of its target.

mod memory;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use vellum_testkit::fuzz::{self, random_input};
use vellum_testkit::random::Random;

/// More memory than this is never needed for logs of a few segments.
const MEMORY_MAX: usize = 64 << 20;
/// A check that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(60);

type Target = fn(&[u8]);

/// One target after the other, for the sake of the counts of memory.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn headers() {
    run("headers", fuzz::headers);
}

#[test]
fn recovery() {
    run("recovery", fuzz::recovery);
}

#[test]
fn repair() {
    run("repair", fuzz::repair);
}

fn run(name: &str, target: Target) {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let watchdog = watch(name);
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "the corpus of {name} is missing");
    for input in &corpus {
        try_one(name, target, input, &watchdog);
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seconds = number("VELLUM_FUZZ_SECONDS").unwrap_or(4);
    let mut random = Random::new(number("VELLUM_FUZZ_SEED").unwrap_or(1));
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < Duration::from_secs(seconds) {
        let input = random_input(&mut random, &corpus);
        try_one(name, target, &input, &watchdog);
        count += 1;
    }
    let rate = count / seconds.max(1);
    println!("{name}: {} kept inputs and {count} random ones, {rate} per second", corpus.len());
}

fn try_one(name: &str, target: Target, input: &[u8], watchdog: &Sender<Vec<u8>>) {
    watchdog.send(input.to_vec()).expect("the watchdog");
    memory::forget_peak();
    let answer = catch_unwind(AssertUnwindSafe(|| target(input)));
    assert!(answer.is_ok(), "{name} failed on {}", as_printf(input));
    let peak = memory::peak();
    assert!(peak < MEMORY_MAX, "{name} took {peak} bytes of memory on {}", as_printf(input));
}

/// Ends the process when an input hangs; nothing else could.
fn watch(name: &str) -> Sender<Vec<u8>> {
    let (sender, receiver) = channel::<Vec<u8>>();
    let name = name.to_string();
    thread::spawn(move || {
        let mut input = Vec::new();
        loop {
            match receiver.recv_timeout(PATIENCE) {
                Ok(next) => input = next,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    eprintln!("{name} hangs on {}", as_printf(&input));
                    std::process::abort();
                }
            }
        }
    });
    sender
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let entries = fs::read_dir(dir).expect("the corpus");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("readable")).collect()
}

fn as_printf(input: &[u8]) -> String {
    let escaped: String = input.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("printf '{escaped}'")
}
