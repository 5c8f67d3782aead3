//! Opening the log that the workload appends to.

use vellum::{Create, ErrorKind, Layout, Log, Options, Tuning};

use super::args::Args;

/// Opens the log as it is, or a new one that suits commits where nothing else is asked for.
pub(super) fn open(args: &Args) -> vellum::Result<Log> {
    // The defaults of a new log must not contradict one that is there.
    let as_it_is = args.shape.layout.map_or_else(Options::default, vellum::internal::options);
    match asked(as_it_is.clone(), args).create(Create::Never).open(&args.log) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        answer => return answer,
    }
    let new = match args.shape.layout {
        // The staged way is for framed logs.
        Some(Layout::Text) => as_it_is,
        _ => Options::wal().exclusive(false),
    };
    asked(new, args).open(&args.log)
}

/// `options` with the choices of the command line.
fn asked(mut options: Options, args: &Args) -> Options {
    if let Some(bytes) = args.shape.segment_bytes {
        options = options.tuning(Tuning::new().segment_capacity_bytes(bytes));
    }
    if let Some(preallocate) = args.shape.preallocate {
        options = options.tuning(Tuning::new().preallocate(preallocate));
    }
    if let Some(fill) = args.shape.fill {
        options = options.tuning(Tuning::new().fill(fill));
    }
    if args.shape.envelope {
        options = options.envelope(true);
    }
    if let Some(path) = args.commit_path() {
        options = options.tuning(Tuning::new().commit_path(path));
    }
    if let Some(bytes) = args.rotate_bytes {
        options = options.rotate_bytes(bytes);
    }
    if let Some(count) = args.retain_files {
        options = options.retain_files(count);
    }
    if let Some(compress) = args.compress {
        options = options.compress(compress);
    }
    options
}
