//! The text of `vellum.toml`: refused values, and that written text is TOML with the same meaning.

use std::collections::BTreeMap;

use proptest::prelude::*;
use vellum::advice::Method;
use vellum::{Create, ErrorKind, Fill, Options, Preallocate};
use vellum_advice::{Advice, FILE_NAME, FileAdvice, LogAdvice};

use super::advice::{advise, following};
use crate::support::{memory_scratch, scratch};

/// Texts that are refused, and the words of the error.
const BAD: [(&str, &[&str]); 25] = [
    ("version = 2", &["line 1", "version 2", "version 1"]),
    ("version = \"1\"", &["line 1", "string", "expected u64"]),
    ("edition = 1", &["line 1", "`edition`", "`version`"]),
    ("fill = \"mapped\"", &["line 1", "`fill`"]),
    ("\n[logs]", &["line 2", "`logs`", "`log`"]),
    ("[log]\n[log]", &["line 2", "duplicate key"]),
    ("[log", &["line 1", "`]`"]),
    ("[log] x", &["line 1", "[log] x"]),
    ("[[log]]", &["line 1"]),
    ("[log]\nfil = \"mapped\"", &["line 2", "`fil`", "`fill`"]),
    ("[log]\nfill = \"mmap\"", &["line 2", "\"mmap\"", "mapped"]),
    ("[log]\nfill = mapped", &["line 2", "fill = mapped", "quoted"]),
    ("[log]\nfill = \"mapped", &["line 2", "fill = \"mapped", "`\"`"]),
    ("[log]\nfill = \"mapped\" \"x\"", &["line 2", "\"x\""]),
    ("[log]\nfill = 7", &["line 2", "`7`", "string"]),
    ("[log]\nfill = \"staged\"", &["line 1", "[wal]"]),
    ("[log]\nfill", &["line 2", "`=`"]),
    ("[log]\nfill = \"mapped\"\nfill = \"mapped\"", &["line 3", "duplicate key"]),
    ("[log]\nfill = \"mapped\"\npreallocate = \"sparse\"", &["line 1", "fallocate"]),
    ("[wal]\nsegment_capacity_bytes = \"16 MiB\"", &["line 2", "16 MiB", "capacity", "u64"]),
    ("[wal]\nsegment_capacity_bytes = 5000", &["line 2", "5000", "multiple"]),
    ("[wal]\nsegment_capacity_bytes = 065536", &["line 2", "065536", "leading zero"]),
    ("[wal]\nprefault_bytes = 99999999999999999999", &["line 2", "99999999999999999999"]),
    ("[file]\nthreads = 0", &["line 2", "0", "1024"]),
    ("[file]\npiece_bytes = 1000 # small\u{7}", &["line 2", "printable"]),
];

#[test]
fn a_damaged_file_is_an_error_that_names_it_and_no_log_is_made() {
    let dir = scratch();
    for (text, parts) in BAD {
        advise(dir.path(), text);
        let error = following().open(dir.path().join("log")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOption, "{text:?}: {error}");
        assert!(error.path().unwrap().ends_with(FILE_NAME), "{text:?}: {error}");
        let said = error.to_string();
        assert!(!said.contains(char::is_control), "{said:?} is not for terminals");
        for part in parts {
            assert!(said.contains(part), "{text:?} → {said:?} lacks {part:?}");
        }
        assert_eq!(
            vellum_advice::read(dir.path()).unwrap_err().to_string(),
            said.replace(
                dir.path().canonicalize().unwrap().to_str().unwrap(),
                dir.path().to_str().unwrap(),
            )
        );
        let absent = following().create(Create::Never).open(dir.path().join("log")).unwrap_err();
        assert_eq!(absent.kind(), ErrorKind::NotFound);
    }
    drop(Options::default().open(dir.path().join("log")).unwrap());
}

