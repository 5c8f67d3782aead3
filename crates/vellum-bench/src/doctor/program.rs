//! How programs write, and what they ask of a disk: pages of data, one for each program.
//!
//! A new program is a file in `programs/` and a line in [`PAGES`]. What to do about a cause is in
//! `remedies.toml`, unless a program has a line of its own for it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::error::{Error, Result};
use crate::names::{as_name, named};

/// The pages, in the order in which help lists them.
const PAGES: [&str; 8] = [
    include_str!("programs/etcd.toml"),
    include_str!("programs/postgres.toml"),
    include_str!("programs/kafka.toml"),
    include_str!("programs/sqlite.toml"),
    include_str!("programs/nats.toml"),
    include_str!("programs/redis.toml"),
    include_str!("programs/mysql.toml"),
    include_str!("programs/vellum.toml"),
];
const REMEDIES: &str = include_str!("remedies.toml");
/// A program that is described by options is called so.
pub const CUSTOM: &str = "custom";
/// More than so much of a limit is marginal, and more than so often the limit is not good enough.
const CUSTOM_BAD: f64 = 2.0;
const CUSTOM_FILE_BYTES: u64 = 16 << 20;

/// A program that writes to a disk, and waits for it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// As it is asked for.
    pub name: String,
    /// What of it waits for the disk.
    pub about: String,
    /// Where it is written that it writes so.
    pub source: String,
    /// How it writes.
    pub pattern: Pattern,
    /// What it asks of the disk.
    #[serde(rename = "limit")]
    pub limits: Vec<Limit>,
    /// What to change about a cause, in its words; `any` for those that are not named.
    #[serde(default)]
    pub change: BTreeMap<String, String>,
}

/// How a program writes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// How much at a time.
    pub bytes: u64,
    /// What the file is before it is written.
    pub file: FileState,
    /// When the next file begins.
    pub file_bytes: u64,
    /// What gets it onto the device.
    pub sync: SyncCall,
    /// For [`SyncCall::Periodic`], how often.
    #[serde(default)]
    pub sync_every_ms: u64,
    /// How many threads write, each to a file of its own.
    #[serde(default = "one")]
    pub threads: u32,
    /// How many writes a second come, all threads together; as fast as it goes if not set.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Where this pace is from.
    #[serde(default)]
    pub rate_source: String,
    /// Has each record a write of its own? Otherwise those that have come share one.
    #[serde(default)]
    pub alone: bool,
}

fn one() -> u32 {
    1
}

named! {
    /// What a file is before it is written.
    pub enum FileState, "is not a state of a file" {
        /// Empty: it grows.
        Growing = "growing",
        /// Its blocks are allocated.
        Allocated = "allocated",
        /// It was written before.
        Written = "written",
    }
}

named! {
    /// What gets a write onto the device.
    pub enum SyncCall, "is not a way to sync" {
        /// `fdatasync` after each.
        Fdatasync = "fdatasync",
        /// `fsync` after each.
        Fsync = "fsync",
        /// The write itself, by `O_DSYNC`.
        ODsync = "o-dsync",
        /// The write itself, by `O_DIRECT` and `O_DSYNC`.
        ODirectDsync = "o-direct-dsync",
        /// `fdatasync` by another thread, once in a while.
        Periodic = "periodic",
    }
}

named! {
    /// A figure that has a limit.
    pub enum Figure, "is not a figure" {
        /// Half of the writes take no longer.
        P50 = "p50",
        /// 99 of a hundred writes.
        P99 = "p99",
        /// 999 of a thousand.
        P999 = "p99.9",
        /// The longest.
        Max = "max",
        /// 99 of a hundred flushes by another thread.
        FlushP99 = "flush-p99",
        /// The longest of them.
        FlushMax = "flush-max",
    }
}

as_name!(FileState, SyncCall, Figure);

/// What a program asks of a disk.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Of what.
    pub figure: Figure,
    /// Up to here it is good.
    pub good_ms: f64,
    /// Beyond this it is not good enough.
    pub bad_ms: f64,
    /// Where this is from.
    pub source: String,
}

impl Program {
    /// All that have a page.
    ///
    /// # Errors
    ///
    /// None in practice: a test reads all pages.
    pub fn all() -> Result<Vec<Program>> {
        PAGES.into_iter().map(parsed).collect()
    }

