//! Processes that append to a log and report the acknowledged records.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use vellum::{ErrorKind, Fill, Log, Lsn, Options, Tuning};
use vellum_testing::child::{Child, Role, command, die_with_parent, say};

use crate::ledger::{Ledger, record};

pub(crate) const ROLES: &[Role] = &[("writer", append_for_ever)];

/// A writer that is this many commits ahead of the shipped end waits for the shipper, for this long
/// at each further one. Otherwise a fast machine would write more than a bad server can ever take.
const AHEAD_MAX: usize = 500;
const WAIT: Duration = Duration::from_millis(20);

/// The kind of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Staged,
    Mapped,
    Text,
    /// A text log that removes its oldest files.
    Retaining,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::Staged, Kind::Mapped, Kind::Text];

impl Kind {
    fn options(self) -> Options {
        let framed = Options::events().tuning(Tuning::new().segment_capacity_bytes(1 << 18));
        match self {
            Kind::Staged => framed.tuning(Tuning::new().fill(Fill::Staged)),
            Kind::Mapped => framed.tuning(Tuning::new().fill(Fill::Mapped)),
            Kind::Text => Options::mapped_text().rotate_bytes(1 << 15),
            Kind::Retaining => Kind::Text.options().retain_bytes(1 << 16),
        }
    }

    pub(crate) fn open(self, dir: &Path) -> Log {
        self.options().open(dir).unwrap()
    }

    fn named(name: &str) -> Kind {
        *KINDS.iter().chain(&[Kind::Retaining]).find(|kind| format!("{kind:?}") == name).unwrap()
    }
}

/// In a second process: appends, commits each third record, and says how many are acknowledged.
fn append_for_ever(arguments: &[String]) {
    let [dir, kind, name, durability] = arguments else { panic!("four arguments") };
    let kind = Kind::named(kind);
    let log = kind.open(Path::new(dir));
    let mut ahead = VecDeque::new();
    let commit: fn(&Log, Lsn) -> vellum::Result<()> = match durability.as_str() {
        "remote" => |log, lsn| log.ship().commit(lsn),
        _ => Log::commit,
    };
    for number in 0.. {
        let lsn = log.append(record(name, number).as_bytes()).unwrap();
        if number % 3 != 2 {
            continue;
        }
        ahead.push_back(lsn);
        if ahead.len() > AHEAD_MAX && kind != Kind::Retaining {
            let _ = log.ship().wait(ahead.pop_front().unwrap(), Some(WAIT));
        }
        match commit(&log, lsn) {
            Ok(()) => say(&(number + 1).to_string()),
            // Without a shipper the log would grow as fast as the device allows.
            Err(error) if error.kind() == ErrorKind::NoShipper => log.sync().map(drop).unwrap(),
            Err(error) if is_ship_state(error.kind()) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn is_ship_state(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Fenced | ErrorKind::TimedOut)
}

/// A process that appends.
pub(crate) struct Writer {
    child: Child,
    name: String,
}

impl Writer {
    /// `durability` is `local` or `remote`: the promise of its acknowledgements.
    pub(crate) fn start(dir: &Path, kind: Kind, name: &str, durability: &str) -> Writer {
        let (dir, of_kind) = (dir.display().to_string(), format!("{kind:?}"));
        let mut command = command("writer", &[&dir, &of_kind, name, durability]);
        die_with_parent(&mut command);
        Writer { child: Child::from_command("writer", command), name: name.to_string() }
    }

    /// Notes what it has said by now.
    pub(crate) fn drain(&mut self, ledger: &mut Ledger) {
        while let Ok(Some(line)) = self.child.hears_within(Duration::ZERO) {
            ledger.acknowledge(&self.name, line.parse().unwrap());
        }
    }

    /// Waits for so many acknowledgements.
    #[track_caller]
    pub(crate) fn hear(&mut self, ledger: &mut Ledger, count: u64) {
        for _ in 0..count {
            let line = self.child.hears().expect("it goes on until it is killed");
            ledger.acknowledge(&self.name, line.parse().unwrap());
        }
    }

    /// Kills it, and notes what it had said.
    pub(crate) fn kill(self, ledger: &mut Ledger) {
        let said = self.child.kill_and_hear();
        said.iter().for_each(|line| ledger.acknowledge(&self.name, line.parse().unwrap()));
    }
}
