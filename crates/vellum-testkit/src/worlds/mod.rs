//! `vellum-worlds`: has logs live in worlds that are unlike the one their tests live in.
//!
//! ```text
//!   table          the worlds, and what each promises     shape       the kinds of logs
//!   campaign       workers in some worlds, and the check  check       what must be true afterwards
//!   crew           starts workers, hears, kills, stops
//!   surroundings   what is around the log, and changes    enter       how a worker gets there
//!   worker         one process, or a fork's two           operations  what it does to the log
//!   report         what workers say                       ledger      what they were promised
//!   sys            system calls and the unsafe code       cli         the command line
//!   storage        logs on disks that are full or fail, with a story of its own
//! ```

mod campaign;
mod check;
pub mod cli;
mod crew;
mod enter;
mod ledger;
mod operations;
mod report;
mod shape;
mod storage;
mod surroundings;
mod sys;
mod table;
mod worker;