    /// The one of this name.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn named(name: &str) -> Result<Program> {
        let programs = Program::all()?;
        let names: Vec<&str> = programs.iter().map(|program| program.name.as_str()).collect();
        let unknown = || {
            let names = names.join(", ");
            Error::invalid(format!("\"{name}\" is not a program; there are {names}"))
        };
        let place = names.iter().position(|known| *known == name).ok_or_else(unknown)?;
        Ok(programs[place].clone())
    }

    /// One of which only this is known: so many records a second (as fast as it goes without a
    /// rate), so long, durable within `p99_ms` after they came.
    pub fn custom(rate: Option<f64>, bytes: u64, p99_ms: f64) -> Program {
        let limit = Limit {
            figure: Figure::P99,
            good_ms: p99_ms,
            bad_ms: p99_ms * CUSTOM_BAD,
            source: "as asked for".into(),
        };
        let pattern = Pattern {
            bytes,
            file: FileState::Written,
            file_bytes: CUSTOM_FILE_BYTES.max(bytes.saturating_mul(2)),
            sync: SyncCall::Fdatasync,
            sync_every_ms: 0,
            threads: 1,
            rate,
            rate_source: "as asked for".into(),
            alone: false,
        };
        Program {
            name: CUSTOM.into(),
            about: "records that come together share a write and a flush".into(),
            source: "the options of the command".into(),
            pattern,
            limits: vec![limit],
            change: BTreeMap::new(),
        }
    }

    /// Does it wait for the disk at each write?
    pub(super) fn waits(&self) -> bool {
        self.pattern.sync != SyncCall::Periodic
    }

    /// The line that helps against `cause` on a disk of `cloud`, with places to fill in.
    pub(super) fn change_for(&self, cause: Option<Cause>, cloud: Option<&str>) -> Option<String> {
        let own = |name: &str| self.change.get(name).cloned();
        let named = cause.and_then(|cause| own(cause.as_str()));
        let of_cloud = || cause.zip(cloud).and_then(|(cause, cloud)| remedy_of(cause, cloud));
        // What the system has to say comes before what the program could do in general.
        let general = || cause.filter(|cause| !cause.is_plain()).and_then(remedy);
        let first = named.or_else(of_cloud).or_else(general);
        first.or_else(|| own("any")).or_else(|| cause.and_then(remedy))
    }
}

impl Cause {
    /// Is it the disk as it is, so that only the program can do something about it?
    fn is_plain(self) -> bool {
        matches!(
            self,
            Cause::SlowFlush
                | Cause::SlowDevice
                | Cause::NoFua
                | Cause::Jitter
                | Cause::BudgetEnds
                | Cause::Throttle
        )
    }
}

/// What helps against `cause` whatever the program.
fn remedy(cause: Cause) -> Option<String> {
    let remedies: BTreeMap<String, String> = toml::from_str(REMEDIES).ok()?;
    remedies.get(cause.as_str()).cloned()
}

/// What helps on a disk of `cloud`.
fn remedy_of(cause: Cause, cloud: &str) -> Option<String> {
    let remedies: BTreeMap<String, String> = toml::from_str(REMEDIES).ok()?;
    remedies.get(&format!("{cause}/{cloud}")).cloned()
}

fn parsed(page: &str) -> Result<Program> {
    toml::from_str(page).map_err(|error| Error::failed(format!("a page of a program: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_makes_sense() {
        let programs = Program::all().unwrap();
        for program in &programs {
            let Pattern { bytes, file_bytes, sync, sync_every_ms, rate, .. } = program.pattern;
            assert!(rate.is_some() && !program.pattern.rate_source.is_empty(), "{program:?}");
            assert!(bytes > 0 && file_bytes >= 100 * bytes, "{program:?}");
            assert_eq!(sync == SyncCall::Periodic, sync_every_ms > 0, "{program:?}");
            assert!(!program.source.is_empty() && !program.limits.is_empty());
            for limit in &program.limits {
                assert!(limit.good_ms < limit.bad_ms && !limit.source.is_empty(), "{limit:?}");
            }
            for name in program.change.keys().filter(|name| *name != "any") {
                assert!(name.parse::<Cause>().is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn there_is_a_remedy_for_each_cause_and_none_for_others() {
        let remedies: BTreeMap<String, String> = toml::from_str(REMEDIES).unwrap();
        let (of_clouds, general): (Vec<&String>, Vec<&String>) =
            remedies.keys().partition(|name| name.contains('/'));
        assert_eq!(general.len(), Cause::ALL.len());
        let cause = |name: &str| name.split('/').next().unwrap().parse::<Cause>();
        assert!(general.into_iter().chain(of_clouds).all(|name| cause(name).is_ok()));
    }

    #[test]
    fn a_line_of_the_program_comes_before_the_general_one() {
        let postgres = Program::named("postgres").unwrap();
        let change = |cause| postgres.change_for(cause, None).unwrap();
        assert!(change(Some(Cause::CopyOnWrite)).contains("wal_recycle"));
        assert!(change(Some(Cause::DataJournal)).contains("tune2fs"));
        assert!(change(None).contains("initdb"));
        let budget = |cloud| postgres.change_for(Some(Cause::BudgetEnds), cloud).unwrap();
        assert!(budget(Some("aws")).contains("modify-volume"));
        assert!(budget(None).contains("initdb"), "no line of a cloud for a disk of this machine");
        assert!(Program::named("oracle").unwrap_err().to_string().contains("etcd, postgres"));
    }
}
