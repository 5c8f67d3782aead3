//! `include/vellum.h` is made of the sources, and is up to date.
//!
//! `VELLUM_BLESS=1 cargo test -p vellum-capi header` writes it anew.

use std::fs;
use std::path::PathBuf;

use crate::tools::crate_dir;

/// The parts of the header, in its order: a source file, and its subject.
const PARTS: [(&str, &str); 26] = [
    ("version", "Versions"),
    ("status", "Codes"),
    ("last_error", "What went wrong"),
    ("options", "Options"),
    ("log", "Opening a log"),
    ("append", "Appending"),
    ("batch", "Appending several records, all or none"),
    ("reservation", "Writing a record where it will stay"),
    ("record", "A record"),
    ("gap", "What is missing in a log"),
    ("reader", "Reading and following"),
    ("backwards", "Reading backwards"),
    ("position", "Positions to store outside of a log"),
    ("read_at", "One record by its position"),
    ("commit", "Surviving a power cut"),
    ("committer", "Commits to poll for"),
    ("checkpoint", "When a checkpoint is due"),
    ("upkeep", "Files: going on, trimming, truncating, preparing"),
    ("stat", "The state of a log"),
    ("stat/elements", "The files and processes of a state"),
    ("stat/holds", "Who holds what others may wait for"),
    ("stat/gaps", "What was removed from a log"),
    ("stat/ship", "How shipping goes"),
    ("cursor", "Named cursors"),
    ("verify", "Damage"),
    ("bus_errors", "Storage that fails under a mapping"),
];

const EPILOGUE: &str = "
#ifdef __cplusplus
} /* extern \"C\" */
#endif

#endif /* VELLUM_H */
";

fn header_path() -> PathBuf {
    crate_dir().join("include/vellum.h")
}

/// Text that cbindgen makes of one source file.
fn part(name: &str) -> String {
    let config = cbindgen::Config::from_file(crate_dir().join("cbindgen.toml")).unwrap();
    let source = crate_dir().join("src").join(name).with_extension("rs");
    let mut text = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(source)
        .generate()
        .unwrap_or_else(|error| panic!("{name}: {error}"))
        .write(&mut text);
    String::from_utf8(text).unwrap().trim().to_string()
}

fn generate() -> String {
    let mut header = fs::read_to_string(crate_dir().join("include/prelude.h")).unwrap();
    for (name, title) in PARTS {
        let rule = "-".repeat(100 - "/* ---- ".len() - title.len() - " */".len() - 1);
        header.push_str(&format!("\n/* ---- {title} {rule} */\n\n{}\n", part(name)));
    }
    header + EPILOGUE
}

#[test]
fn the_header_is_what_the_sources_say() {
    let (generated, path) = (generate(), header_path());
    if std::env::var_os("VELLUM_BLESS").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == generated,
        "{} is out of date: VELLUM_BLESS=1 cargo test -p vellum-capi header",
        path.display()
    );
}

#[test]
fn every_item_of_the_header_has_a_comment() {
    let header = fs::read_to_string(header_path()).unwrap();
    let body = header.split_once("extern \"C\" {").unwrap().1;
    let mut previous = "";
    for line in body.lines() {
        let starts_item = line.starts_with("#define VELLUM_")
            || line.starts_with("typedef ")
            || line.contains("vellum_") && line.contains('(') && !line.trim().starts_with("//");
        assert!(!starts_item || previous.trim().starts_with("//"), "no comment before {line:?}");
        previous = line;
    }
}
