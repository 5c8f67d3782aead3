//! Where files are opened by their path.
//!
//! A file of a log or of a store is opened by `vellum_sys::Dir`, which follows no link, waits for
//! no pipe and knows the right owner of the file. Every other place that opens one is listed here,
//! with the reason why no other user can have put a file of his choice there, or why that does no
//! harm.

use crate::files::Source;

/// The crates that run where another user may have put files.
const CRATES: [&str; 12] = [
    "crates/vellum/src/",
    "crates/vellum-files/src/",
    "crates/vellum-sys/src/",
    "crates/vellum-advice/src/",
    "crates/vellum-loggers/src/",
    "crates/vellum-parallel/src/",
    "crates/vellum-ship-figures/src/",
    "crates/vellum-capi/src/",
    "crates/vellum-python/src/",
    "crates/vellum-cli/src/",
    "crates/vellum-command/src/",
    "crates/vellum-ship/src/",
];

/// Functions that open a file by its path.
const CALLS: [&str; 17] = [
    "File::open",
    "File::create",
    "File::create_new",
    "File::options",
    "OpenOptions",
    "fs::read",
    "fs::read_to_string",
    "fs::write",
    "fs::copy",
    "fs::open",
    "fs::openat",
    "fs::openat2",
    "file::open",
    "file::read",
    "read_text",
    "libc::open",
    "libc::openat",
];

/// Files that may, and why.
const OPENERS: &[(&str, &str)] = &[
    ("crates/vellum-sys/src/dir.rs", "the opening functions"),
    ("crates/vellum-sys/src/file.rs", "the function below them"),
    ("crates/vellum-sys/src/descriptor.rs", "the root directory, to take a number"),
    ("crates/vellum-sys/src/loop_device.rs", "the kernel's own file below /dev"),
    ("crates/vellum-sys/src/lock.rs", "the kernel's own files below /proc"),
    ("crates/vellum-sys/src/memory.rs", "the kernel's own files below /proc"),
    ("crates/vellum-sys/src/cache.rs", "the kernel's own file below /proc"),
    ("crates/vellum-sys/src/process.rs", "the kernel's own files below /proc and /sys"),
    ("crates/vellum-sys/src/device.rs", "the kernel's own files below /sys"),
    ("crates/vellum-advice/src/known.rs", "a directory, to ask for its filesystem"),
    ("crates/vellum/src/shared/weak_atomics.rs", "a list that the user of the model names"),
    ("crates/vellum-advice/src/place.rs", "vellum.toml, whose place and owner it checks"),
    ("crates/vellum-parallel/src/file.rs", "the file that the caller names"),
    ("crates/vellum-parallel/src/write_path.rs", "the same file once more, past the page cache"),
    ("crates/vellum-parallel/src/reorder.rs", "a new file, or one without a name"),
    ("crates/vellum-cli/src/commands/bench.rs", "the report that the user names"),
    ("crates/vellum-cli/src/commands/bench/outputs.rs", "the report that the user names"),
    (
        "crates/vellum-cli/src/commands/bench/publish.rs",
        "results in a directory that the user names",
    ),
    ("crates/vellum-command/src/files.rs", "files that the user names"),
    ("crates/vellum-command/src/private_dir.rs", "the kernel's own files below /proc"),
    ("crates/vellum-command/src/signals.rs", "the kernel's own files below /proc"),
];

/// Each place that opens a file and is not listed.
pub(crate) fn faults() -> Vec<String> {
    let mut faults = Vec::new();
    let sources = CRATES.into_iter().flat_map(Source::below);
    for source in sources.filter(|source| !source.name.ends_with("tests.rs")) {
        for (number, line) in source.code_lines() {
            let Some(call) = CALLS.into_iter().find(|call| names(line, call)) else { continue };
            if OPENERS.iter().all(|(name, _)| *name != source.name) {
                let name = &source.name;
                faults.push(format!("{name}:{number}: {call}; use vellum_sys::Dir, or list it"));
            }
        }
    }
    faults
}

/// Whether a line of code has this path in it, also as one of a group in braces.
fn names(line: &str, call: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let has = |text: &str, word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let (before, behind) = (&text[..at], &text[at + word.len()..]);
            !before.ends_with(is_part) && !behind.starts_with(is_part)
        })
    };
    let grouped = call.split_once("::").is_some_and(|(module, name)| {
        line.split_once(&format!("{module}::{{")).is_some_and(|(_, group)| has(group, name))
    });
    has(line, call) || grouped
}
