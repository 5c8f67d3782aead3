//! Properties that must hold when the files of a log are damaged in any way.
//!
//! Each of the three functions takes any bytes, makes of them a golden log (`tests/golden` of
//! `vellum`) and a list of edits to its files, and panics if the library breaks a rule:
//!
//! - [`headers`]: the geometry, the control file or the header of a segment are replaced.
//! - [`recovery`]: segments are damaged, and the log is opened as in another boot.
//! - [`repair`]: the same files, whose readable records are saved into another log.
//!
//! They go through the public interface alone. The workspace `fuzz/` hands them to cargo-fuzz;
//! `tests/fuzz` runs them on the kept inputs and on random ones ([`random_input`]) with a stable
//! compiler.

mod case;
mod edit;
mod expectation;
mod frames;
mod golden;
mod inputs;
mod place;
mod recovered;
mod saved;

use case::Case;
pub use inputs::random_input;

/// Opens a log whose geometry, control file or segment header is chosen by the input.
pub fn headers(input: &[u8]) {
    recovered::check(&Case::of_headers(input));
}

/// Opens a log whose segments are damaged as the input says, as in another boot; then appends,
/// commits, and opens it again.
pub fn recovery(input: &[u8]) {
    recovered::check(&Case::of_edits(input));
}

/// Saves what is readable of a log that is damaged as the input says.
pub fn repair(input: &[u8]) {
    saved::check(&Case::of_edits(input));
}
