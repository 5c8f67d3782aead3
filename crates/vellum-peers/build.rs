//! Builds the C++ loggers whose headers are there, and tells the versions of the loggers in Rust.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The C++ loggers, each with a header of its own.
const NATIVE: [(&str, &str); 2] = [("spdlog", "spdlog/spdlog.h"), ("quill", "quill/Backend.h")];

/// Where packages put headers. The compiler looks in `CPLUS_INCLUDE_PATH` as well.
const INCLUDE_DIRS: [&str; 2] = ["/usr/include", "/usr/local/include"];

fn main() -> Result<(), Box<dyn Error>> {
    let lock = fs::read_to_string("Cargo.lock")?;
    for name in ["tracing-appender", "tracing-subscriber", "flexi_logger"] {
        let variable = name.replace('-', "_").to_uppercase();
        let version = version(&lock, name).unwrap_or("?");
        println!("cargo::rustc-env={variable}_VERSION={version}");
    }
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rerun-if-env-changed=CPLUS_INCLUDE_PATH");
    for (name, header) in NATIVE {
        build_native(name, header);
    }
    Ok(())
}

/// Without a C++ compiler or the headers there is a reason in the report in place of figures.
fn build_native(name: &str, header: &str) {
    let source = format!("src/loggers/{name}.cpp");
    println!("cargo::rustc-check-cfg=cfg(has_{name})");
    println!("cargo::rerun-if-changed={source}");
    for path in watched(header) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").file(source).cargo_warnings(false);
    if build.try_compile(&format!("vellum_peers_{name}")).is_ok() {
        println!("cargo::rustc-cfg=has_{name}");
    }
}

/// The path that changes when `header` is installed or replaced. A path that does not exist is
/// none: cargo would build anew each time.
fn watched(header: &str) -> Vec<PathBuf> {
    let existing = |paths: [PathBuf; 2]| paths.into_iter().filter(|path| path.exists()).collect();
    let headers: Vec<PathBuf> = existing(INCLUDE_DIRS.map(|dir| Path::new(dir).join(header)));
    if headers.is_empty() { existing(INCLUDE_DIRS.map(PathBuf::from)) } else { headers }
}

/// The version that `lock` has of the package `name`.
fn version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    rest.split_once('"').map(|(version, _)| version)
}
