//! A process of a campaign: it enters its worlds, works on the log, and reports the promises to it.
//!
//! In worlds with forks it becomes two processes, with a side each: a letter, under which it
//! reports and appends. The operations of a side before it lingers are its share; it keeps the log
//! open until its standard input ends, so that the campaign notices when it blocks others.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, bail};
use clap::Args;
use vellum::Log;

use super::enter::enter;
use super::operations::Side;
use super::report::{Report, say};
use super::shape::Shape;
use super::sys::{self, End};
use super::table::{self, First, Kind, World};
use crate::random::Random;

/// The arguments of a worker.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkerArgs {
    /// The directory of the campaign.
    #[arg(long)]
    pub(crate) base: PathBuf,
    #[arg(long)]
    pub(crate) log: PathBuf,
    #[arg(long)]
    pub(crate) worker: usize,
    #[arg(long)]
    pub(crate) worlds: String,
    #[arg(long)]
    pub(crate) shape: Shape,
    #[arg(long)]
    pub(crate) seed: u64,
    /// How many operations each of its sides does.
    #[arg(long)]
    pub(crate) operations: u32,
    /// Works alone, and truncates the log.
    #[arg(long)]
    pub(crate) alone: bool,
    /// Was another program before, which had appended so many records.
    #[arg(long)]
    pub(crate) after: Option<u32>,
}

/// Lives a worker's life.
pub(crate) fn run(args: &WorkerArgs) -> anyhow::Result<()> {
    let worlds = table::find_all(&args.worlds).map_err(anyhow::Error::msg)?;
    let mut random = Random::new(args.seed);
    if args.after.is_none() {
        enter(&worlds, args.worker, &args.base, &mut random)
            .with_context(|| format!("cannot enter {}", args.worlds))?;
    }
    let life = Life { args, worlds, seed: random.next_u64() };
    if args.alone || args.after.is_some() {
        return life.plain(0);
    }
    match life.worlds.iter().find(|world| world.kind.area() == table::Area::Life) {
        None => life.plain(0),
        Some(world) => match world.kind {
            Kind::ForkBefore(first) => life.forked(first, false),
            Kind::ForkAfter(first) => life.forked(first, true),
            Kind::ForkOften => life.fork_often(),
            _ => life.exec(),
        },
    }
}

/// The letter of a side: of the process itself (0), or of one that it forked.
pub(crate) fn letter(worker: usize, fork: usize) -> char {
    char::from(b'a' + (2 * worker + fork.min(1)) as u8)
}

struct Life<'a> {
    args: &'a WorkerArgs,
    worlds: Vec<&'static World>,
    seed: u64,
}

