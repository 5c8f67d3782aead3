//! The proof of Vellum: whatever tries to break the library, and looks at what is left.
//!
//! | module | command | what it does |
//! |---|---|---|
//! | [`killpoints`] | `vellum-killpoints` | kills a process at each instruction of an operation, or fails each of its system calls |
//! | [`worlds`] | `vellum-worlds` | runs logs among forks, limits, other users, containers and copies |
//! | [`powercut`] | `vellum-powercut` | builds the disk as a power cut leaves it after any write, and has it recovered |
//! | [`stress`] | `vellum-stress` | appends numbered records, and checks what a crash left of them |
//!
//! All draw from one generator, [`random`]. Its seed is printed, so a run can be repeated.
//! [`payload`] makes the records of kill points and worlds, [`trace`] their processes.
//!
//! `unsafe` code is in [`trace`] and in the `sys` of a module.

#![deny(unsafe_code)]

pub mod killpoints;
pub mod payload;
pub mod powercut;
pub mod random;
pub mod stress;
pub mod trace;
pub mod worlds;
