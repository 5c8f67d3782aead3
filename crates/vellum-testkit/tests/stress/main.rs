//! `vellum-stress` as a crash test runs it: each test starts the real program on a log of its own.

mod check;
mod help;
mod support;
mod workload;
