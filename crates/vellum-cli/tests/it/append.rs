//! `vellum append`.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::support::{Place, run};

#[test]
fn lines_come_back_as_they_went_in() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let input = b"one\n\ntwo \xff\0 bytes\nlast without newline";
        assert_eq!(place.run("append", &["--layout", layout], input).good(), "");
        let output = place.run("cat", &[], b"");
        assert_eq!(output.stdout, [&input[..], b"\n"].concat(), "{layout}");
        assert_eq!(place.stat()["layout"], layout);
    }
}

#[test]
fn nothing_makes_a_log_without_records() {
    let place = Place::new();
    assert_eq!(place.run("append", &[], b"").good(), "");
    assert_eq!(place.run("cat", &[], b"").good(), "");
}

#[test]
fn many_records_come_back_across_segments_and_reads() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let mut input = String::new();
        for number in 0..200_000 {
            input += &format!("record number {number}\n");
        }
        // Longer than a read and than a segment.
        input += &"x".repeat(3 << 20);
        input += "\nand one more\n";
        let options = ["--layout", layout, "--segment-bytes", "64KiB"];
        assert_eq!(place.run("append", &options, input.as_bytes()).good(), "");
        assert!(place.run("cat", &[], b"").good() == input, "{layout}");
        assert_eq!(place.stat()["segment_capacity_bytes"], 64 << 10);
    }
}

#[test]
fn records_that_end_in_nul_may_hold_newlines() {
    let place = Place::new();
    let input = b"one\nand a half\0\0two";
    assert_eq!(place.append(&["-0"], input).len(), 3);
    assert_eq!(place.run("cat", &["-0"], b"").good(), "one\nand a half\0\0two\0");
}

#[test]
fn in_a_text_log_a_record_that_ended_in_nul_gets_a_newline() {
    let place = Place::new();
    assert_eq!(place.append(&["-0", "--layout", "text"], b"one\0two\0").len(), 2);
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\n");
    assert_eq!(place.run("cat", &["-0"], b"").good(), "one\0two\0");
}

#[test]
fn a_new_log_whose_name_cannot_be_synced_is_told_of_once() {
    if !rustix::process::geteuid().is_root() {
        return vellum_testing::missing::skip("it needs root");
    }
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("log");
    std::fs::create_dir(&log).unwrap();
    // Root without its powers over what others own, below a directory that is only passed through.
    std::os::unix::fs::chown(home.path(), Some(12345), Some(12345)).unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let append = || {
        let mut command = std::process::Command::new("setpriv");
        let lost = "-dac_override,-dac_read_search";
        command.args(["--bounding-set", lost, "--inh-caps", lost, env!("CARGO_BIN_EXE_vellum")]);
        command.arg("append").arg(&log).stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let told = append();
    assert!(told.contains("may not be read") && told.lines().count() == 1, "{told}");
    assert_eq!(append(), "");
}

#[test]
fn acknowledged_positions_are_where_the_records_are() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        let told = place.append(&["--layout", layout], b"one\ntwo\nthree\n");
        assert_eq!(told.len(), 3);
        let from = told[1].to_string();
        assert_eq!(place.run("cat", &["--from", &from], b"").good(), "two\nthree\n", "{layout}");
    }
}

#[test]
fn an_acknowledgement_comes_before_the_next_record_goes() {
    let place = Place::new();
    let mut running = place.start("append", &["--ack"]);
    let mut told: Vec<u64> = Vec::new();
    for record in ["one\n", "two\n", "three\n"] {
        running.feed(record.as_bytes());
        told.push(running.line().trim_end().parse().unwrap());
        let from = told.last().unwrap().to_string();
        assert_eq!(place.run("cat", &["--from", &from], b"").good(), record);
    }
    assert!(told.is_sorted());
}

#[test]
fn an_existing_log_is_joined_as_it_is() {
    let place = Place::new();
    place.append(&["--layout", "text", "--segment-bytes", "8KiB"], b"one\n");
    place.append(&[], b"two\n");
    place.append(&["--layout", "text", "--segment-bytes", "8192"], b"three\n");
    assert_eq!(place.run("cat", &[], b"").good(), "one\ntwo\nthree\n");
}

#[test]
fn options_that_contradict_the_log_are_usage_errors_and_change_nothing() {
    let place = Place::new();
    place.append(&[], b"one\n");
    for options in [&["--layout", "text"][..], &["--envelope"], &["--retain-files", "1"]] {
        let ran = place.run("append", options, b"two\n");
        ran.complaint(2);
    }
    assert_eq!(place.run("cat", &[], b"").good(), "one\n");
}

