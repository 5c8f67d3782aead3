//! A directory with logs, a store for them, and the command `vellum-ship` as a process.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use vellum::{Create, Log, Options};
use vellum_testing::child::die_with_parent;

use crate::support;
pub(crate) use crate::support::{good, text};

/// Where logs and copies of them are.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    url: String,
    environment: Vec<(String, String)>,
}

impl Place {
    /// The store is a directory beside the logs.
    pub(crate) fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("file://{}", dir.path().join("store").display());
        Place { dir, url, environment: Vec::new() }
    }

    /// The store is a server.
    pub(crate) fn at(url: &str, environment: Vec<(String, String)>) -> Place {
        Place { url: url.to_string(), environment, ..Place::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The command, which dies with the test.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-ship"));
        die_with_parent(command.args(words).envs(self.environment.iter().cloned()));
        command
    }

    pub(crate) fn ship(&self, log: &str, options: &[&str]) -> Output {
        let log = self.path(log).display().to_string();
        self.command(&["ship", &log, &self.url, "--once"]).args(options).output().unwrap()
    }

    pub(crate) fn spawn(&self, log: &str, options: &[&str]) -> Shipper {
        let complaints = self.path(&format!("{log}.complaints"));
        let log = self.path(log).display().to_string();
        let mut command = self.command(&["ship", &log, &self.url]);
        command.args(["--interval", "5ms", "--min-interval", "1ms"]).args(options);
        let stderr = Stdio::from(File::create(&complaints).unwrap());
        Shipper { process: command.stderr(stderr).spawn().unwrap(), complaints }
    }

    /// Into a directory of this name, whatever the layout.
    pub(crate) fn restore(&self, name: &str) -> Output {
        let copy = self.path(name).join("").display().to_string();
        self.command(&["restore", &self.url, &copy]).output().unwrap()
    }

    /// The records of a restored log, which is removed again.
    pub(crate) fn restored(&self) -> Vec<Vec<u8>> {
        good(&self.restore("copy"));
        let copy = self.path("copy");
        let all = records(&Options::default().create(Create::Never).open(&copy).unwrap());
        std::fs::remove_dir_all(copy).unwrap();
        all
    }

    pub(crate) fn copy(&self, from: &str, to: &str) {
        support::copy(&self.path(from), &self.path(to));
    }
}

/// A shipper that runs until it is killed.
pub(crate) struct Shipper {
    process: Child,
    complaints: PathBuf,
}

impl Shipper {
    /// Its output, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.process.try_wait().unwrap().map(|_| self.said())
    }

    pub(crate) fn said(&self) -> String {
        let mut text = String::new();
        File::open(&self.complaints).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Shipper {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn records(log: &Log) -> Vec<Vec<u8>> {
    support::records_of(log, true)
}

pub(crate) fn records_in(dir: &Path) -> Vec<Vec<u8>> {
    records(&Options::default().create(Create::Never).open(dir).unwrap())
}
