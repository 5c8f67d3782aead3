//! A sample of the every-instruction test, of bounded time. All of it:
//! `cargo run --release -p vellum-testkit --bin vellum-killpoints -- --all`.

use std::process::Command;

#[test]
fn a_process_killed_at_any_instruction_costs_nobody_else_anything() {
    let output = Command::new(env!("CARGO_BIN_EXE_vellum-killpoints"))
        .args(["--seconds", "45"])
        .output()
        .expect("the command starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let talk = String::from_utf8_lossy(&output.stderr);
    println!("{text}{talk}");
    assert!(output.status.success(), "{}: {text}{talk}", output.status);
}
