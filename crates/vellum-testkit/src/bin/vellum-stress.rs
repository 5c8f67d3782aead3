//! `vellum-stress`: appends numbered records, and checks what a crash left of them.

use std::process::ExitCode;

fn main() -> ExitCode {
    vellum_testkit::stress::cli::main()
}