#[test]
fn a_log_keeps_its_shape_and_append_says_so() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        place.append(&["--layout", layout, "--segment-bytes", "8KiB"], b"one\n");
        let before = place.stat();
        let [fill, preallocate] =
            ["fill", "preallocate"].map(|name| before[name].as_str().unwrap());
        let other = if fill == "pwrite" { "mapped" } else { "pwrite" };
        let shapes = [
            (["--segment-bytes", "64KiB"], "8192"),
            (["--fill", other], fill),
            (["--preallocate", "off"], preallocate),
        ];
        for (options, kept) in shapes {
            for commit in [&[][..], &["--commit", "every"]] {
                let ran = place.run("append", &[&options[..], commit].concat(), b"more\n");
                let said = format!("the log keeps {} {kept}", options[0]);
                assert!(ran.code == 0 && ran.stderr.contains(&said), "{ran:?}");
            }
        }
        let ran = place.run("append", &["--fill", fill, "--segment-bytes", "8KiB"], b"more\n");
        assert_eq!((ran.code, &*ran.stderr), (0, ""));
        let after = place.stat();
        for name in ["segment_capacity_bytes", "fill", "preallocate"] {
            assert_eq!(before[name], after[name]);
        }
        assert_eq!(place.run("cat", &[], b"").good(), format!("one\n{}", "more\n".repeat(7)));
    }
}

#[test]
fn shapes_of_a_new_log_are_as_asked_for() {
    let place = Place::new();
    place.append(&["--preallocate", "off", "--fill", "pwrite"], b"one\n");
    let stat = place.stat();
    assert_eq!((&stat["preallocate"], &stat["fill"]), (&"off".into(), &"pwrite".into()));
}

#[test]
fn an_input_that_fails_names_the_record() {
    let place = Place::new();
    place.append(&[], b"one\n");
    let mut command = super::support::vellum();
    let dir = std::fs::File::open(place.dir()).unwrap();
    let output = command.arg("append").arg(place.log()).stdin(dir).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("vellum: record 1 of the input was not appended: "), "{text}");
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn what_is_not_a_log_is_left_alone() {
    let place = Place::new();
    let file = place.dir().join("file");
    std::fs::write(&file, "precious").unwrap();
    let args = |path: &std::path::Path| ["append".to_string(), path.to_str().unwrap().into()];
    assert!(run(&args(&file), b"x\n").complaint(1).contains("not a log"));
    assert!(run(&args(place.dir()), b"x\n").complaint(1).contains("not a log"));
    assert_eq!(std::fs::read_dir(place.dir()).unwrap().count(), 1);
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
}

#[test]
fn after_a_kill_whoever_may_write_cuts_the_file_to_its_text() {
    let openers: [&[&str]; 4] =
        [&["append"], &["prepare"], &["trim", "--before", "0"], &["rotate"]];
    for opener in openers {
        let place = Place::new();
        let options = ["--layout", "text", "--fill", "mapped", "--ack"];
        let mut running = place.start("append", &options);
        running.feed(b"one\n");
        running.line();
        running.child.kill().unwrap();
        running.child.wait().unwrap();
        let path = place.segments().pop().unwrap();
        assert!(std::fs::read(&path).unwrap().len() > 4, "it was mapped");
        assert_eq!(place.run(opener[0], &opener[1..], b"").code, 0);
        assert_eq!(std::fs::read(&path).unwrap(), b"one\n", "{opener:?}");
    }
}

#[test]
fn a_line_without_an_end_is_cut_and_told_once() {
    for layout in ["text", "framed"] {
        let place = Place::new();
        let options = ["--layout", layout, "--record-bytes-max", "1M"];
        let ran = place.run("append", &options, &vec![b'x'; 5 << 20]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(ran.stderr.matches("--record-bytes-max").count(), 1, "{}", ran.stderr);
        let text = place.run("cat", &[], b"").good();
        assert!(text.lines().all(|line| line.len() == 1 << 20), "{layout}");
        assert_eq!(text.lines().count(), 5);
    }
}

// It took as much memory as the line has bytes, up to 4 GiB.
#[test]
fn a_line_without_an_end_takes_no_memory_of_its_length() {
    let place = Place::new();
    // Private memory of the command, in KiB: less than half of the line.
    let script = "ulimit -d 98304; head -c 250000000 /dev/zero | tr '\\0' x | \"$0\" append \
                  --layout text \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_vellum")]).arg(place.log());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("--record-bytes-max"), "{said}");
    let kept = place.stat()["kept_bytes"].as_u64().unwrap();
    assert!(kept >= 250_000_000, "{kept}");
}
