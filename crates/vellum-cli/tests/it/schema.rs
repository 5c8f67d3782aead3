//! The files of the suites of `vellum bench` follow `docs/results.schema.json`.

use std::path::Path;
use std::process::Command;

use boon::{Compiler, Schemas};
use serde_json::Value;

use super::support::{Place, rows, run};

const SCHEMA: &str = include_str!("../../../../docs/results.schema.json");

/// Reads the JSON of a suite, which has to be as the schema says.
#[track_caller]
pub(crate) fn results(json: &str) -> Value {
    let value: Value = serde_json::from_str(json).unwrap();
    if let Err(fault) = against_schema(&value) {
        panic!("{fault}");
    }
    value
}

fn against_schema(value: &Value) -> Result<(), String> {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    let schema = serde_json::from_str(SCHEMA).unwrap();
    compiler.add_resource("results.json", schema).unwrap();
    let index = compiler.compile("results.json", &mut schemas).unwrap();
    schemas.validate(value, index).map_err(|fault| format!("{fault:#}"))
}

#[test]
fn the_suites_without_tests_of_their_own_write_what_the_schema_says() {
    let small: [(&str, &[&str]); 2] = [
        ("read", &["--quick", "--rounds", "1"]),
        ("latency", &["--quick", "--rate", "10000", "--ways", "write,vellum-framed,vellum-wal"]),
    ];
    for (suite, options) in small {
        let place = Place::new();
        let rest = ["--json", "-", "--dir", place.dir().to_str().unwrap()];
        let report = results(&run(&[&["bench", suite], options, &rest].concat(), b"").good());
        assert_eq!(report["suite"], suite);
        assert!(!rows(&report).is_empty());
    }
}

#[test]
fn what_the_schema_does_not_say_is_refused() {
    let place = Place::new();
    let dir = place.dir().to_str().unwrap();
    let small = ["--setting", "1x10x10", "--ways", "write", "--rounds", "1", "--json", "-"];
    let json = run(&[&["bench", "append", "--dir", dir], &small[..]].concat(), b"").good();
    let good = results(&json);
    let changes: [fn(&mut Value); 6] = [
        |report| report["format"] = 3.into(),
        |report| report["suite"] = "another".into(),
        |report| report["more"] = 1.into(),
        |report| drop(report.as_object_mut().unwrap().remove("rounds")),
        |report| report["rows"]["write"]["metrics"]["time"]["better"] = "sometimes".into(),
        |report| report["conditions"]["date"] = "yesterday".into(),
    ];
    for change in changes {
        let mut changed = good.clone();
        change(&mut changed);
        assert!(against_schema(&changed).is_err(), "{changed}");
    }
    assert!(against_schema(&Value::Array(vec![good.clone(), good])).is_ok());
}

#[test]
fn the_jq_line_of_the_page_finds_a_figure() {
    let page = include_str!("../../../../docs/measuring.md");
    let mut lines = page.lines().filter(|line| line.starts_with("    ") && line.contains("| jq "));
    let (Some(line), None) = (lines.next(), lines.next()) else { panic!("one line has jq") };
    if Command::new("jq").arg("--version").output().is_err() {
        return vellum_testing::missing::skip("jq is missing");
    }
    let place = Place::new();
    let bin = Path::new(env!("CARGO_BIN_EXE_vellum")).parent().unwrap().to_str().unwrap();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    let output = shell.args(["-ec", line]).env("PATH", path).current_dir(place.dir()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    let figure: f64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert!(figure > 0.0, "{figure}");
}
