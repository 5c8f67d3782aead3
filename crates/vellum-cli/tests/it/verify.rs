//! `vellum verify`.

use serde_json::Value;

use super::support::{Place, flip};

#[test]
fn a_good_log_is_good_and_stays_as_it_was() {
    for layout in ["framed", "text"] {
        let place = Place::new();
        place.append(&["--layout", layout, "--segment-bytes", "4KiB"], &b"record\n".repeat(900));
        let files = place.files();
        let ran = place.run("verify", &[], b"");
        assert_eq!((ran.code, ran.stdout.len()), (0, 0));
        assert!(ran.stderr.contains("900 records of") && ran.stderr.contains("all good"));
        place.run("stat", &[], b"").good();
        place.run("cat", &[], b"").good();
        assert!(files == place.files(), "looking changes nothing");
    }
}

#[test]
fn a_flipped_byte_is_found_and_named() {
    let place = Place::new();
    let told = place.append(&["--segment-bytes", "4KiB"], &b"record\n".repeat(900));
    let path = &place.segments()[1];
    // Files begin with a header of 4096 bytes; a frame with one of 8.
    let lsn = told.iter().copied().find(|lsn| lsn / 4096 == 2).unwrap() + 160;
    assert!(told.contains(&lsn));
    let offset = 4096 + lsn % 4096;
    flip(path, offset as usize + 8);

    let files = place.files();
    let ran = place.run("verify", &[], b"");
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("damaged in 1 place"), "{}", ran.stderr);
    let text = ran.text();
    let named = format!("{}:{offset}: lsn {lsn}: ", path.display());
    assert!(text.starts_with(&named) && text.lines().count() == 1, "{text} and not {named}");

    let ran = place.run("verify", &["--json"], b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (3, ""));
    let report: Value = serde_json::from_str(&ran.text()).unwrap();
    assert_eq!(report["records"], 899);
    let damage = &report["damage"][0];
    assert_eq!(damage["path"], path.to_str().unwrap());
    assert_eq!((&damage["offset"], &damage["lsn"]), (&offset.into(), &lsn.into()));
    assert!(damage["reason"].as_str().unwrap().contains("checksum"));
    assert!(files == place.files(), "verify never writes");
}

#[test]
fn a_reader_prints_what_is_good_before_the_damage() {
    let place = Place::new();
    let told = place.append(&[], b"one\ntwo\nthree\n");
    flip(&place.segments()[0], 4096 + (told[1] - told[0]) as usize + 8);
    let ran = place.run("cat", &[], b"");
    assert_eq!((ran.code, &ran.stdout[..]), (3, &b"one\n"[..]));
    assert_eq!(ran.stderr.lines().count(), 1);
    assert!(ran.stderr.starts_with("vellum: "));
}

#[test]
fn a_missing_segment_is_damage() {
    let place = Place::new();
    place.append(&["--segment-bytes", "4KiB"], &b"record\n".repeat(900));
    let gone = &place.segments()[1];
    std::fs::remove_file(gone).unwrap();
    let ran = place.run("verify", &[], b"");
    assert_eq!(ran.code, 3);
    assert!(ran.text().contains(gone.to_str().unwrap()));
}
