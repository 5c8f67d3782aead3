//! `vellum-killpoints`: a process is killed at every instruction of an operation, or each of its
//! system calls fails.
//!
//! A *victim* runs one operation under `ptrace` and is killed at a *point* in it. A *survivor* then
//! continues: it must not be blocked, nothing acknowledged may be lost, nothing torn may be read,
//! and every byte of the log must be accounted for. `vellum-killpoints` tries every point.
//!
//! ```text
//!   campaign   which points of a case are tried, and each trial
//!   survivor   goes on, and looks at everything            check   what must be true
//!   victim     the operation under test                    point   the way to a point
//!   scenario   what each log must hold                     cases, template
//!   glimpse    what a reader without write permission sees   positions  that somebody has stored
//!   inject     which calls of a case fail, and each trial    answer   what a call can answer
//!   known      what is wrong and not mended yet
//!   call       a system call at its entry and its exit
//!   durable    what is left after a power cut              power
//!   full       what a full disk costs
//!   cursors    named cursors
//!   crew       runs the cases, some at the same time       totals  what they came to
//!   report     what a campaign is doing                    cli     the command line
//! ```

pub mod answer;
pub mod call;
pub mod campaign;
pub mod cases;
pub mod check;
pub mod cli;
mod crew;
mod cursors;
pub mod durable;
pub mod full;
mod glimpse;
pub mod inject;
mod known;
pub mod point;
mod positions;
pub mod power;
pub mod report;
pub mod scenario;
pub mod survivor;
mod template;
mod totals;
pub mod victim;
