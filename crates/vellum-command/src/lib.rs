//! What the programs of Vellum share: `vellum`, `vellum-ship`, and those that prove the library.
//!
//! `stdio` and `signals` are what a process gets from outside. `values` and `moment` read words of
//! the command line. `output` and `records` bring results out, and `outcome` says how it went. Data
//! goes to standard output, talk to standard error.

#![forbid(unsafe_code)]

pub mod moment;
pub mod outcome;
pub mod output;
pub mod records;
pub mod signals;
pub mod stdio;
pub mod values;
