//! `vellum-lies`: does the doctor find the writes that a lying disk forgot, and nothing on an
//! honest one?

use std::process::ExitCode;

fn main() -> ExitCode {
    vellum_testkit::lies::cli::main()
}
