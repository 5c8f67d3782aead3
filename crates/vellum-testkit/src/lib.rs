//! The proof of Vellum: programs that try to break the library, and check the remains.
//!
//! ```text
//!   killpoints   kills a process at each instruction of an operation, or fails each system call
//!   worlds       runs logs among forks, limits, other users, containers and copies
//!   powercut     builds the disk as a power cut leaves it after any write, and has it recovered
//!   lies         cuts the power of lying and honest disks, and asks `vellum doctor` about each
//!   stress       appends numbered records, and checks what a crash left of them
//!   fuzz         opens, reads and repairs logs whose files are damaged in any way
//! ```
//!
//! Each of the first five is a command, as `vellum-stress`, and has its command line in `cli`.
//! `tests/fuzz` and cargo-fuzz (the workspace `fuzz/`) run the fuzz cases.
//!
//! All draw from one generator, [`random`]. Its seed is printed, so a run can be repeated.
//! [`payload`] makes the records of kill points and worlds, [`trace`] their processes.
//!
//! `unsafe` code is in [`trace`] and in the `sys` of a module.

#![deny(unsafe_code)]

pub mod fuzz;
pub mod killpoints;
pub mod lies;
pub mod payload;
pub mod powercut;
pub mod random;
pub mod stress;
pub mod trace;
pub mod worlds;
