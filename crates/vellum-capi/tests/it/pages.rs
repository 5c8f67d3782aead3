//! The programs that the pages show do what they say.

use std::fs;
use std::process::Command;
use vellum::Create;
use vellum_capi::last_error::vellum_errno_of;

use crate::programs::shared;
use crate::tools::{crate_dir, have, have_spdlog, prefix, run, scratch};

/// Builds and runs the first program in C behind `heading` on a page, which leaves a record in
/// `log`.
fn build_and_run_program_of(page: &str, heading: &str, log: &str) {
    build_and_run(page, heading, ["c", "cc"], log);
}

/// The same for a program in a language, with its compiler.
fn build_and_run(page: &str, heading: &str, [language, compiler]: [&str; 2], log: &str) {
    if !have(&[compiler, "pkg-config"]) {
        return;
    }
    let text = fs::read_to_string(crate_dir().join("../..").join(page)).unwrap();
    let (_, text) = text.split_once(heading).expect("the heading");
    let start = format!("```{language}\n");
    let (_, program) = text.split_once(&start).expect("a program");
    let (program, _) = program.split_once("```").expect("its end");
    let dir = scratch();
    let source = dir.path().join("page").with_extension(language);
    fs::write(&source, program).unwrap();
    let binary = dir.path().join("page");
    run(Command::new(compiler)
        // Of spdlog's formatter nothing has to be linked then.
        .args(["-Wall", "-Wextra", "-Werror", "-DFMT_HEADER_ONLY"])
        .arg(&source)
        .args(shared())
        .arg("-o")
        .arg(&binary));
    run(Command::new(&binary).current_dir(dir.path()).env("LD_LIBRARY_PATH", prefix().join("lib")));
    let log = vellum::Options::default().create(Create::Never).open(dir.path().join(log)).unwrap();
    let mut reader = log.reader(vellum::Lsn::ZERO).unwrap();
    let record = reader.next().unwrap().unwrap().payload;
    let is_known = |text: &[u8]| text.starts_with(b"a record") || text == b"an order";
    assert!((0..record.len()).any(|at| is_known(&record[at..])), "{record:?}");
    assert!(log.durable() > log.begin());
}

#[test]
fn the_page_for_c_has_the_errno_of_each_code() {
    let page = fs::read_to_string(crate_dir().join("../../docs/c.md")).unwrap();
    let source = fs::read_to_string(crate_dir().join("src/status.rs")).unwrap();
    let numbers = source.lines().filter_map(|line| line.trim().strip_prefix("VELLUM_"));
    let numbers = numbers.filter_map(|line| line.strip_suffix(',')?.split_once(" = "));
    let mut count = 0;
    for (name, number) in numbers {
        let errno = vellum_errno_of(number.parse().unwrap());
        let row = page.lines().find(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            cells.len() == 4 && cells[2].split(", ").any(|cell| cell == format!("`{name}`"))
        });
        let row = row.unwrap_or_else(|| panic!("{name} is in no row"));
        let shown = row.split('`').nth(1).unwrap();
        assert_eq!(errno_named(shown), errno, "{name}");
        count += 1;
    }
    assert_eq!(count, 30);
}

/// The number of an errno.
fn errno_named(name: &str) -> i32 {
    let known = [
        ("0", 0),
        ("EACCES", libc::EACCES),
        ("EBADMSG", libc::EBADMSG),
        ("EBUSY", libc::EBUSY),
        ("ECANCELED", libc::ECANCELED),
        ("EEXIST", libc::EEXIST),
        ("EINPROGRESS", libc::EINPROGRESS),
        ("EINVAL", libc::EINVAL),
        ("EIO", libc::EIO),
        ("EMSGSIZE", libc::EMSGSIZE),
        ("ENODATA", libc::ENODATA),
        ("ENOENT", libc::ENOENT),
        ("ENOSPC", libc::ENOSPC),
        ("ENOTCONN", libc::ENOTCONN),
        ("ENOTRECOVERABLE", libc::ENOTRECOVERABLE),
        ("EOPNOTSUPP", libc::EOPNOTSUPP),
        ("EOVERFLOW", libc::EOVERFLOW),
        ("EPROTONOSUPPORT", libc::EPROTONOSUPPORT),
        ("ERANGE", libc::ERANGE),
        ("EROFS", libc::EROFS),
        ("ESHUTDOWN", libc::ESHUTDOWN),
        ("ESTALE", libc::ESTALE),
        ("ETIMEDOUT", libc::ETIMEDOUT),
        ("EUSERS", libc::EUSERS),
        ("EXDEV", libc::EXDEV),
    ];
    let found = known.into_iter().find(|(other, _)| *other == name);
    found.unwrap_or_else(|| panic!("{name} is not in the list")).1
}

#[test]
fn the_program_of_the_front_page_appends_and_commits() {
    build_and_run_program_of("README.md", "## C and C++", "service.wal");
}

#[test]
fn the_program_of_the_page_for_c_appends_and_commits() {
    build_and_run_program_of("docs/c.md", "# Vellum from C", "events.log");
}

#[test]
fn the_service_of_the_page_for_c_logs_from_its_workers() {
    build_and_run_program_of("docs/c.md", "## In a service", "access.log");
}

#[test]
fn the_write_ahead_log_of_the_page_for_c_is_recovered() {
    build_and_run_program_of("docs/c.md", "## A write-ahead log", "ledger.wal");
}

#[test]
fn the_program_in_cpp_reads_what_it_has_committed() {
    build_and_run("docs/c.md", "## C++ with destructors", ["cpp", "c++"], "orders.wal");
}

#[test]
fn the_logger_of_the_page_for_cpp_logs() {
    if have_spdlog() {
        build_and_run("docs/c.md", "### spdlog", ["cpp", "c++"], "app.log");
    }
}

#[test]
fn the_loop_of_the_page_for_c_sees_what_is_durable() {
    build_and_run_program_of("docs/c.md", "## Waiting without a thread", "orders.wal");
}
