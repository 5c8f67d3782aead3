//! From figures to lines, and for which disk.

use std::fs;

use super::rates::Model;
use super::*;
use crate::advise::Disk;
use crate::conditions::Filesystem;

const MODEL: Model = Model {
    rbps: 2_000_000_000,
    rseqiops: 300_000,
    rrandiops: 200_000,
    wbps: 1_000_000_000,
    wseqiops: 150_000,
    wrandiops: 100_000,
};

fn device() -> Device {
    let own = ("sda".to_owned(), "8:0".to_owned());
    let filesystem = "ext4 on /data".into();
    Device { name: own.0.clone(), number: own.1.clone(), queued: Some(own), filesystem }
}

fn figures() -> Figures {
    let at = |bytes: u64, p99_ms| Beside { bytes: bytes << 20, p99_ms };
    Figures {
        model: MODEL,
        goal_ms: 10.0,
        alone_ms: 1.0,
        unlimited_ms: 40.0,
        rates: vec![at(476, 20.0), at(238, 9.0)],
        bursts: vec![at(256, 30.0), at(64, 8.0)],
    }
}

/// The lines to paste of one setting.
fn pasted(device: &Device, figures: &Figures, name: &str) -> Vec<String> {
    let settings = lines::settings(device, figures);
    let one = settings.into_iter().find(|one| one.name == name);
    one.map(|one| one.paste).unwrap_or_default()
}

/// `echo 'DEVICE NAME=VALUE …' > FILE`, as the kernel reads it: device, values, and the file.
fn parsed(line: &str) -> (String, Vec<(String, String)>, String) {
    let rest = line.strip_prefix("echo '").unwrap();
    let (words, file) = rest.split_once("' > ").unwrap();
    let mut words = words.split(' ');
    let number = words.next().unwrap().to_owned();
    let numbers = number.split_once(':').unwrap();
    assert!(numbers.0.parse::<u32>().is_ok() && numbers.1.parse::<u32>().is_ok(), "{line}");
    let pair = |word: &str| word.split_once('=').map(|(name, value)| (name.into(), value.into()));
    (number, words.map(|word| pair(word).unwrap()).collect(), file.to_owned())
}

#[test]
fn the_model_has_every_rate_that_was_measured() {
    let lines = pasted(&device(), &figures(), "io.cost.model");
    let (number, values, file) = parsed(&lines[0]);
    assert_eq!((number.as_str(), file.as_str()), ("8:0", "/sys/fs/cgroup/io.cost.model"));
    let values: Vec<String> =
        values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let wanted = "ctrl=user model=linear rbps=2000000000 rseqiops=300000 rrandiops=200000 \
                  wbps=1000000000 wseqiops=150000 wrandiops=100000";
    assert_eq!(values.join(" "), wanted);
}

#[test]
fn a_request_may_take_half_of_a_commit() {
    let lines = pasted(&device(), &figures(), "io.cost.qos");
    let (number, values, file) = parsed(&lines[0]);
    assert_eq!((number.as_str(), file.as_str()), ("8:0", "/sys/fs/cgroup/io.cost.qos"));
    let value = |name: &str| values.iter().find(|one| one.0 == name).unwrap().1.clone();
    assert_eq!(
        (value("enable"), value("rlat"), value("wlat")),
        ("1".into(), "5000".into(), "5000".into())
    );
    let share = |name| value(name).parse::<f64>().unwrap();
    assert!(share("min") <= 100.0 && share("max") >= share("min") && share("wpct") <= 100.0);
}

#[test]
fn a_neighbour_gets_the_highest_rate_that_leaves_the_log_its_p99() {
    let lines = pasted(&device(), &figures(), "io.max");
    let (number, values, _) = parsed(&lines[0]);
    let bytes = (238_u64 << 20).to_string();
    assert_eq!((number.as_str(), values), ("8:0", vec![("wbps".to_owned(), bytes.clone())]));
    assert!(lines[1].starts_with(&format!("echo '8:0 {bytes}' > /sys/fs/cgroup/blkio/")));
    let text = lines::text(&device(), &figures());
    assert!(text.contains("238 MiB a second p99 of the log is 9.00 ms"), "{text}");
}

#[test]
fn no_more_waits_in_memory_than_the_longest_burst_that_leaves_the_log_its_p99() {
    let lines = pasted(&device(), &figures(), "vm.dirty_bytes");
    assert_eq!(lines, ["sysctl -w vm.dirty_background_bytes=33554432 vm.dirty_bytes=67108864"]);
}

