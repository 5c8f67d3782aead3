//! The policy of a text log: set by `vellum append`, shown by `vellum stat`, and `vellum rotate`.

use std::fs;

use serde_json::json;

use super::support::{Place, run};

#[test]
fn what_is_said_stays_with_the_log_and_the_rest_stays_as_it_was() {
    let place = Place::new();
    let policy = ["--rotate-bytes", "16K", "--rotate-every", "1d", "--rotate-offset", "22h"];
    place.append(&[&["--layout", "text"], &policy[..]].concat(), b"one\n");
    let retention = ["--retain-bytes", "1G", "--retain-age", "30d", "--retain-files", "9"];
    place.append(&retention, b"two\n");
    let expected = json!({
        "rotate_bytes": 16384, "rotate_every_seconds": 86_400, "rotate_offset_seconds": 79_200,
        "retain_bytes": 1 << 30, "retain_age_seconds": 2_592_000, "retain_files": 9,
        "compress": "none",
    });
    assert_eq!(place.stat()["policy"], expected);
    let text = place.run("stat", &[], b"").good();
    for words in ["at 16 KiB, every 1 d, moved by 22 h", "at most 1 GiB, 30 d after", "9 files"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");

    let none = ["--rotate-bytes", "0", "--rotate-every", "0", "--rotate-offset", "0"];
    place.append(&none, b"");
    place.append(&["--retain-bytes", "0", "--retain-age", "0", "--retain-files", "all"], b"");
    assert_eq!(place.stat()["policy"]["retain_files"], json!(null));
    assert!(place.run("stat", &[], b"").good().contains("keeps        everything"));
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\n");
}

#[test]
fn files_get_no_longer_than_was_asked_for() {
    let place = Place::new();
    let all = "a line of some length\n".repeat(5000);
    place.append(&["--layout", "text", "--rotate-bytes", "16K"], all.as_bytes());
    let lens: Vec<u64> =
        place.segments().iter().map(|file| file.metadata().unwrap().len()).collect();
    assert!(lens.len() > 6 && lens.iter().all(|len| *len <= 16 << 10), "{lens:?}");
    let read = |file| std::fs::read_to_string(file).unwrap();
    assert_eq!(place.segments().into_iter().map(read).collect::<String>(), all);
}

#[test]
fn rotating_goes_on_in_a_new_file_unless_nothing_was_written() {
    let place = Place::new();
    place.append(&["--layout", "text"], b"one\n");
    for _ in 0..3 {
        place.run("rotate", &[], b"").good();
    }
    place.append(&[], b"two\n");
    let files = place.segments();
    assert_eq!(files.len(), 2);
    assert_eq!(std::fs::read(&files[1]).unwrap(), b"two\n");
    let current = std::fs::read_link(place.log().join("current")).unwrap();
    assert_eq!(current.file_name(), files[1].file_name());
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\n");
}

#[test]
fn a_framed_log_has_no_policy() {
    let place = Place::new();
    place.append(&[], b"one\n");
    let refused = place.run("append", &["--rotate-bytes", "1M"], b"two\n");
    let complaint = refused.complaint(2);
    // It is there already, and its kind cannot be changed.
    assert!(!complaint.contains("create"), "{complaint}");
    assert!(complaint.contains("leave out --rotate-bytes, or write to a text log"), "{complaint}");
    place.run("rotate", &[], b"").complaint(1);
    place.run("append", &["--on-full", "drop"], b"two\n").complaint(2);
    assert_eq!(place.stat()["policy"], json!(null));
    assert_eq!(place.run("cat", &[], b"").good(), "one\n");
}

#[test]
fn a_framed_log_keeps_so_many_bytes() {
    let place = Place::new();
    let both = ["--retain-bytes", "16K", "--retain-files", "1"];
    place.run("append", &[&["--layout", "framed"], &both[..]].concat(), b"").complaint(2);
    place.append(&["--segment-bytes", "4KiB", "--retain-bytes", "16K"], b"one\n");
    place.append(&[], "a line of some length\n".repeat(3000).as_bytes());
    let stat = place.stat();
    assert_eq!(stat["policy"]["retain_bytes"], 16384);
    assert!(stat["removed"]["by_bytes"]["files"].as_u64() > Some(5));
    assert!(stat["tail"].as_u64().unwrap() - stat["begin"].as_u64().unwrap() <= 16384 + 4096);
    let text = place.run("stat", &[], b"").good();
    assert!(text.contains("at most 16 KiB") && !text.contains("rotates"), "{text}");
}

#[test]
fn compress_is_a_flag_that_may_have_a_value() {
    let place = Place::new();
    let compression = |options: &[&str]| {
        place.run("append", &[&["--layout", "text"], options].concat(), b"").good();
        place.stat()["policy"]["compress"].clone()
    };
    for (options, expected) in [
        (&["--compress"][..], "zstd"),
        (&["--compress=no"], "none"),
        (&["--compress=yes"], "zstd"),
        (&["--compress=gzip"], "gzip"),
        (&["--compress=no"], "none"),
        (&["--compress", "--retain-files", "9"], "zstd"),
        (&["--compress=no", "--"], "none"),
    ] {
        assert_eq!(compression(options), expected, "{options:?}");
    }
    let log = place.log();
    run(&["append", log.to_str().unwrap(), "--compress"], b"").good();
    assert_eq!(place.stat()["policy"]["compress"], "zstd");
    assert_eq!(place.run("append", &["--compress=maybe"], b"").code, 2);
}

#[test]
fn a_refused_option_leaves_nothing_behind() {
    let place = Place::new();
    for options in [&["--rotate-bytes", "1M"][..], &["--on-full", "drop"], &["--retain-files", "1"]]
    {
        for commits in [&[][..], &["--commit", "end"]] {
            place
                .run("append", &[&["--layout", "framed"], options, commits].concat(), b"one\n")
                .complaint(2);
            assert!(!place.log().exists(), "{options:?}");
            std::fs::create_dir(place.log()).unwrap();
            place
                .run("append", &[&["--layout", "framed"], options, commits].concat(), b"one\n")
                .complaint(2);
            assert_eq!(std::fs::read_dir(place.log()).unwrap().count(), 0, "{options:?}");
            std::fs::remove_dir(place.log()).unwrap();
        }
    }
    std::fs::write(place.dir().join("vellum.toml"), "damaged").unwrap();
    place.run("append", &[], b"one\n").complaint(2);
    assert!(!place.log().exists());
}

#[test]
fn errors_name_options_as_they_were_typed() {
    let place = Place::new();
    let options = ["--layout", "framed", "--rotate-bytes", "1M", "--retain-files", "3"];
    let refused = place.run("append", &options, b"one\n");
    let complaint = refused.complaint(2);
    for words in ["leave out --rotate-bytes and --retain-files", "with --layout text"] {
        assert!(complaint.contains(words), "{complaint}");
    }
    assert!(!complaint.contains('_'), "{complaint}");
    place.append(&[], b"one\n");
    let refused = place.run("append", &["--layout", "text"], b"two\n");
    let complaint = refused.complaint(2);
    assert!(complaint.contains("--layout framed"), "{complaint}");
}

#[test]
fn what_a_day_weighs_does_not_decide_what_is_kept() {
    let place = Place::new();
    let all = "a line of a few more bytes than that\n".repeat(4000);
    let options = ["--layout", "text", "--segment-bytes", "16K"];
    let policy = ["--rotate-every", "1d", "--retain-files", "2"];
    place.append(&[options, policy[..4].try_into().unwrap()].concat(), all.as_bytes());
    assert!(place.segments().len() > 4, "the segments have to get full");
    assert_eq!(place.run("cat", &[], b"").good(), all);
    assert!(!place.run("stat", &[], b"").good().contains("removed"));

    // Files that a rule ends count, and removed files are reported with the rule.
    place.run("rotate", &[], b"").good();
    place.append(&["--retain-files", "0"], b"today\n");
    assert_eq!(place.run("cat", &[], b"").good(), "today\n");
    let removed = &place.stat()["removed"]["by_files"];
    assert_eq!(removed["bytes"], json!(all.len()));
    assert!(removed["files"].as_u64().unwrap() > 4, "{removed}");
    let text = place.run("stat", &[], b"").good();
    assert!(text.contains("removed") && text.contains("by retain-files"), "{text}");
}

#[test]
fn an_option_of_text_logs_makes_a_text_log() {
    for options in [
        &["--rotate-bytes", "10M"][..],
        &["--rotate-every", "1d"],
        &["--retain-files", "5", "--commit", "end"],
        &["--compress"],
        &["--on-full", "drop"],
    ] {
        let place = Place::new();
        place.run("append", options, b"one\n").good();
        assert_eq!(place.stat()["layout"], "text", "{options:?}");
        place.run("append", options, b"two\n").good();
        assert_eq!(fs::read_to_string(place.log().join("current")).unwrap(), "one\ntwo\n");
    }
    let place = Place::new();
    place.run("append", &["--retain-bytes", "10M"], b"one\n").good();
    assert_eq!(place.stat()["layout"], "framed", "framed logs have this option too");
    let ran = place.run("append", &["--rotate-bytes", "10M"], b"two\n");
    assert!(ran.complaint(2).contains("framed"), "{}", ran.stderr);
}
