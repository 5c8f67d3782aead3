//! `vellum-worlds`: has logs live among forks, limits, other users, containers and copies.

use std::process::ExitCode;

fn main() -> ExitCode {
    vellum_testkit::worlds::cli::main()
}
