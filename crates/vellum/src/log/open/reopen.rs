//! Opening a log again that was removed or moved.
//!
//! This joins what is at the path, or makes a log like the old one. A directory that is still at
//! the path but has lost `lock`, as in the middle of `rm -rf`, is renamed first: so processes that
//! have not noticed yet write to files that the new log does not have. The process that renames it
//! holds a lock on that very directory, so no process renames a log that another has made in its
//! place.
//!
//! **If the process dies here**: renamed files stay so, and the next one finds no log at the path
//! and makes it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rustix::fs::{self, FileType};

use crate::files::names::LOCK_NAME;
use crate::log::layout::text::policy;
use crate::log::open::enter;
use crate::log::state::core::Core;
use crate::log::state::identity;
use crate::log::state::newest::{FileMatch, file_match};
use crate::log::state::place;
use crate::log::state::watch::Files;
use crate::options::policy::PolicyUpdate;
use crate::sys::clock;
use crate::{Create, Error, ErrorKind, Options, Result, Tuning};

/// How often to open again what others remove or make meanwhile, and how long to wait in between
/// once that has failed a few times.
const TRIES: usize = 200;
const QUICK_TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(5);
/// Bytes of the longest name that Linux takes.
const NAME_LEN_MAX: usize = 255;

/// Whether the directory is at its path, and `lock` is gone.
fn is_half_removed(core: &Core) -> bool {
    let is_gone = |files: Files| file_match(core, LOCK_NAME, files.lock) == FileMatch::Missing;
    core.watch.files.is_some_and(is_gone) && core.files.dir.is_at_path()
}

/// Gives the rest of this log at its path another name. A file that cannot be renamed stays: then
/// opening returns the error.
fn make_way(core: &Core) {
    if !is_half_removed(core) {
        return;
    }
    let Ok(_lock) = core.files.dir.lock() else { return };
    if !is_half_removed(core) {
        return;
    }
    let path = core.files.dir.absolute_path();
    let is_directory =
        fs::lstat(path).is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Directory);
    let Some(name) = path.file_name().filter(|_| is_directory) else { return };
    let mark = format!(".removed-{}-{}", clock::seconds(), std::process::id());
    let kept = name.as_bytes().len().min(NAME_LEN_MAX - mark.len());
    let mut aside = OsStr::from_bytes(&name.as_bytes()[..kept]).to_os_string();
    aside.push(mark);
    let aside = path.with_file_name(aside);
    if fs::rename(path, &aside).is_ok() {
        // Goes if there is nothing in it.
        let _ = fs::rmdir(&aside);
    }
}

/// Opens the log at the path of `core` again; where there is none, one that is like it is made,
/// unless `core` was opened for reading.
pub(crate) fn reopen(core: &Core) -> Result<Core> {
    let makes = !core.choices.options.read_only;
    let mut failure = None;
    for turn in 0..TRIES {
        if turn >= QUICK_TRIES {
            std::thread::sleep(PAUSE);
        }
        match open_once(core, makes, turn + 1 == TRIES) {
            // Others may have removed or renamed what was being opened.
            Ok(mut opened) => match place::require(&opened) {
                Ok(()) => {
                    opened.choices.options.clone_from(&core.choices.options);
                    return Ok(opened);
                }
                Err(error) => failure = Some(error),
            },
            Err(error) if makes && is_passing(&error) => failure = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(failure.unwrap_or_else(|| Error::new(ErrorKind::NotFound, "there is no log")))
}

fn open_once(core: &Core, makes: bool, is_last: bool) -> Result<Core> {
    if makes {
        make_way(core);
    }
    let path = core.files.dir.absolute_path();
    match enter::open_in(path, &joining(core)) {
        // No log is made in a directory that a process may be emptying, unless it stays as it is.
        Err(error)
            if makes
                && error.kind() == ErrorKind::NotFound
                && (is_last || !core.files.dir.is_at_path()) =>
        {
            enter::open_in(path, &making(core))
        }
        answer => answer,
    }
}

/// Whether another try may succeed: another process removes or makes the log.
fn is_passing(error: &Error) -> bool {
    use ErrorKind::{AlreadyExists, Busy, Corrupt, NotFound, Removed};
    matches!(error.kind(), AlreadyExists | Busy | Corrupt | NotFound | Removed)
}

/// Takes a log as it is.
fn joining(core: &Core) -> Options {
    let options = &core.choices.options;
    Options {
        layout: Some(core.files.geometry.layout),
        fill_of_kind: None,
        tuning: Tuning {
            segment_capacity_bytes: None,
            preallocate: None,
            fill: None,
            ..options.tuning.clone()
        },
        envelope: None,
        create: Create::Never,
        needs_lock: true,
        policy: PolicyUpdate::default(),
        ..(**options).clone()
    }
}

/// Makes a log like the one that is gone.
fn making(core: &Core) -> Options {
    let geometry = &core.files.geometry;
    let joining = joining(core);
    Options {
        tuning: Tuning {
            segment_capacity_bytes: Some(geometry.segment_capacity),
            preallocate: Some(geometry.preallocate),
            fill: Some(geometry.fill),
            ..joining.tuning
        },
        envelope: Some(geometry.has_envelope),
        mode: core.choices.options.mode.or(Some(core.files.rights.mode)),
        create: Create::New,
        needs_lock: false,
        application_tag: identity::current(core)
            .map(|identity| identity.tag)
            .filter(|tag| *tag != 0),
        policy: match geometry.layout.rotates() {
            true => PolicyUpdate::of(policy::of(core)),
            false => PolicyUpdate {
                retain_bytes: policy::of(core).retain_bytes,
                retain_age: policy::of(core).retain_age,
                ..PolicyUpdate::default()
            },
        },
        ..joining
    }
}
