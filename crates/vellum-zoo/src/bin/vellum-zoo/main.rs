//! `vellum-zoo`: shows a disk with a known fault to the kernel, until it is told to end.

mod beside;
mod judge;
mod keeper;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser};
use vellum_zoo::animal::{Parameter, SPECIES, TIMES};
use vellum_zoo::filesystem::Filesystem;
use vellum_zoo::{Animal, Missing};

/// The disk could not be made.
const CANNOT_RUN: u8 = 2;
/// This machine lacks something.
const MACHINE_CANNOT: u8 = 77;

/// Disks with known faults, to test programs against.
#[derive(Debug, Parser)]
#[command(
    name = "vellum-zoo",
    after_help = "Exit status: 0, 2 could not run, 77 this machine \
                                             cannot do it."
)]
enum Arguments {
    /// List the animals and what each can be told.
    List,
    /// Make a disk, and keep it until SIGINT or SIGTERM.
    ///
    /// SIGUSR1 cuts the power: the image has then what a power cut leaves, the filesystem is
    /// unmounted, the power comes back, and it is mounted again. Standard output says the device,
    /// the mount point and each cut.
    Run(RunArguments),
    /// Ask `vellum doctor` of each animal, and of sound disks: does it name what is wrong?
    ///
    /// Each animal is looked at first: is it as slow as it says? Then the doctor writes on a new
    /// one, behind ext4. Prints for each disk what was expected, what was named, the verdict, the
    /// time, what was seen without the doctor, and the line to paste.
    #[command(after_help = "Exit status: 0 at least 11 of 12 animals are right and there is no \
                            false alarm, 1 not so, 2 could not run, 77 this machine cannot do it.")]
    Judge(judge::JudgeArguments),
    /// Measure p99 of commits alone, beside a neighbour, and beside one in a control group with a
    /// limit, as `vellum doctor --iocost` prints it. Needs root and control groups of version 1.
    Beside(beside::BesideArguments),
    /// Ask fio, pg_test_fsync, `etcdctl check perf` and `vellum doctor` of each disk of the zoo, of
    /// a sound one and of one of this machine.
    ///
    /// Each gets the disk anew. Prints a table: what the disk is for etcd, what each tool says, and
    /// which are wrong. A tool that is not installed is told, and left out.
    Tools(judge::ToolsArguments),
    /// Be the neighbour of `beside`, until standard input ends.
    #[command(hide = true)]
    Neighbour(beside::NeighbourArguments),
    /// Serve a disk for `run`, which says by standard input when the power goes, and when it ends.
    #[command(hide = true)]
    Serve(RunArguments),
}

#[derive(Args, Clone, Debug)]
struct RunArguments {
    /// The animal, or several with + between them: slow-flush+forgets.
    animal: String,
    /// What the animals are told.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// What decides the times and the cuts.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The medium; made with --size if it is not there. It takes no more space than is written.
    #[arg(long, value_name = "IMAGE")]
    file: PathBuf,
    /// Bytes of a new medium: 512M, 1G.
    #[arg(long, value_parser = size)]
    size: Option<u64>,
    /// Make this filesystem on it before.
    #[arg(long, value_name = "ext4|xfs|btrfs", requires = "mount")]
    mkfs: Option<Filesystem>,
    /// Mount it here.
    #[arg(long, value_name = "DIR")]
    mount: Option<PathBuf>,
    /// The filesystem of a medium that has one.
    #[arg(long, value_name = "ext4|xfs|btrfs", conflicts_with = "mkfs", requires = "mount")]
    fs: Option<Filesystem>,
}

impl RunArguments {
    fn animal(&self) -> anyhow::Result<Animal> {
        let parameters: Vec<&str> = self.parameters.iter().map(String::as_str).collect();
        Animal::new(&self.animal, &parameters, self.seed).map_err(anyhow::Error::msg)
    }

    fn filesystem(&self) -> Option<Filesystem> {
        self.mkfs.or(self.fs)
    }
}

fn size(text: &str) -> Result<u64, String> {
    let (number, factor) = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((number, "M")) => (number, 1 << 20),
        Some((number, "G")) => (number, 1 << 30),
        _ => (text, 1),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes.ok_or_else(|| format!("\"{text}\" is no size; write 512M or 1G"))
}

fn main() -> ExitCode {
    let result = match Arguments::parse() {
        Arguments::List => {
            list();
            Ok(0)
        }
        Arguments::Run(arguments) => keeper::run(&arguments),
        Arguments::Judge(arguments) => judge::run(&arguments),
        Arguments::Tools(arguments) => judge::tools(&arguments).map(|()| 0),
        Arguments::Beside(arguments) => beside::run(&arguments).map(|()| 0),
        Arguments::Neighbour(arguments) => beside::neighbour(&arguments).map(|()| 0),
        Arguments::Serve(arguments) => show::serve(&arguments).map(|()| 0),
    };
    ExitCode::from(result.unwrap_or_else(|error: anyhow::Error| {
        eprintln!("vellum-zoo: {error:#}");
        if error.is::<Missing>() { MACHINE_CANNOT } else { CANNOT_RUN }
    }))
}

fn list() {
    let told = |parameters: &[Parameter]| {
        for Parameter { name, default, what, .. } in parameters {
            println!("{:<16}   {:<22} {what}", "", format!("{name}={default}"));
        }
    };
    for species in SPECIES {
        println!("{:<16} {}", species.name, species.what);
        told(species.parameters);
    }
    println!("What takes time can be told for which part of the time:");
    told(TIMES);
}
