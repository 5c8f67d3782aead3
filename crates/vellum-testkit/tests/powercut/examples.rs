//! The examples for authors of databases keep all acknowledged records.

use crate::harness::run;

const EXAMPLES: &str = env!("CARGO_BIN_EXE_vellum-examples");

/// Cuts the power under an example.
fn cut(example: &str, count: u64, arguments: &[&str]) {
    let work = format!("{EXAMPLES} {example}-work {{dir}}/store {count}");
    let check = format!("{EXAMPLES} {example}-check {{dir}}/store");
    let of_all = ["--work", &work, "--check", &check, "--fs", "ext4", "--at-least", "15"];
    if let Some(run) = run(&[&of_all, arguments].concat()) {
        run.assert_status(0);
    }
}

#[test]
fn the_map_keeps_every_transaction() {
    cut("map", 150, &["--points", "30", "--nested"]);
}

#[test]
fn the_raft_log_keeps_every_entry() {
    cut("raft", 300, &["--points", "30", "--nested", "--prefix"]);
}
