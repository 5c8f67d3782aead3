//! Running the tools that these tests need, and doing without those that are missing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

/// Where the library is installed below the directory that takes the place of `/`.
pub(crate) const PREFIX: &str = "opt/vellum";

pub(crate) fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn scratch() -> TempDir {
    TempDir::new().unwrap()
}

/// Whether all these tools are there; says which is not.
pub(crate) fn have(tools: &[&str]) -> bool {
    let is_missing = |tool: &&&str| Command::new(tool).arg("--version").output().is_err();
    match tools.iter().find(is_missing) {
        None => true,
        Some(tool) => {
            vellum_testing::missing::skip(format_args!("{tool} is missing"));
            false
        }
    }
}

/// Whether the headers of spdlog are there; says so where they are not.
pub(crate) fn have_spdlog() -> bool {
    let mut check = Command::new("c++");
    check.args(["-fsyntax-only", "-x", "c++", "-include", "spdlog/spdlog.h", "/dev/null"]);
    let is_there = check.output().is_ok_and(|output| output.status.success());
    if !is_there {
        vellum_testing::missing::skip(format_args!("spdlog is missing (libspdlog-dev)"));
    }
    is_there
}

/// Runs a command that is to succeed; returns its output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{printed}{said}", output.status);
    printed
}

/// The directory below which the library is installed, by `make install-c`, once for all tests.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<TempDir> = OnceLock::new();
    let installed = || {
        let root = scratch();
        make("install-c", root.path());
        root
    };
    ROOT.get_or_init(installed).path()
}

/// Cargo's directory to build in, in which its own one for what tests make is.
pub(crate) fn built() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap()
}

/// Runs a target of the Makefile that installs below `root`, or uninstalls there.
pub(crate) fn make(target: &str, root: &Path) {
    make_with(target, root, &["C_PROFILE=dev"]);
}

/// The same with other variables.
pub(crate) fn make_with(target: &str, root: &Path, variables: &[&str]) {
    let mut make = Command::new("make");
    make.current_dir(crate_dir().join("../..")).arg(target).args(variables);
    make.arg(format!("PREFIX=/{PREFIX}")).arg(format!("DESTDIR={}", root.display()));
    make.env("CARGO_TARGET_DIR", built()).env("CARGO", env!("CARGO"));
    for inherited in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
        make.env_remove(inherited);
    }
    run(&mut make);
}

pub(crate) fn prefix() -> PathBuf {
    root().join(PREFIX)
}

/// The answer of pkg-config about the installed library.
pub(crate) fn pkg_config(questions: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.arg("--define-prefix").args(questions).arg("vellum");
    let answer = run(command.env("PKG_CONFIG_PATH", prefix().join("lib/pkgconfig")));
    answer.split_whitespace().map(String::from).collect()
}
