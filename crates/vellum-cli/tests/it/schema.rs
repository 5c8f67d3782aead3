//! What the suites of `vellum bench` write is what `docs/results.schema.json` says.

use boon::{Compiler, Schemas};
use serde_json::Value;

use super::support::{Place, run};

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
        assert!(!report["cases"].as_array().unwrap().is_empty());
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
        |report| report["format"] = 2.into(),
        |report| report["suite"] = "another".into(),
        |report| report["more"] = 1.into(),
        |report| drop(report.as_object_mut().unwrap().remove("rounds")),
        |report| report["cases"][0]["metrics"][0]["better"] = "sometimes".into(),
        |report| report["conditions"]["date"] = "yesterday".into(),
    ];
    for change in changes {
        let mut changed = good.clone();
        change(&mut changed);
        assert!(against_schema(&changed).is_err(), "{changed}");
    }
    assert!(against_schema(&Value::Array(vec![good.clone(), good])).is_ok());
}
