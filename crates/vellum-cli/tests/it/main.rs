//! The command as a user runs it: each test starts the real program on a log of its own.

mod advise;
mod append;
mod bench;
mod bench_all;
mod bench_commit;
mod bench_compare;
mod bench_end;
mod bench_image;
mod bench_sync;
mod bench_write;
mod browser;
mod cat;
mod commit;
mod demo;
mod gaps;
mod help;
mod policy;
mod readers;
mod removal;
mod report_browser;
mod stat;
mod support;
mod tail;
mod trim;
mod upkeep;
mod verify;
