//! `--iocost`: lines for the kernel. What they say follows from what was measured, so only their
//! form and the device are asserted.

use std::fs;

use vellum_testing::mount::Mount;

use super::support::run;

#[test]
fn the_lines_are_for_the_disk_of_the_directory() {
    let Some(mount) = Mount::ext4("limits for a neighbour", 256) else { return };
    let device = rustix::fs::stat(mount.path()).unwrap().st_dev;
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let dir = mount.path().to_str().unwrap();
    let output = run(&["--iocost", "--p99", "1d", "--seconds", "2", dir]);
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{text}{said}");
    let line = |file: &str| text.lines().find(|line| line.ends_with(file)).unwrap().to_owned();
    let model = line("> /sys/fs/cgroup/io.cost.model");
    let rates = model.split('=').skip(3).map(|rest| rest.split([' ', '\'']).next().unwrap());
    let rates: Vec<u64> = rates.map(|rate| rate.parse().unwrap()).collect();
    assert!(rates.len() == 6 && rates.iter().all(|rate| *rate > 0), "{model}");
    for line in [model, line("> /sys/fs/cgroup/io.cost.qos")] {
        assert!(line.trim().starts_with(&format!("echo '{number} ")), "{line}");
    }
    // Whatever a commit takes here, it is less than a day.
    assert!(text.contains("no limit is needed"), "{text}");
    assert!(text.contains("    sysctl -w vm.dirty_background_bytes="), "{text}");
    let is_pasted = |line: &&str| line.starts_with("    ");
    let told = text.lines().filter(|line| !is_pasted(line));
    assert!(told.into_iter().all(|line| line.chars().count() <= 100), "{text}");
    assert_eq!(
        fs::read_dir(mount.path())
            .unwrap()
            .filter(|entry| {
                entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("vellum-")
            })
            .count(),
        0
    );
}

#[test]
fn a_directory_that_is_on_no_disk_is_refused_by_name() {
    let Some(mount) = Mount::tmpfs("limits for a neighbour in memory", 64) else { return };
    let output = run(&["--iocost", mount.path().to_str().unwrap()]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("tmpfs on ") && said.contains("has no block device"), "{said}");
    assert_eq!(fs::read_dir(mount.path()).unwrap().count(), 0);
}

#[test]
fn what_limits_do_not_take_is_a_usage_error() {
    for words in [&["--iocost", "--for", "etcd"][..], &["--iocost", "--lies"]] {
        assert_eq!(run(words).status.code(), Some(2), "{words:?}");
    }
}
