//! The memory of the commands while a lot passes through them, at its peak.

use std::process::Command;

use vellum::{Create, Log, Lsn, Options};

use crate::server::{SECRET, versitygw};

const SHIP: &str = env!("CARGO_BIN_EXE_vellum-ship");
/// What `docs/shipping.md` promises.
const MOST_MIB: f64 = 100.0;
/// The size of the log that passes through.
const LOG_MIB: usize = 256;

/// Runs a command and prints what it took: seconds, those of the processor, and the most memory
/// that it had, in kibibytes.
const USAGE: &str = "import resource, subprocess, sys, time; \
     begun = time.monotonic(); \
     done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); \
     seconds = time.monotonic() - begun; \
     use = resource.getrusage(resource.RUSAGE_CHILDREN); \
     print(seconds, use.ru_utime + use.ru_stime, use.ru_maxrss); \
     sys.exit(done.returncode)";

/// The resources that a command took.
#[derive(Debug)]
#[allow(dead_code, reason = "printed")]
pub(crate) struct Usage {
    pub(crate) seconds: f64,
    processor_seconds: f64,
    peak_mib: f64,
}

/// A log and the URL to which it is shipped.
pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) url: String,
    pub(crate) environment: Vec<(String, String)>,
}

impl Place {
    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Fails if the command fails, or takes too much memory.
    pub(crate) fn run(&self, arguments: &[&str]) -> Usage {
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        let mut command = Command::new("python3");
        command.arg("-c").arg(USAGE).arg(SHIP).args(arguments).envs(environment);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let text = String::from_utf8_lossy(&done.stdout);
        let numbers: Vec<f64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [seconds, processor_seconds, peak] = numbers[..] else { panic!("{text}") };
        let peak_mib = peak / 1024.0;
        assert!(peak_mib < MOST_MIB, "{arguments:?}: {peak_mib} MiB");
        Usage { seconds, processor_seconds, peak_mib }
    }

    fn ship_and_read(&self) {
        let log = Options::default().open(self.path("log")).unwrap();
        // Half of it shrinks: both kinds of buffers are used.
        fill(&log, LOG_MIB, |number| number / 256 % 2 == 0);
        drop(log);
        self.run(&["ship", &self.path("log"), &self.url, "--once"]);
        std::fs::remove_dir_all(self.path("log")).unwrap();
        self.run(&["restore", &self.url, &self.path("copy")]);
        let log = Options::default().create(Create::Never).open(self.path("copy")).unwrap();
        assert!(log.durable() >= Lsn::new((LOG_MIB as u64) << 20));
        self.run(&["verify", &self.url]);
        self.run(&["cat", &self.url]);
    }
}

/// So many mebibytes in records, of which some are random and others shrink.
pub(crate) fn fill(log: &Log, mebibytes: usize, is_random: impl Fn(usize) -> bool) {
    let (mut state, mut record) = (1_u64, vec![b'x'; 64 << 10]);
    for number in 0..mebibytes * 16 {
        let random = if is_random(number) { record.len() } else { record.len() / 8 };
        for word in record[..random].chunks_exact_mut(8) {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            word.copy_from_slice(&state.to_le_bytes());
        }
        record[random..].fill(b'x');
        log.append(&record).unwrap();
    }
    log.sync().unwrap();
}

#[test]
fn a_directory_takes_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file://{}/store", dir.path().display());
    Place { dir, url, environment: Vec::new() }.ship_and_read();
}

#[test]
fn a_server_takes_little_memory() {
    let Some(server) = versitygw() else { return };
    let dir = tempfile::tempdir().unwrap();
    let environment = server.environment(SECRET);
    Place { dir, url: "s3://bucket/log".to_string(), environment }.ship_and_read();
}
