//! Systems in Java: each process of a round is a virtual machine of its own, which runs
//! `java/Peers.java`.
//!
//! The machine is warmed up before the clock starts: the same code has appended and read some ten
//! thousand records elsewhere. Its collector has no thread of its own, but its compiler has.
//!
//! | case | what it is |
//! |---|---|
//! | `chronicle-queue` | a queue in files that all processes map |
//! | `aeron-ipc` | messages in memory that all processes map; a media driver is beside them |

use std::path::{Path, PathBuf};

use vellum_bench::foreign::{Foreign, Job, Part, Prepared, Program};
use vellum_bench::{Error, Result};

mod machine;

use machine::Machine;

/// Where the libraries and the compiled program are; `make peers-java` puts them there.
const HOME_VARIABLE: &str = "VELLUM_PEERS_JAVA";
const HOME: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/peers-java");

const MISSING: &str = "Java 17 or the libraries are not there: `make peers-java` fetches them \
                       with Maven";
const REMARK: &str = "systems in Java need a processor for their compiler: where writers and \
                      readers spin on all processors, compare p50 and p90 and not what is beyond";

/// A system in Java.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Chronicle Queue.
    Chronicle,
    /// Aeron, through shared memory alone.
    AeronIpc,
}

impl System {
    /// Those whose records a reader can follow.
    pub const ALL: [System; 2] = [System::Chronicle, System::AeronIpc];

    /// The library from which the version is taken.
    fn library(self) -> &'static str {
        match self {
            System::Chronicle => "chronicle-queue",
            System::AeronIpc => "aeron-client",
        }
    }
}

impl Foreign for System {
    fn name(&self) -> &str {
        match self {
            System::Chronicle => "chronicle-queue",
            System::AeronIpc => "aeron-ipc",
        }
    }

    fn software(&self) -> Option<String> {
        version(&home(), self.library()).map(|version| format!("{} {version}", self.library()))
    }

    fn missing(&self) -> Option<String> {
        let is_there = home().join("classes").is_dir() && machine::is_there();
        (!is_there).then(|| MISSING.into())
    }

    fn remark(&self) -> Option<String> {
        Some(REMARK.into())
    }

    fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>> {
        let templates: Vec<u8> =
            (0..job.writers).flat_map(|writer| job.templates(writer)).collect();
        std::fs::write(job.dir.join("templates"), templates)
            .map_err(|error| Error::failed(format!("write the templates: {error}")))?;
        let mut round = Round { system: *self, job: job.clone(), driver: None };
        if *self != System::Chronicle {
            let mut driver = round.machine("drive", 0)?;
            driver.expect("ready")?;
            round.driver = Some(driver);
        }
        Ok(Box::new(round))
    }
}

fn home() -> PathBuf {
    std::env::var_os(HOME_VARIABLE).map_or_else(|| HOME.into(), PathBuf::from)
}

/// The version in the name of a library's file.
fn version(home: &Path, library: &str) -> Option<String> {
    let names = std::fs::read_dir(home).ok()?.flatten().map(|entry| entry.file_name());
    names.flat_map(|name| name.into_string()).find_map(|name| {
        let version = name.strip_prefix(library)?.strip_prefix('-')?.strip_suffix(".jar")?;
        Some(version.to_owned())
    })
}

struct Round {
    system: System,
    job: Job,
    /// Ends with the round.
    driver: Option<Machine>,
}

impl Round {
    /// A machine that does `role`.
    fn machine(&self, role: &str, index: u32) -> Result<Machine> {
        let job = &self.job;
        let path = |name: &str| job.dir.join(name).display().to_string();
        let spin = |spins| String::from(if spins { "spin" } else { "sleep" });
        let arguments = [
            self.system.name().into(),
            role.into(),
            job.dir.display().to_string(),
            path(&format!("samples-{index}")),
            path("templates"),
            index.to_string(),
            job.writers.to_string(),
            job.records.to_string(),
            job.bytes.to_string(),
            job.turns().to_string(),
            job.rate.unwrap_or(0).to_string(),
            spin(job.writers_spin),
            spin(job.reader_spins),
        ];
        Machine::start(&home(), &arguments, job.dir.join(format!("samples-{index}")))
    }
}

impl Prepared for Round {
    fn start(&self, part: Part) -> Result<Box<dyn Program>> {
        let mut machine = match part {
            Part::Writer(index) => self.machine("write", index),
            Part::Reader => self.machine("read", self.job.writers),
            Part::Checker => self.machine("check", self.job.writers),
        }?;
        machine.expect("ready")?;
        Ok(Box::new(machine))
    }
}
