//! `vellum-killpoints`: kills a process at every instruction of an operation on a log.

use std::process::ExitCode;

fn main() -> ExitCode {
    vellum_testkit::killpoints::cli::main()
}