impl Life<'_> {
    /// A side that does all of its share.
    fn plain(&self, fork: usize) -> anyhow::Result<()> {
        let mut side = self.begin(fork);
        let log = self.open(&mut side);
        if self.args.alone {
            log.iter().for_each(|log| side.truncate(log));
        }
        log.iter().for_each(|log| side.work(log, self.args.operations));
        self.linger(&side);
        Ok(())
    }

    fn begin(&self, fork: usize) -> Side {
        let letter = letter(self.args.worker, fork);
        say(letter, &Report::Begun);
        Side::new(letter, self.args, self.seed.wrapping_add(fork as u64))
    }

    /// Opens the log; an error is reported.
    fn open(&self, side: &mut Side) -> Option<Log> {
        let relative = Path::new(self.args.log.file_name()?);
        let is_relative = table::has(&self.worlds, Kind::Relative);
        if is_relative {
            let parent = self.args.log.parent()?;
            std::env::set_current_dir(parent).expect("the parent of the log can be entered");
        }
        let path = if is_relative { relative } else { &self.args.log };
        let mut options = self.args.shape.options();
        if table::has(&self.worlds, Kind::Group) {
            options = options.mode(0o660);
        }
        let log = side.attempt("open", options.open(path));
        if is_relative {
            std::env::set_current_dir("/").expect("the root can be entered");
        }
        if log.is_some() {
            if let Some(recovery) = log.as_ref().and_then(Log::recovery) {
                say(side.letter, &Report::Recovered(recovery.from.get()));
            }
            say(side.letter, &Report::Opened);
        }
        log
    }

    /// Reports that its share is done, and keeps its holds until it is ended.
    fn linger(&self, side: &Side) {
        say(side.letter, &Report::Done);
        // Whatever ends the wait lets it go.
        let _ = io::stdin().lock().read(&mut [0]);
    }

    /// Two processes, of which `first` closes the log before the other continues.
    fn forked(&self, first: First, opens_before: bool) -> anyhow::Result<()> {
        // Before the log takes the last descriptors that the world allows.
        let (mut turn, closing) = io::pipe()?;
        let mut side = self.begin(0);
        let mut log = None;
        if opens_before {
            log = self.open(&mut side);
            log.iter().for_each(|log| side.work(log, self.args.operations / 2));
            log.iter().for_each(|log| side.commit(log));
        }
        let child = sys::fork_both()?;
        let me = if child.is_none() { First::Child } else { First::Parent };
        if me == First::Child {
            side = self.begin(1);
        }
        let log = log.or_else(|| self.open(&mut side));
        // Whether it attaches at once, or only after the other has gone.
        if side.random.below(2) == 0 {
            log.iter().for_each(|log| side.work(log, 4));
        }
        if me == first {
            drop((turn, log, closing));
        } else {
            drop(closing);
            let _ = turn.read(&mut [0]);
            log.iter().for_each(|log| side.work(log, self.args.operations));
        }
        match child {
            None => {
                self.linger(&side);
                std::process::exit(0)
            }
            Some(child) => self.linger_beside(&side, child),
        }
    }

    /// As [`linger`](Life::linger), and notices if the child dies: no other process does.
    fn linger_beside(&self, side: &Side, child: libc::pid_t) -> anyhow::Result<()> {
        say(side.letter, &Report::Done);
        let mut ended = None;
        while !sys::can_read(io::stdin().as_fd(), 20) && ended.is_none() {
            ended = sys::has_ended(child);
        }
        let end = ended.map_or_else(|| sys::wait_for(child), Ok)?;
        // The world may have taken the memory away that the child's own work needed.
        let starves = table::has(&self.worlds, Kind::Memory) && end == End::Killed(libc::SIGABRT);
        if end != End::Exited(0) && !starves {
            bail!("a forked child ended by {end:?}");
        }
        say(letter(self.args.worker, 1), &Report::Done);
        let _ = io::stdin().lock().read(&mut [0]);
        Ok(())
    }

    /// Children that are made while another thread opens and closes, and that live on.
    fn fork_often(&self) -> anyhow::Result<()> {
        let mut side = self.begin(0);
        let log = self.open(&mut side);
        let is_over = AtomicBool::new(false);
        let children = thread::scope(|scope| {
            scope.spawn(|| {
                let mut opener = self.quiet();
                while !is_over.load(Ordering::Relaxed) {
                    drop(opener.attempt("open", self.args.shape.options().open(&self.args.log)));
                }
            });
            let children: Vec<_> =
                (0..4).map(|fork| sys::fork(|| self.forked_often(fork))).collect();
            is_over.store(true, Ordering::Relaxed);
            children
        });
        log.iter().for_each(|log| side.work(log, self.args.operations));
        self.linger(&side);
        drop(log);
        children.into_iter().try_for_each(|child| reap(child?))
    }

    /// The first appends, the others only inherit.
    fn forked_often(&self, fork: usize) -> i32 {
        match fork {
            0 => i32::from(self.plain(1).is_err()),
            _ => i32::from(io::stdin().lock().read(&mut [0]).is_err()),
        }
    }

    /// A side that only opens.
    fn quiet(&self) -> Side {
        Side::new(letter(self.args.worker, 0), self.args, 0)
    }

    /// Becomes another program in the middle.
    fn exec(&self) -> anyhow::Result<()> {
        let mut side = self.begin(0);
        let Some(log) = self.open(&mut side) else {
            self.linger(&side);
            return Ok(());
        };
        side.work(&log, self.args.operations / 2);
        let mut words = self.args.words();
        words.extend(["--after".to_string(), side.number.to_string()]);
        let error = Command::new("/proc/self/exe").args(words).exec();
        Err(error).context("cannot become another program")
    }
}

impl WorkerArgs {
    /// As they are given to a program.
    pub(crate) fn words(&self) -> Vec<String> {
        let WorkerArgs { base, log, worker, worlds, shape, seed, operations, .. } = self;
        let words = format!(
            "worker --worker {worker} --worlds {worlds} --shape {shape} --seed {seed} \
             --operations {operations}"
        );
        let mut words: Vec<String> = words.split(' ').map(String::from).collect();
        for (name, path) in [("--base", base), ("--log", log)] {
            words.extend([name.to_string(), path.display().to_string()]);
        }
        if self.alone {
            words.push("--alone".into());
        }
        words
    }
}

/// Waits for a child, and ends as badly as it did.
fn reap(child: libc::pid_t) -> anyhow::Result<()> {
    match sys::wait_for(child)? {
        End::Exited(0) => Ok(()),
        end => bail!("a forked child ended by {end:?}"),
    }
}
