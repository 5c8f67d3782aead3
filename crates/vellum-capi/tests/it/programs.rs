//! Programs in C and C++ that are built against the installed library, as their authors would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::{crate_dir, have, have_spdlog, pkg_config, prefix, run, scratch};

const STRICT: [&str; 6] = ["-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror", "-g"];

/// Where a test's source is.
pub(crate) fn source(name: &str) -> PathBuf {
    let dir = if name == "two_processes.c" { "examples" } else { "tests/c" };
    crate_dir().join(dir).join(name)
}

/// Compiles a program with `flags` besides those that pkg-config gives; returns where it is.
pub(crate) fn compile(dir: &Path, name: &str, link: &[String], flags: &[&str]) -> PathBuf {
    let (compiler, standard) =
        if name.ends_with(".c") { ("cc", "-std=c99") } else { ("c++", "-std=c++17") };
    let program = dir.join(name).with_extension("");
    let mut command = Command::new(compiler);
    command.arg(standard).args(STRICT).args(flags).arg(source(name)).arg("-pthread");
    run(command.args(link).arg("-o").arg(&program));
    program
}

/// The compiler arguments of a program that uses the shared library.
pub(crate) fn shared() -> Vec<String> {
    pkg_config(&["--cflags", "--libs"])
}

/// A program ready to run, in a directory of its own, with the shared library in reach.
pub(crate) fn command(program: &Path, dir: &Path) -> Command {
    let work = dir.join("work");
    fs::create_dir_all(&work).unwrap();
    let mut command = Command::new(program);
    command.arg(work).env("LD_LIBRARY_PATH", prefix().join("lib"));
    command
}

/// Builds and runs a program with the shared library.
fn build_and_run(name: &str) -> Option<String> {
    build_and_run_with(name, &[])
}

/// The same, compiled with `flags` besides.
fn build_and_run_with(name: &str, flags: &[&str]) -> Option<String> {
    if !have(&["cc", "c++", "pkg-config"]) {
        return None;
    }
    let dir = scratch();
    let program = compile(dir.path(), name, &shared(), flags);
    Some(run(&mut command(&program, dir.path())))
}

#[test]
fn every_function_does_what_the_header_says() {
    build_and_run("calls.c");
}

#[test]
fn mistakes_and_refusals_come_back_as_codes_with_a_sentence() {
    build_and_run("errors.c");
}

#[test]
fn a_failed_write_reaches_every_function_that_promises_durability() {
    build_and_run("failures.c");
}

#[test]
fn a_thread_that_is_cancelled_in_a_call_ends_behind_it() {
    build_and_run("cancel.c");
}

#[test]
fn a_handler_of_the_program_for_bus_errors_may_be_left_in_any_way() {
    build_and_run("bus_handler.c");
}

#[test]
fn a_copy_of_the_library_answers_bus_errors_beside_another_one() {
    if !have(&["cc", "c++", "pkg-config"]) {
        return;
    }
    let dir = scratch();
    let link: Vec<String> =
        shared().into_iter().filter(|flag| flag != "-lvellum").chain(["-ldl".into()]).collect();
    let program = compile(dir.path(), "copies.c", &link, &[]);
    let copies = ["first.so", "second.so"].map(|name| {
        let copy = dir.path().join(name);
        fs::copy(prefix().join("lib/libvellum.so"), &copy).unwrap();
        copy
    });
    run(command(&program, dir.path()).args(copies));
}

#[test]
fn threads_forks_and_other_programs_share_a_log_and_death_loses_nothing() {
    build_and_run("processes.c");
}

/// Numbers of system calls are those of x86-64.
#[test]
#[cfg(target_arch = "x86_64")]
fn programs_do_their_work_in_a_filtered_service() {
    use vellum_testing::kernel::{Refusal, run_filtered};
    if !have(&["cc", "pkg-config"]) {
        return;
    }
    for name in ["calls.c", "processes.c", "wal.c", "bus_handler.c"] {
        let built = scratch();
        let program = compile(built.path(), name, &shared(), &[]);
        for refusal in [Refusal::Kill, Refusal::Fail(libc::EPERM), Refusal::Fail(libc::ENOSYS)] {
            let dir = scratch();
            let mut command = command(&program, dir.path());
            run_filtered(&mut command, refusal);
            run(&mut command);
        }
    }
}