/// What `toml` makes of a text, with the sections' names before their keys.
fn with_toml(text: &str) -> Result<BTreeMap<String, String>, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut values = BTreeMap::new();
    for (name, value) in table {
        match value {
            toml::Value::Table(section) => {
                let keys = section.into_iter();
                values.extend(keys.map(|(key, value)| (format!("{name}.{key}"), shown(&value))));
            }
            value => {
                values.insert(name, shown(&value));
            }
        }
    }
    Ok(values)
}

fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => format!("{text:?}"),
        toml::Value::Integer(number) => number.to_string(),
        // Nothing of ours.
        value => format!("{value:?}"),
    }
}

/// The same of Vellum's own advice.
fn with_vellum(advice: &Advice) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut put =
        |key: String, value: Option<String>| values.extend(value.map(|value| (key, value)));
    for (name, log) in [("wal", &advice.wal), ("log", &advice.log)] {
        put(format!("{name}.fill"), log.fill.map(|fill| format!("\"{fill}\"")));
        put(format!("{name}.preallocate"), log.preallocate.map(|way| format!("\"{way}\"")));
        let capacity = log.segment_capacity_bytes;
        put(format!("{name}.segment_capacity_bytes"), capacity.map(|bytes| bytes.to_string()));
        put(format!("{name}.prefault_bytes"), log.prefault_bytes.map(|bytes| bytes.to_string()));
    }
    put("file.method".into(), advice.file.method.map(|method| format!("\"{method}\"")));
    put("file.piece_bytes".into(), advice.file.piece_bytes.map(|bytes| bytes.to_string()));
    put("file.threads".into(), advice.file.threads.map(|threads| threads.to_string()));
    values
}

fn log_advice(fills: &'static [Fill]) -> impl Strategy<Value = LogAdvice> {
    use Preallocate::*;
    let preallocate = proptest::option::of(proptest::sample::select(
        &[Auto, Off, Sparse, Fallocate, Zeros, Recycle][..],
    ));
    let fill = proptest::option::of(proptest::sample::select(fills));
    let capacity = proptest::option::of((1_u64..=1 << 14).prop_map(|pages| pages << 16));
    let prefault = proptest::option::of((1_u64..1 << 20).prop_map(|pages| pages << 16));
    (preallocate, fill, capacity, prefault)
        .prop_map(|(preallocate, fill, segment_capacity_bytes, prefault_bytes)| LogAdvice {
            preallocate,
            fill,
            segment_capacity_bytes,
            prefault_bytes,
        })
        .prop_filter("a sparse log is not mapped", |log| {
            (log.preallocate, log.fill) != (Some(Sparse), Some(Fill::Mapped))
        })
}

fn file_advice() -> impl Strategy<Value = FileAdvice> {
    let methods = &[Method::Auto, Method::Buffered, Method::Direct, Method::Mapped][..];
    let method = proptest::option::of(proptest::sample::select(methods));
    let piece = proptest::option::of((1_u64..=1 << 18).prop_map(|pages| pages << 12));
    let threads = proptest::option::of(1_u32..=1024);
    (method, piece, threads).prop_map(|(method, piece_bytes, threads)| FileAdvice {
        method,
        piece_bytes,
        threads,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_written_is_toml_with_the_same_values(
        wal in log_advice(&[Fill::Mapped, Fill::Pwrite, Fill::Staged]),
        log in log_advice(&[Fill::Mapped, Fill::Pwrite]),
        file in file_advice(),
        comment in any::<String>(),
    ) {
        let advice = Advice { wal, log, file };
        let text = vellum_advice::to_toml(&advice, &comment);
        let mut values = with_toml(&text).unwrap();
        prop_assert_eq!(values.remove("version"), Some("1".into()));
        prop_assert_eq!(values, with_vellum(&advice));
        let dir = memory_scratch();
        advise(dir.path(), &text);
        prop_assert_eq!(vellum_advice::read(dir.path()).unwrap(), Some(advice));
    }
}
