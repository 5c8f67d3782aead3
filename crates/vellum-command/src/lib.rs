//! The common parts of Vellum's programs: `vellum`, `vellum-ship`, and those that prove the
//! library.
//!
//! `stdio` and `signals` are what a process gets from outside. `values` and `moment` read words of
//! the command line; `shipping` is the part that two programs have, and `help` makes man pages and
//! completions. `samples` sums figures up. `output`, `text` and `records` bring results out, and
//! `outcome` says how it went. Data goes to standard output, talk to standard error. `files`
//! opens what the user names, and `private_dir` is for files of no further use.

#![forbid(unsafe_code)]

pub mod files;
pub mod help;
pub mod moment;
pub mod outcome;
pub mod output;
pub mod private_dir;
pub mod records;
pub mod samples;
pub mod shipping;
pub mod signals;
pub mod stdio;
pub mod text;
pub mod values;
