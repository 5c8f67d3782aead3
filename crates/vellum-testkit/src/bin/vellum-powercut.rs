//! `vellum-powercut`: cuts the power under a workload on a real filesystem, at any write.

use std::process::ExitCode;

fn main() -> ExitCode {
    vellum_testkit::powercut::cli::main()
}
