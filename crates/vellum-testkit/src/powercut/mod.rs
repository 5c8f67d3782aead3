//! `vellum-powercut`: everything that a log promised to keep must be there after any cut of the
//! writes.
//!
//! A workload runs once on a real filesystem, on a disk that this process serves. Each write, each
//! flush and each promise of the workload is recorded in one order. Then, for many moments of that
//! recording, the disk is built as a power cut would have left it, the filesystem is mounted, and a
//! check command says which records it finds: once as after a reboot, and once in the same boot, as
//! if the disk alone had been lost.
//!
//! It cannot see: a disk that lies about flushes or decays; a write that is on its way while a
//! flush is (it counts as flushed); a write with its own flush bit, which here flushes all others
//! too; a directory that was not synced after a file was created in it, which ext4, XFS and btrfs
//! forgive.
//!
//! ```text
//!   campaign    records, cuts, has it checked, counts       report    what it came to
//!   trial       one workload, one recovery, on one disk     command   the commands under test
//!   medium      the block device in front of the disk       verdict   promises against findings
//!   disk        answers, records and fails                  recording, image, ranges
//!   cut         moments, and what is on the disk then       cli       the command line
//!   sandbox     namespaces, so that nothing remains         sys       all of the unsafe code
//!   reference   workloads with known faults                 profile   lists of campaigns
//! ```
//!
//! The block device itself is that of `vellum-zoo`.

pub mod campaign;
pub mod cli;
pub mod command;
pub mod cut;
pub mod disk;
pub mod image;
pub mod medium;
mod profile;
pub mod ranges;
pub mod recording;
pub mod reference;
pub mod report;
pub mod sandbox;
pub mod sys;
pub mod trial;
pub mod verdict;
