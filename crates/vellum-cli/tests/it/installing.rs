//! What `make install` installs of the commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::Place;

const PROGRAM: &str = env!("CARGO_BIN_EXE_vellum");

/// Runs a target of the Makefile below `root`, with the program of the tests instead of a release;
/// returns its output.
fn make(target: &str, root: &Path, ship: &Path) -> String {
    let mut make = Command::new("make");
    make.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).args(["-s", target]);
    make.args(["-o", "build", "-o", "install-c", "-o", "uninstall-c", "PREFIX=/usr"]);
    make.arg(format!("BUILT={}", Path::new(PROGRAM).parent().unwrap().display()));
    make.arg(format!("DESTDIR={}", root.display()));
    // Another program that knows its man pages takes the place of these.
    make.arg(format!("SHIP_BUILT={}", ship.display())).arg(format!("DOCTOR_BUILT={PROGRAM}"));
    for inherited in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
        make.env_remove(inherited);
    }
    let output = make.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn the_program_that_ships_is_installed_where_it_was_built() {
    if Command::new("objcopy").arg("--version").output().is_err() {
        return vellum_testing::missing::skip("objcopy is missing");
    }
    let place = Place::new();
    let root = place.dir().join("root");
    let files_of = |command: &str| {
        [
            format!("bin/{command}"),
            format!("share/bash-completion/completions/{command}"),
            format!("share/zsh/site-functions/_{command}"),
            format!("share/fish/vendor_completions.d/{command}.fish"),
        ]
    };

    let said = make("install", &root, Path::new("/nowhere"));
    assert!(
        said.starts_with("install: without vellum-ship") && said.contains("make ship"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(root.join("usr/bin/vellum").exists() && !root.join("usr/bin/vellum-ship").exists());
    assert!(root.join("usr/share/man/man1/vellum-append.1").exists());

    assert_eq!(make("install", &root, Path::new(PROGRAM)), "");
    let usr = root.join("usr");
    for file in files_of("vellum-ship").iter().chain(&files_of("vellum-doctor")) {
        assert!(usr.join(file).exists(), "{file}: {:?}", files_below(&usr));
    }
    make("uninstall", &root, Path::new(PROGRAM));
    assert!(files_below(&root).is_empty(), "{:?}", files_below(&root));
}
