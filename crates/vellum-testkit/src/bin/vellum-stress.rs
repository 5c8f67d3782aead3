//! `vellum-stress`: appends numbered records, and checks them after a crash.

use std::process::ExitCode;

fn main() -> ExitCode {
    vellum_testkit::stress::cli::main()
}
