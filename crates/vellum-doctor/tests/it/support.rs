//! Starting the program, and reading what it says.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use boon::{Compiler, Schemas};
use serde_json::Value;

pub(crate) const DOCTOR: &str = include_str!("../../../../docs/doctor.schema.json");
pub(crate) const RESULTS: &str = include_str!("../../../../docs/results.schema.json");

/// The program, which may start others.
pub(crate) fn program() -> Command {
    let mut command = Command::new("timeout");
    command.args(["120", env!("CARGO_BIN_EXE_vellum-doctor")]).stdin(Stdio::null());
    command
}

/// Runs it with these words.
pub(crate) fn run(words: &[&str]) -> Output {
    program().args(words).output().unwrap()
}

/// A short run in `dir` for one program, as JSON that is as the schema says; and the exit code.
#[track_caller]
pub(crate) fn diagnosed(dir: &Path, words: &[&str]) -> (Value, i32) {
    diagnosed_by(program(), dir, words)
}

/// The same by a command of which only the words lack.
#[track_caller]
pub(crate) fn diagnosed_by(mut command: Command, dir: &Path, words: &[&str]) -> (Value, i32) {
    let always = ["--seconds", "1", "--for", "etcd", "--json", "-"];
    let output = command.args(always).args(words).arg(dir).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    against_schema(&value).unwrap();
    (value, output.status.code().unwrap())
}

/// The names of all causes.
pub(crate) fn causes(value: &Value) -> Vec<&str> {
    let causes = value["programs"][0]["causes"].as_array().unwrap();
    causes.iter().map(|cause| cause["cause"].as_str().unwrap()).collect()
}

/// Checks `value` by the schema alone: users have no second file beside it.
pub(crate) fn against_schema(value: &Value) -> Result<(), String> {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    let url = "file:///doctor.schema.json";
    compiler.add_resource(url, serde_json::from_str(DOCTOR).unwrap()).unwrap();
    let index = compiler.compile(url, &mut schemas).unwrap();
    schemas.validate(value, index).map_err(|fault| format!("{fault:#}"))
}
