//! The program, on disks of several kinds, for a second each. Names of causes are asserted, and no
//! times.

mod disks;
mod help;
mod interrupt;
mod iocost;
mod lies;
mod plants;
mod results;
mod support;