#[test]
fn where_no_line_helps_there_is_none_and_a_reason() {
    let figures = figures();
    let fast = Figures { unlimited_ms: 9.0, rates: Vec::new(), ..figures.clone() };
    let slow = Figures {
        rates: vec![Beside { bytes: 1 << 20, p99_ms: 11.0 }],
        bursts: vec![Beside { bytes: 4 << 20, p99_ms: 11.0 }],
        ..figures.clone()
    };
    let alone = Figures { alone_ms: 11.0, ..figures };
    for (figures, name, said) in [
        (&fast, "io.max", "no limit is needed"),
        (&slow, "io.max", "down to 1 MiB a second: the log needs a disk of its own"),
        (&slow, "vm.dirty_bytes", "down to 4 MiB, leaves the log its p99"),
        (&alone, "io.max", "does not keep its p99 when it is alone"),
    ] {
        assert!(pasted(&device(), figures, name).is_empty(), "{name}");
        let text = lines::text(&device(), figures).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(said), "{text}");
        assert_eq!(pasted(&device(), figures, "io.cost.model").len(), 1);
    }
    assert!(pasted(&device(), &alone, "io.cost.qos").is_empty());
}

#[test]
fn a_fast_disk_is_not_written_for_longer_than_a_neighbour_may() {
    let slice = Duration::from_secs(3);
    assert_eq!([0, 100 << 20].map(|rate| bounded(slice, rate)), [slice; 2]);
    assert_eq!(bounded(slice, 8 << 30), Duration::from_millis(250));
}

#[test]
fn limits_are_whole_mebibytes() {
    assert_eq!([0, 1 << 20, (3 << 20) - 1].map(lines::rounded), [1 << 20, 1 << 20, 2 << 20]);
}

/// Disks by name and number, of which those in `queued` have a queue.
fn found(disks: &[(&str, &str)], queued: &[&str]) -> Result<Device> {
    let sys = tempfile::tempdir().unwrap();
    for name in queued {
        fs::create_dir_all(sys.path().join("class/block").join(name).join("mq")).unwrap();
    }
    let disk = |(name, number): &(&str, &str)| Disk {
        name: (*name).into(),
        number: Some((*number).into()),
        ..Disk::default()
    };
    let kind = if disks.is_empty() { "tmpfs" } else { "ext4" };
    let filesystem = Some(Filesystem {
        kind: kind.into(),
        source: String::new(),
        mount_point: "/data".into(),
        mount_options: String::new(),
    });
    let disks = disks.iter().map(disk).collect();
    Device::of(&Surroundings { filesystem, disks, ..Surroundings::default() }, sys.path())
}

#[test]
fn the_model_is_for_the_disk_with_a_queue_and_limits_are_for_that_of_the_filesystem() {
    let sda = Some(("sda".to_owned(), "8:0".to_owned()));
    let plain = found(&[("sda", "8:0")], &["sda"]).unwrap();
    assert_eq!((plain.number.as_str(), &plain.queued), ("8:0", &sda));
    let mapped = found(&[("dm-0", "252:0"), ("sda", "8:0")], &["sda"]).unwrap();
    assert_eq!((mapped.number.as_str(), &mapped.queued), ("252:0", &sda));
    let array = found(&[("md0", "9:0"), ("sda", "8:0"), ("sdb", "8:16")], &["sda", "sdb"]).unwrap();
    assert_eq!((array.number.as_str(), &array.queued), ("9:0", &None));
    assert!(pasted(&array, &figures(), "io.cost.model").is_empty());
    assert!(lines::text(&array, &figures()).contains("stands on no single disk"));
}

#[test]
fn a_filesystem_without_a_block_device_is_refused_by_name() {
    let error = found(&[], &[]).unwrap_err();
    let said = "tmpfs on /data has no block device";
    assert!(error.to_string().starts_with(said), "{error}");
    let nowhere = Device::of(&Surroundings::default(), Path::new("/nonexistent")).unwrap_err();
    assert!(nowhere.to_string().starts_with("this directory has no block device"), "{nowhere}");
}

#[test]
fn a_partition_is_named_by_its_whole_disk() {
    let sys = tempfile::tempdir().unwrap();
    let disk = sys.path().join("devices/sda");
    fs::create_dir_all(disk.join("queue")).unwrap();
    fs::create_dir_all(disk.join("sda1")).unwrap();
    fs::create_dir_all(disk.join("mq")).unwrap();
    fs::write(disk.join("dev"), "8:0\n").unwrap();
    fs::write(disk.join("sda1/dev"), "8:1\n").unwrap();
    let link = |from: &str, to: &str| {
        let from = sys.path().join(from);
        fs::create_dir_all(from.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(sys.path().join("devices").join(to), from).unwrap();
    };
    link("dev/block/8:1", "sda/sda1");
    link("class/block/sda", "sda");
    let mounts = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n";
    let found = crate::advise::mounts_and_disks(Path::new("/srv"), mounts, sys.path());
    let device = Device::of(&found, sys.path()).unwrap();
    assert_eq!((device.name.as_str(), device.number.as_str()), ("sda", "8:0"));
    assert_eq!(device.queued, Some(("sda".into(), "8:0".into())));
}
