//! The memory of the commands while a lot passes through them, at its peak.

use std::process::Command;

use vellum::{Log, Lsn, Options};

use crate::server::{SECRET, versitygw};

const SHIP: &str = env!("CARGO_BIN_EXE_vellum-ship");
/// What `docs/shipping.md` promises.
const MOST_MIB: u64 = 100;
/// What passes through.
const LOG_MIB: usize = 256;

/// Runs a command and prints the most memory that it had, in kibibytes.
const PEAK: &str = "import resource, subprocess, sys; \
     done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); \
     print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); \
     sys.exit(done.returncode)";

struct Place {
    dir: tempfile::TempDir,
    url: String,
    environment: Vec<(String, String)>,
}

impl Place {
    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Fails if the command fails, or takes too much memory.
    fn run(&self, arguments: &[&str]) {
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        let mut command = Command::new("python3");
        command.arg("-c").arg(PEAK).arg(SHIP).args(arguments).envs(environment);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let peak: u64 = String::from_utf8_lossy(&done.stdout).trim().parse().unwrap();
        assert!(peak < MOST_MIB << 10, "{arguments:?}: {} MiB", peak >> 10);
    }

    fn ship_and_read(&self) {
        let log = Options::new().open(self.path("log")).unwrap();
        fill(&log);
        drop(log);
        self.run(&["ship", &self.path("log"), &self.url, "--once"]);
        std::fs::remove_dir_all(self.path("log")).unwrap();
        self.run(&["restore", &self.url, &self.path("copy")]);
        let log = Options::new().create(false).open(self.path("copy")).unwrap();
        assert!(log.durable() >= Lsn::new((LOG_MIB as u64) << 20));
        self.run(&["verify", &self.url]);
        self.run(&["cat", &self.url]);
    }
}

/// Half of it shrinks: both kinds of buffers are used.
fn fill(log: &Log) {
    let (mut state, mut record) = (1_u64, vec![b'x'; 64 << 10]);
    for number in 0..LOG_MIB * 16 {
        let random = if number / 256 % 2 == 0 { record.len() } else { record.len() / 8 };
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
