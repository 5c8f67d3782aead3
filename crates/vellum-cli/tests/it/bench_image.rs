//! `vellum bench image`, small.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use super::schema::results;
use super::support::{Place, Ran, key, rows, run, vellum};

const SMALL: [&str; 6] = ["--bytes", "8MiB", "--seconds", "0.05", "--rounds", "1"];

fn bench(place: &Place, options: &[&str]) -> Ran {
    let dir = place.dir().to_str().unwrap();
    run(&[&["bench", "image", "--dir", dir], &SMALL[..], options].concat(), b"")
}

#[test]
fn json_has_the_promised_shape_and_nothing_is_left() {
    let place = Place::new();
    let json = bench(&place, &["--json", "-"]).good();
    let report = results(&json);
    assert_eq!((&report["suite"], &report["rounds"]), (&"image".into(), &1.into()));
    let cases = rows(&report);
    assert_eq!(cases.len(), 21);
    for case in cases {
        assert_eq!(case["verified"] == true, case["skipped"].is_null(), "{case}");
        assert_eq!(case["verified"] == true, case["metrics"]["rate"]["median"].is_number());
        assert_eq!(case["verified"] == true, case["series"].is_object());
        assert_eq!(key(case, "tool"), "vellum");
    }
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0);
}

#[test]
fn the_table_tells_rates_from_the_first_to_the_last() {
    let place = Place::new();
    let table = bench(&place, &["--states", "metadata,full", "--engines", "aio"]).good();
    for word in ["rate to metadata", "first tenth", "last tenth", "p99.9", "extents", "full"] {
        assert!(table.contains(word), "{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn fio_writes_the_same_where_it_is_installed() {
    let place = Place::new();
    let options = ["--check-with", "fio", "--states", "off,metadata", "--engines", "aio"];
    let ran = bench(&place, &[&options[..], &["--json", "-"]].concat());
    if ran.stderr.contains("fio is missing") {
        return vellum_testing::missing::skip("there is no fio here");
    }
    let report = results(&ran.good());
    let cases = rows(&report);
    let names = cases.iter().map(|case| (key(case, "image"), key(case, "tool")));
    let expected = [("off", "vellum"), ("metadata", "vellum"), ("metadata", "fio")];
    let expected = expected.map(|(image, tool)| (image.to_string(), tool.to_string()));
    assert_eq!(names.collect::<Vec<_>>(), expected);
    assert!(cases[2]["metrics"]["rate"]["median"].as_f64().unwrap() > 0.0, "{}", cases[2]);
    assert!(cases[2]["failed"].is_null() && cases[2]["verified"] == false);
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 0);
}

#[test]
fn without_fio_one_line_says_so() {
    let place = Place::new();
    // A path on which there is nothing.
    let empty = place.dir().join("empty");
    fs::create_dir(&empty).unwrap();
    let args = ["bench", "image", "--check-with", "fio", "--dir", place.dir().to_str().unwrap()];
    let output = vellum().args(args).env("PATH", &empty).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said, "vellum: fio is missing; it comes with the package fio\n");
    assert_eq!(fs::read_dir(place.dir()).unwrap().count(), 1);
}

#[test]
fn a_fio_that_fails_is_a_row_and_not_a_number() {
    let place = Place::new();
    // It tells its version, as true(1) does anything, and then writes nothing.
    let bin = place.dir().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink("/bin/true", bin.join("fio")).unwrap();
    let dir = place.dir().to_str().unwrap();
    let args = ["bench", "image", "--check-with", "fio", "--states", "metadata", "--dir", dir];
    let output = vellum()
        .args([&args[..], &["--engines", "aio", "--json", "-"], &SMALL].concat())
        .env("PATH", &bin)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [ours, fio] = &rows(&report)[..] else { panic!("{report}") };
    assert_eq!((&ours["verified"], &ours["failed"]), (&true.into(), &Value::Null));
    assert!(fio["failed"].as_str().unwrap().contains("fio.json"), "{fio}");
    assert_eq!(fio["metrics"].as_object().unwrap().len(), 0);
}

#[test]
fn without_qemu_its_images_say_so_and_the_others_are_written() {
    let place = Place::new();
    let empty = place.dir().join("empty");
    fs::create_dir(&empty).unwrap();
    let dir = place.dir().to_str().unwrap();
    let args = ["bench", "image", "--states", "metadata,qcow2-full", "--dir", dir];
    let output = vellum()
        .args([&args[..], &["--engines", "aio", "--json", "-"], &SMALL].concat())
        .env("PATH", &empty)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let report = results(&String::from_utf8(output.stdout).unwrap());
    let [raw, qcow2] = &rows(&report)[..] else { panic!("{report}") };
    assert_eq!(raw["verified"], true, "{raw}");
    let missing = "qemu-img is missing; it comes with the package qemu-utils";
    assert_eq!((&qcow2["skipped"], &qcow2["failed"]), (&missing.into(), &Value::Null));
}

#[test]
fn a_filled_filesystem_with_options_is_told_in_the_conditions() {
    let place = Place::new();
    let json = place.dir().join("result.json");
    let options = ["--fs", "xfs", "--mkfs-options", "xfs=-l size=64m", "--fill", "60%"];
    let states = ["--states", "metadata", "--engines", "aio", "--json", json.to_str().unwrap()];
    let ran = run(&[&["bench", "image"], &SMALL[..], &options, &states].concat(), b"");
    if ran.code == 2 {
        return vellum_testing::missing::skip(ran.stderr);
    }
    ran.good();
    let report = results(&fs::read_to_string(&json).unwrap());
    let made = report["conditions"]["scratch"].as_array().unwrap();
    assert_eq!(made[0], "xfs made by mkfs.xfs -l size=64m");
    assert!(made[1].as_str().unwrap().contains("filled to 60 %"), "{made:?}");
}

#[test]
fn options_for_what_is_not_made_are_a_usage_error() {
    let image = |options: &[&str]| run(&[&["bench", "image"], options].concat(), b"");
    let said = |options: &[&str]| {
        let ran = image(options);
        assert_eq!(ran.code, 2, "{options:?}: {}", ran.stderr);
        ran.stderr
    };
    assert!(said(&["--fill", "95%"]).contains("--fs"));
    assert!(said(&["--mkfs-options", "xfs=-f"]).contains("--fs"));
    assert!(said(&["--fs", "xfs", "--fill", "100%"]).contains("from 1 to 99"));
    assert!(said(&["--fs", "xfs", "--mkfs-options", "xfs"]).contains("KIND=OPTIONS"));
    let other = said(&["--fs", "xfs", "--mkfs-options", "ext4=-m 0"]);
    assert!(other.contains("no ext4 is made for the run"), "{other}");
    assert!(said(&["--fs", "tmpfs", "--fill", "50%"]).contains("loop device"));
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let place = Place::new();
    bench(&place, &["--depth", "0"]).complaint(2);
    for wrong in [["--states", "thin"], ["--seconds", "never"], ["--check-with", "dd"]] {
        let dir = place.dir().to_str().unwrap();
        let ran = run(&[&["bench", "image", "--dir", dir], &wrong[..]].concat(), b"");
        assert_eq!(ran.code, 2, "{wrong:?}");
    }
}
