//! A sample of the every-instruction test, of bounded time. All of it:
//! `cargo run --release -p vellum-testkit --bin vellum-killpoints -- --all`.

use std::path::Path;
use std::process::Command;

/// Where syncs cost nothing: most of the time goes into making logs ready otherwise.
const SHARED_MEMORY: &str = "/dev/shm";

#[test]
fn a_process_killed_at_any_instruction_costs_nobody_else_anything() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vellum-killpoints"));
    command.args(["--seconds", "90"]);
    if Path::new(SHARED_MEMORY).is_dir() {
        command.args(["--dir", SHARED_MEMORY]);
    }
    let output = command.output().expect("the command starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let talk = String::from_utf8_lossy(&output.stderr);
    println!("{text}{talk}");
    assert!(output.status.success(), "{}: {text}{talk}", output.status);
}