#[test]
fn handles_are_held_by_destructors_in_cpp() {
    build_and_run("raii.cpp");
}

#[test]
fn the_wrapper_for_cpp_does_what_it_says_with_exceptions_and_without() {
    build_and_run("wrapper.cpp");
    build_and_run_with("wrapper.cpp", &["-fno-exceptions", "-fno-rtti"]);
    build_and_run_with("wrapper.cpp", &["-std=c++20", "-Wshadow", "-Wnon-virtual-dtor"]);
}

#[test]
fn loggers_of_spdlog_write_to_a_log() {
    if have_spdlog() {
        build_and_run("spdlog.cpp");
        build_and_run_with("spdlog.cpp", &["-std=c++20", "-Wshadow", "-Wnon-virtual-dtor"]);
    }
}

#[test]
fn a_write_ahead_log_is_recovered_after_each_kill() {
    build_and_run("wal.c");
}

#[test]
fn the_example_shows_what_two_processes_append() {
    let Some(printed) = build_and_run("two_processes.c") else { return };
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    let wanted = (0..2).flat_map(|w| (0..1000).map(move |r| format!("writer {w}, record {r}")));
    let mut wanted: Vec<String> = wanted.collect();
    wanted.sort_unstable();
    assert_eq!(lines, wanted);
}

#[test]
fn the_static_library_needs_what_pkg_config_says_and_nothing_else() {
    if !have(&["cc", "pkg-config"]) {
        return;
    }
    let dir = scratch();
    let link = pkg_config(&["--static", "--cflags", "--libs"]);
    let link: Vec<String> =
        link.iter().map(|flag| flag.replace("-lvellum", "-l:libvellum.a")).collect();
    let program = compile(dir.path(), "processes.c", &link, &[]);
    run(command(&program, dir.path()).env_remove("LD_LIBRARY_PATH"));
}

#[test]
fn the_header_is_clean_in_every_dialect() {
    if !have(&["cc", "c++"]) {
        return;
    }
    let include = prefix().join("include");
    for (compiler, language, standard) in [
        ("cc", "c", "-std=c99"),
        ("cc", "c", "-std=c11"),
        ("cc", "c", "-std=gnu17"),
        ("c++", "c++", "-std=c++11"),
        ("c++", "c++", "-std=c++20"),
    ] {
        let mut command = Command::new(compiler);
        command.args([standard, "-x", language, "-fsyntax-only"]).args(STRICT);
        run(command.arg("-I").arg(&include).arg(include.join("vellum.h")).arg("-Wno-pragmas"));
    }
}

#[test]
fn cmake_finds_the_package_and_builds_with_both_libraries() {
    if !have(&["cc", "c++", "cmake"]) {
        return;
    }
    let dir = scratch();
    // The installed tree has been moved: it was made for /opt/vellum.
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(crate_dir().join("tests/c")).arg("-B").arg(dir.path());
    run(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display())));
    run(Command::new("cmake").arg("--build").arg(dir.path()).args(["--parallel", "2"]));
    for name in ["calls", "calls-static", "raii", "raii-static", "wrapper", "wrapper-static"] {
        let work = scratch();
        run(command(&dir.path().join(name), work.path()).env_remove("LD_LIBRARY_PATH"));
    }
}

#[test]
fn cmake_refuses_a_version_that_is_not_installed() {
    if !have(&["cmake"]) {
        return;
    }
    for (version, is_found) in
        [("0.1", true), ("0.1.0", true), ("0.0", false), ("0.2", false), ("1.0", false)]
    {
        let dir = scratch();
        let project = format!(
            "cmake_minimum_required(VERSION 3.16)\nproject(p LANGUAGES NONE)\n\
             find_package(vellum {version} CONFIG REQUIRED)\n"
        );
        fs::write(dir.path().join("CMakeLists.txt"), project).unwrap();
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(dir.path()).arg("-B").arg(dir.path().join("build"));
        configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display()));
        assert_eq!(configure.output().unwrap().status.success(), is_found, "version {version}");
    }
}
