//! The same programs while valgrind, and the compiler's sanitizers, watch what they do to memory.

use std::path::Path;
use std::process::Command;

use crate::programs::{command, compile, shared, source};
use crate::tools::{have, run, scratch};

/// Runs a program under valgrind, which ends with another code where it saw anything.
fn under_valgrind(name: &str, flags: &[&str]) {
    if !have(&["cc", "c++", "pkg-config", "valgrind"]) {
        return;
    }
    let dir = scratch();
    let program = compile(dir.path(), name, &shared(), &[]);
    let plain = command(&program, dir.path());
    let mut watched = Command::new("valgrind");
    watched.args(["--quiet", "--error-exitcode=9"]).args(flags);
    watched.arg(format!("--suppressions={}", source("valgrind.supp").display()));
    watched.arg(&program).args(plain.get_args());
    watched.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    run(&mut watched);
}

const LEAKS: [&str; 2] = ["--leak-check=full", "--errors-for-leak-kinds=definite"];

#[test]
fn valgrind_sees_no_error_and_no_leak_in_any_function() {
    under_valgrind("calls.c", &LEAKS);
    under_valgrind("wrapper.cpp", &LEAKS);
}

#[test]
fn valgrind_sees_no_error_and_no_leak_where_functions_fail() {
    under_valgrind("errors.c", &LEAKS);
    under_valgrind("failures.c", &LEAKS);
    under_valgrind("children.c", &LEAKS);
}

// Leaks are not looked for: a process that is killed, or executes another program, frees nothing.
#[test]
fn valgrind_sees_no_error_in_threads_and_forks() {
    under_valgrind("processes.c", &[]);
}

#[test]
fn sanitizers_see_no_error_and_no_leak() {
    if !have(&["cc", "pkg-config"]) || !has_sanitizers() {
        return;
    }
    for name in ["calls.c", "errors.c", "failures.c", "children.c", "wrapper.cpp"] {
        let dir = scratch();
        let flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
        let program = compile(dir.path(), name, &shared(), &flags);
        run(command(&program, dir.path()).env("ASAN_OPTIONS", "detect_leaks=1"));
    }
}

fn has_sanitizers() -> bool {
    let dir = scratch();
    let main: &Path = &dir.path().join("main.c");
    std::fs::write(main, "int main(void) { return 0; }").unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-fsanitize=address,undefined", "-o"]).arg(dir.path().join("main")).arg(main);
    let has = compiler.output().is_ok_and(|output| output.status.success());
    if !has {
        vellum_testing::missing::skip("this compiler has no sanitizers");
    }
    has
}
