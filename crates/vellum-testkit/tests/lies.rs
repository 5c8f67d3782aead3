//! A few cuts of each disk; `make zoo` has more of them.

use std::process::Command;

#[test]
fn what_a_disk_forgot_is_found_and_nothing_on_an_honest_one() {
    let mut command = Command::new("timeout");
    let output = command.args(["300", env!("CARGO_BIN_EXE_vellum-lies"), "--cuts", "5"]).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(77) => vellum_testing::missing::skip(text.trim()),
        _ => panic!("{text}"),
    }
}
