//! The records that a staged log keeps on a disk whose physical sectors are longer than its logical
//! ones, by each commit path.

use crate::harness::{Run, run};

const STRESS: &str = env!("CARGO_BIN_EXE_vellum-stress");

/// Cuts the power under a staged log that commits by `path`.
fn cut(path: &str, work: &str, arguments: &[&str]) -> Option<Run> {
    let work = format!("{STRESS} --commit-path {path} {work} {{dir}}/log");
    let check = format!("{STRESS} --check {{dir}}/log");
    run(&[&["--work", &work, "--check", &check, "--seed", "1"], arguments].concat())
}

const SECTORS: [&str; 5] = ["--physical-sectors", "--fs", "ext4,xfs", "--points", "20"];
const SHORT: &str = "--records 120 --segment-bytes 16384 --bytes 20-400";

#[test]
fn a_commit_group_in_parts_of_sectors_loses_durable_records() {
    let arguments = ["--physical-sectors", "--boots", "another", "--fs", "ext4", "--points", "150"];
    let Some(run) = cut("dsync/512/2", SHORT, &arguments) else { return };
    run.assert_status(1);
    assert!(run.violations()[0].contains("acknowledged records are gone"), "{}", run.stdout);
}

#[test]
fn a_commit_group_in_whole_sectors_loses_none() {
    for path in ["dsync/4096/2", "fdatasync/4096/2"] {
        let Some(run) = cut(path, SHORT, &SECTORS) else { return };
        run.assert_status(0);
    }
}

/// Blocks of both sizes meet in one sector. The check: no commit group undoes another.
#[test]
fn processes_that_commit_by_different_paths_keep_what_each_promised() {
    let work = "--records 300 --segment-bytes 32768 --threads 2 --processes 2 --bytes 20-900";
    let arguments = ["--fs", "ext4", "--points", "20"];
    let Some(run) = cut("dsync/512/2,fdatasync/4096/2", work, &arguments) else { return };
    run.assert_status(0);
}

#[test]
fn a_flush_that_fails_ends_the_promises() {
    for failure in ["write:60", "flush:40", "lose:40"] {
        let arguments = ["--fs", "ext4", "--points", "10", "--fail", failure];
        let Some(run) = cut("fdatasync/4096/2", SHORT, &arguments) else { return };
        run.assert_status(0);
    }
}
