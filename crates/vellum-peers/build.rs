//! Builds the C++ logger where its headers are, and tells the versions of the loggers in Rust.

use std::error::Error;
use std::fs;

const SPDLOG_HEADER: &str = "/usr/include/spdlog/spdlog.h";
const SPDLOG_SOURCE: &str = "src/loggers/spdlog.cpp";

fn main() -> Result<(), Box<dyn Error>> {
    let lock = fs::read_to_string("Cargo.lock")?;
    for name in ["tracing-appender", "tracing-subscriber", "flexi_logger"] {
        let variable = name.replace('-', "_").to_uppercase();
        let version = version(&lock, name).unwrap_or("?");
        println!("cargo::rustc-env={variable}_VERSION={version}");
    }
    println!("cargo::rustc-check-cfg=cfg(has_spdlog)");
    for path in ["Cargo.lock", SPDLOG_HEADER, SPDLOG_SOURCE] {
        println!("cargo::rerun-if-changed={path}");
    }
    // Without a C++ compiler or the headers there is a reason in the report in place of figures.
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").file(SPDLOG_SOURCE).cargo_warnings(false);
    if build.try_compile("vellum_peers_spdlog").is_ok() {
        println!("cargo::rustc-cfg=has_spdlog");
    }
    Ok(())
}

/// The version that `lock` has of the package `name`.
fn version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    rest.split_once('"').map(|(version, _)| version)
}
