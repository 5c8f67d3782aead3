//! What `make install-c` installs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::Command;

use crate::tools::{PREFIX, built, have, make, make_with, prefix, root, run, scratch};

fn files_below(root: &Path, dir: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            files_below(root, &path, found);
        } else {
            found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_string());
        }
    }
}

#[test]
fn the_files_are_where_packagers_look_for_them() {
    let mut found = BTreeSet::new();
    files_below(root(), root(), &mut found);
    let expected = [
        "opt/vellum/include/vellum.h",
        "opt/vellum/include/vellum.hpp",
        "opt/vellum/include/vellum_spdlog.hpp",
        "opt/vellum/lib/cmake/vellum/vellum-config-version.cmake",
        "opt/vellum/lib/cmake/vellum/vellum-config.cmake",
        "opt/vellum/lib/libvellum.a",
        "opt/vellum/lib/libvellum.so",
        "opt/vellum/lib/libvellum.so.0",
        "opt/vellum/lib/libvellum.so.0.1.0",
        "opt/vellum/lib/pkgconfig/vellum.pc",
    ];
    assert!(found.iter().map(String::as_str).eq(expected), "{found:#?}");
    let link = |name: &str| fs::read_link(prefix().join("lib").join(name)).unwrap();
    assert_eq!(link("libvellum.so"), Path::new("libvellum.so.0"));
    assert_eq!(link("libvellum.so.0"), Path::new("libvellum.so.0.1.0"));
}

#[test]
fn uninstalling_takes_away_what_was_installed_and_nothing_else() {
    let root = scratch();
    let foreign = root.path().join(PREFIX).join("lib/libother.so");
    make("install-c", root.path());
    fs::write(&foreign, "of somebody else").unwrap();
    make("uninstall-c", root.path());
    let mut left = BTreeSet::new();
    files_below(root.path(), root.path(), &mut left);
    assert!(left.iter().eq(["opt/vellum/lib/libother.so"]), "{left:#?}");
    assert!(!root.path().join(PREFIX).join("lib/cmake/vellum").exists());
}

/// As a release is installed, with the files that the tests have built.
fn install_stripped(root: &Path, variables: &[&str]) -> BTreeSet<String> {
    install_as("C_PROFILE=release", root, variables)
}

fn install_as(profile: &str, root: &Path, variables: &[&str]) -> BTreeSet<String> {
    super::tools::root();
    let built = format!("C_BUILT={}", built().join("debug").display());
    let variables = [&[profile, built.as_str()], variables].concat();
    make_with("install-c-built", root, &variables);
    let mut found = BTreeSet::new();
    files_below(root, root, &mut found);
    found
}

fn sections(file: &Path) -> String {
    run(Command::new("readelf").arg("-SW").arg(file))
}

#[test]
fn what_is_installed_has_no_debug_information() {
    if !have(&["readelf", "objcopy"]) {
        return;
    }
    let root = scratch();
    let found = install_stripped(root.path(), &[]);
    assert!(!found.iter().any(|name| name.contains("debug")), "{found:#?}");
    for name in ["libvellum.a", "libvellum.so"] {
        let sections = sections(&root.path().join(PREFIX).join("lib").join(name));
        assert!(sections.contains(".text") && !sections.contains(".debug_line"), "{name}");
    }
}

/// The shared library of a package is linked without any.
#[test]
fn the_static_library_of_a_package_has_no_debug_information() {
    if !have(&["readelf", "objcopy"]) {
        return;
    }
    let root = scratch();
    install_as("C_PROFILE=shipped", root.path(), &[]);
    let sections = sections(&root.path().join(PREFIX).join("lib/libvellum.a"));
    assert!(sections.contains(".text") && !sections.contains(".debug_line"));
}

#[test]
fn debug_files_are_where_debuggers_look_for_them() {
    if !have(&["readelf", "objcopy"]) {
        return;
    }
    let root = scratch();
    let debug = "usr/lib/debug/opt/vellum/lib/libvellum.so.0.1.0.debug";
    let found = install_stripped(root.path(), &["DEBUGDIR=/usr/lib/debug"]);
    assert!(found.contains(debug), "{found:#?}");
    assert!(sections(&root.path().join(debug)).contains(".debug_line"));
    let library = root.path().join(PREFIX).join("lib/libvellum.so");
    let link = run(Command::new("readelf").arg("--string-dump=.gnu_debuglink").arg(library));
    assert!(link.contains("libvellum.so.0.1.0.debug"), "{link}");
    make_with("uninstall-c", root.path(), &["DEBUGDIR=/usr/lib/debug"]);
    assert!(!root.path().join(debug).exists());
}

#[test]
fn nothing_that_is_installed_names_the_directory_it_was_staged_in() {
    for name in ["pkgconfig/vellum.pc", "cmake/vellum/vellum-config.cmake"] {
        let text = fs::read_to_string(prefix().join("lib").join(name)).unwrap();
        assert!(!text.contains(root().to_str().unwrap()), "{name}: {text}");
        assert!(!text.contains('@'), "{name} has a gap: {text}");
    }
}

/// A compiler puts a new file where its output goes, which as root can be anywhere.
#[test]
fn installing_leaves_the_null_device_a_device() {
    root();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

/// Names of the functions that the header declares.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(prefix().join("include/vellum.h")).unwrap();
    let body = header.split_once("extern \"C\" {").unwrap().1;
    let code = body.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.filter_map(|line| line.split_once('('))
        .filter_map(|(before, _)| before.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("vellum_"))
        .map(String::from)
        .collect()
}

#[test]
fn the_library_exports_the_functions_of_the_header_and_nothing_else() {
    if !have(&["nm", "readelf"]) {
        return;
    }
    let library = prefix().join("lib/libvellum.so");
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
    let exported = symbols.lines().filter_map(|line| line.split_whitespace().nth(2));
    let exported: BTreeSet<String> = exported.map(String::from).collect();
    assert_eq!(exported, declared());
    assert!(exported.len() > 50, "{exported:?}");
    let dynamic = run(Command::new("readelf").arg("-d").arg(&library));
    assert!(dynamic.contains("soname: [libvellum.so.0]"), "{dynamic}");
}
