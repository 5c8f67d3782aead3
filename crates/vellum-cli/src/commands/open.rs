//! Opening the log that a command is about, with the options that the user gave.

use std::path::Path;

use vellum::{Create, ErrorKind, Layout, Log, Options, Tuning};
use vellum_command::outcome::Result;

use crate::args::{PolicyArgs, ShapeArgs};

/// Options for a log of this layout; without one, for the log that is there. A new text log is at
/// the path of a file, which people give to other programs.
pub(super) fn of(layout: Option<Layout>) -> Options {
    match layout {
        None => Options::default(),
        Some(Layout::Text) => Options::text().file_link(true),
        Some(_) => Options::events(),
    }
}

/// `options` with the choices of the user: the rest is the log's, or as it was.
pub(super) fn shaped(mut options: Options, shape: &ShapeArgs) -> Options {
    let mut tuning = Tuning::new();
    if let Some(bytes) = shape.segment_bytes {
        tuning = tuning.segment_capacity_bytes(bytes);
    }
    if let Some(preallocate) = shape.preallocate {
        tuning = tuning.preallocate(preallocate);
    }
    if let Some(fill) = shape.fill {
        tuning = tuning.fill(fill);
    }
    options = options.tuning(tuning);
    if shape.envelope {
        options = options.envelope(true);
    }
    options
}

/// `options` with the policy that the user asked for.
pub(super) fn with_policy(mut options: Options, policy: &PolicyArgs) -> Options {
    if let Some(bytes) = policy.rotate_bytes {
        options = options.rotate_bytes(bytes);
    }
    if let Some(span) = policy.rotate_every {
        options = options.rotate_every(span);
    }
    if let Some(span) = policy.rotate_offset {
        options = options.rotate_offset(span);
    }
    if let Some(bytes) = policy.retain_bytes {
        options = options.retain_bytes(bytes);
    }
    if let Some(age) = policy.retain_age {
        options = options.retain_age(age);
    }
    if let Some(count) = policy.retain_files {
        options = options.retain_files(count);
    }
    if let Some(compress) = policy.compress {
        options = options.compress(compress);
    }
    if let Some(timeout) = policy.timeout {
        options = options.timeout(timeout);
    }
    let on_full = policy.on_full.unwrap_or_default();
    options.exclusive(policy.exclusive).tuning(Tuning::new().on_full(on_full))
}

/// With the choices of the nearest `vellum.toml` for a new log.
pub(super) fn advised(options: Options) -> Options {
    options.tuning(Tuning::new().advice_from(vellum_advice::nearest))
}

/// Opens the log as it is, or a new one that suits commits where the user asks for nothing else.
pub(super) fn open_to_commit(
    path: &Path,
    shape: &ShapeArgs,
    policy: &PolicyArgs,
) -> vellum::Result<Log> {
    let as_it_is = with_policy(shaped(advised(of(shape.layout)), shape), policy);
    // The shape of a new log must not be demanded of an existing one.
    match as_it_is.clone().create(Create::Never).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        answer => return answer,
    }
    let new = match shape.layout {
        // The staged way is for framed logs.
        Some(Layout::Text) => as_it_is.clone(),
        _ => with_policy(shaped(advised(Options::wal()), shape), policy),
    };
    match new.create(Create::New).open(path) {
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => as_it_is.open(path),
        answer => answer,
    }
}

/// Whether a line of a text log fills the place of a record that was never finished: there is a
/// line of tildes, which a reader of the file sees too.
pub(super) fn is_filler(line: &[u8]) -> bool {
    line.starts_with(b"~") || line == b"\n"
}

/// Opens a log that exists, to change it.
pub(super) fn open_to_write(path: &Path) -> Result<Log> {
    Ok(Options::default().create(Create::Never).open(path)?)
}

/// Opens a log that exists to keep a cursor in it, beside a process that has it for itself.
pub(super) fn open_beside(path: &Path) -> Result<Log> {
    Ok(vellum::ship::open(path)?)
}

/// Opens a log that exists, to look at it.
pub(super) fn open_to_read(path: &Path) -> Result<Log> {
    Ok(Options::default().read_only(true).open(path)?)
}

/// Whether there was no log to open.
pub(super) fn is_missing(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<vellum::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::NotFound)
}
