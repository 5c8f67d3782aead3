//! The surroundings of the commands under test, the reports of their failures, and the remains of a
//! run.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::harness::{BINARY, MACHINE_CANNOT, run};

#[test]
fn a_power_cut_looks_like_a_reboot() {
    let id = "/proc/sys/kernel/random/boot_id";
    let work = format!("cp {id} {{dir}}/id; echo > /dev/shm/left; sync; echo ACK 1");
    let check = format!(
        "cmp -s {{dir}}/id {id} && echo BAD the boot id is the same; \
         [ -e /dev/shm/left ] && echo BAD shared memory is left; echo 1; \
         echo > /dev/shm/left"
    );
    let arguments = ["--boots", "another", "--fs", "ext4", "--points", "20"];
    let Some(run) = run(&[&arguments[..], &["--work", &work, "--check", &check]].concat()) else {
        return;
    };
    run.assert_status(0);
}

#[test]
fn a_disk_that_comes_back_finds_the_same_boot() {
    let id = "/proc/sys/kernel/random/boot_id";
    let work = format!("cp {id} {{dir}}/id; sync; echo ACK 1");
    // A cut before the sync may leave no file, or an empty one.
    let check = format!(
        "grep -qs - {{dir}}/id && ! cmp -s {{dir}}/id {id} && echo BAD the boot id is another; echo 1"
    );
    let arguments = ["--boots", "same", "--fs", "ext4", "--points", "10", "--nested"];
    let Some(run) = run(&[&arguments[..], &["--work", &work, "--check", &check]].concat()) else {
        return;
    };
    run.assert_status(0);
}

#[test]
fn each_image_is_opened_in_both_boots() {
    let work = "sync -f {dir}";
    let check = "cat /proc/sys/kernel/random/boot_id >&2; exit 1 # {dir}";
    let arguments = ["--fs", "ext4", "--points", "2", "--work", work, "--check", check];
    let Some(run) = run(&arguments) else { return };
    run.assert_status(1);
    for boot in ["another", "the same"] {
        let of_boot = |line: &&&str| line.contains(&format!("opened in {boot} boot"));
        assert_eq!(run.violations().iter().filter(of_boot).count(), 2, "{}", run.stdout);
    }
}

#[test]
fn a_workload_that_fails_is_no_campaign() {
    let work = "echo it went wrong >&2; exit 3 # {dir}";
    let arguments = ["--fs", "ext4", "--work", work, "--check", "true {dir}"];
    let Some(run) = run(&arguments) else { return };
    run.assert_status(2);
    assert!(run.stderr.contains("the workload exited with 3: it went wrong"), "{}", run.stderr);
}

#[test]
fn a_check_that_hangs_fails_or_talks_nonsense_is_a_violation() {
    let cases = [
        ("sleep 100 & sleep 100 # {dir}", "did not end in time"),
        ("echo reason >&2; exit 1 # {dir}", "exited with 1: reason"),
        ("kill -SEGV $$ # {dir}", "was killed by signal 11"),
        ("echo all is well # {dir}", "the check printed \"all is well\""),
    ];
    for (check, complaint) in cases {
        let arguments = ["--fs", "ext4", "--points", "2", "--timeout", "1"];
        let commands = ["--work", "sync -f {dir}", "--check", check];
        let Some(run) = run(&[&arguments[..], &commands].concat()) else { return };
        run.assert_status(1);
        assert!(run.stdout.contains(complaint), "{}", run.stdout);
    }
}

#[test]
fn a_user_without_rights_is_told_so() {
    let mut command = Command::new(BINARY);
    command.args(["--work", "true {dir}", "--check", "true {dir}"]).uid(65534);
    command.env_remove("VELLUM_REQUIRE");
    // Where that user cannot even start the binary, there is nothing to see.
    let Ok(output) = command.output() else { return };
    assert_eq!(output.status.code(), Some(MACHINE_CANNOT));
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
}

/// Whether `file` in one of the entries of `dir` names a run with this seed.
fn is_named(seed: &str, dir: &str, file: &str) -> bool {
    let has_seed = |path: &Path| fs::read(path).is_ok_and(|text| contains(&text, seed.as_bytes()));
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join(file)).any(|path| has_seed(&path))
}

/// Whether a loop device is on a disk of the run with this seed.
fn has_disk(seed: &str) -> bool {
    is_named(seed, "/sys/block", "loop/backing_file")
}

/// Whether there is such a device, or one of the run's processes lives.
fn remains(seed: &str) -> bool {
    has_disk(seed) || is_named(seed, "/proc", "cmdline")
}

/// Whether the run gets a disk before it ends.
fn gets_disk(run: &mut Child, seed: &str) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    while run.try_wait().expect("it is a child").is_none() && Instant::now() < deadline {
        if has_disk(seed) {
            return true;
        }
        sleep(Duration::from_millis(5));
    }
    false
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[test]
fn nothing_remains_of_a_run_that_is_killed() {
    for (signal, seed) in [("TERM", "50777001"), ("KILL", "50777002")] {
        let work = format!("{BINARY} self-work good {{dir}} --records 300");
        let check = format!("{BINARY} self-check good {{dir}}");
        let mut child = Command::new(BINARY)
            .args(["--fs", "ext4,btrfs", "--points", "100000", "--seed", seed])
            .args(["--work", &work, "--check", &check])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let was_there = gets_disk(&mut child, seed);
        // The shell has it built in, which not every machine has as a program.
        let kill = format!("kill -s {signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().is_ok());
        let ended = child.wait_with_output().expect("it is a child");
        if ended.status.code() == Some(MACHINE_CANNOT) {
            return vellum_testing::missing::skip("this machine cannot cut the power");
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(was_there && !ended.status.success(), "{}: {said}", ended.status);
        let deadline = Instant::now() + Duration::from_secs(20);
        while remains(seed) {
            assert!(Instant::now() < deadline, "something of the run is left after SIG{signal}");
            sleep(Duration::from_millis(20));
        }
    }
}
