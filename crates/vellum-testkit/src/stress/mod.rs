//! `vellum-stress`: the workload of every crash test, and the check after a crash.
//!
//! ```text
//!   cli        what is done, and how it went               args    the command line
//!   open       opens the log                               payload  makes and knows the records
//!   writer     appends, in the threads of a process        processes  the same in several
//!   reports    says what is durable and what goes          retention  what goes by itself
//!   survey     reads a log                                 check   judges it
//!   breaks     where a power cut tore it                   files   looks at its files
//!   numbers    numbers as text                             follower  what a durable reader saw
//! ```

mod args;
mod breaks;
mod check;
pub mod cli;
mod files;
mod follower;
mod held;
mod numbers;
mod open;
mod payload;
mod processes;
mod reports;
mod retention;
mod survey;
mod writer;
