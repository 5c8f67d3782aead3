//! One Java virtual machine, and the line to it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use vellum_bench::foreign::Program;
use vellum_bench::{Error, Result};

/// The options that the documentation of Chronicle Queue lists for Java 17.
const EXPORTS: [&str; 4] = [
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "jdk.unsupported/sun.misc",
    "jdk.compiler/com.sun.tools.javac.file",
];
const OPENS: [&str; 6] = [
    "jdk.compiler/com.sun.tools.javac",
    "java.base/java.lang",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.util",
    "java.base/sun.nio.ch",
];
/// One thread less than with another collector, memory for all samples, no reports to the vendor.
const OPTIONS: [&str; 5] = [
    "-XX:+UseSerialGC",
    "-Xms256m",
    "-XX:MaxDirectMemorySize=2g",
    "-Dchronicle.analytics.disable=true",
    "-Dchronicle.disk.monitor.disable=true",
];

/// Whether there is a `java` to be run.
pub(super) fn is_there() -> bool {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    *IS_THERE.get_or_init(|| {
        let answer = Command::new("java").arg("-version").stderr(Stdio::null()).status();
        answer.is_ok_and(|status| status.success())
    })
}

/// A machine that runs. It ends by itself when its line does.
pub(super) struct Machine {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    samples: PathBuf,
    /// The file of its output.
    said: PathBuf,
}

impl Machine {
    pub(super) fn start(home: &Path, arguments: &[String], samples: PathBuf) -> Result<Machine> {
        let said = samples.with_extension("said");
        let start = || -> std::io::Result<Child> {
            Command::new("java")
                .args(EXPORTS.map(|name| format!("--add-exports={name}=ALL-UNNAMED")))
                .args(OPENS.map(|name| format!("--add-opens={name}=ALL-UNNAMED")))
                .args(OPTIONS)
                .arg("-cp")
                .arg(format!("{0}/classes:{0}/*", home.display()))
                .arg("Peers")
                .args(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(File::create(&said)?)
                .spawn()
        };
        let mut child = start().map_err(|error| Error::failed(format!("start java: {error}")))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let (Some(to), Some(from)) = (to, from) else { unreachable!("both are pipes") };
        Ok(Machine { child, to, from: BufReader::new(from), samples, said })
    }

    /// Waits until it says `word`.
    pub(super) fn expect(&mut self, word: &str) -> Result<()> {
        let mut line = String::new();
        let read = self.from.read_line(&mut line);
        match read {
            Ok(_) if line.trim_end() == word => Ok(()),
            _ => Err(Error::failed(format!("{} (in place of \"{word}\")", self.complaint()))),
        }
    }

    /// The exception that it ended with.
    fn complaint(&self) -> String {
        let said = std::fs::read_to_string(&self.said).unwrap_or_default();
        let exception = said.lines().find(|line| line.contains("Exception"));
        let last = exception.or_else(|| said.lines().last());
        format!("java said: {}", last.unwrap_or("nothing"))
    }
}

impl Program for Machine {
    fn run(&mut self, start_ns: u64) -> Result<()> {
        writeln!(self.to, "{start_ns}")
            .map_err(|error| Error::failed(format!("{}: {error}", self.complaint())))?;
        self.expect("done")
    }

    fn latencies(mut self: Box<Self>) -> Result<Vec<u64>> {
        self.expect("written")?;
        let bytes = std::fs::read(&self.samples)
            .map_err(|error| Error::failed(format!("read the samples: {error}")))?;
        let samples = bytes.chunks_exact(8).filter_map(|chunk| chunk.try_into().ok());
        Ok(samples.map(u64::from_le_bytes).collect())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
