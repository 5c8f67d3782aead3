//! Saying that a test cannot run on this machine: that it was skipped, or, where everything has to
//! run (`VELLUM_REQUIRE=all`), that this is a failure.

use std::fmt::Display;
use std::io::Write;
use std::thread;

/// Whether nothing may be skipped.
pub fn is_all_required() -> bool {
    std::env::var_os("VELLUM_REQUIRE").is_some_and(|what| what == "all")
}

/// Says why the calling test, or a part of it, is skipped.
///
/// # Panics
///
/// Where nothing may be skipped.
#[track_caller]
pub fn skip(why: impl Display) {
    assert!(!is_all_required(), "VELLUM_REQUIRE=all, and {why}");
    let test = thread::current();
    let test = test.name().unwrap_or("a test");
    // Written past the harness's capture, so that a skipped test is never mistaken for a good one.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}
