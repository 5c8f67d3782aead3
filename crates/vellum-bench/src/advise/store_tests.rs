//! What is written is what the library reads, and nobody else's file is lost.

use vellum::advice::Method;
use vellum::{Fill, Options, Preallocate, Tuning};

use super::*;
use crate::advise::measure::Entrant;
use crate::advise::recommend::recommend;
use crate::advise::way::{FileWay, LogWay};
use crate::advise::{Config, Measured, Surroundings};
use crate::conditions::Conditions;

fn entrant(way: Way, speed: f64) -> Entrant {
    let mut entrant = Entrant::new("", way, Ok(()));
    (0..9).for_each(|_| entrant.take(Ok(vec![speed]), 1));
    entrant
}

fn log_way(fill: Fill, preallocate: Preallocate, is_default: bool) -> Way {
    Way::Log(LogWay { is_default, ..LogWay::new(fill, preallocate) })
}

/// In `dir` mapped logs without preparation won, and everything else is as fast as the default.
fn advised(dir: &Path) -> Advised {
    let wal = [
        entrant(log_way(Fill::Staged, Preallocate::Auto, true), 5.0),
        entrant(log_way(Fill::Pwrite, Preallocate::Zeros, false), 5.1),
    ];
    let log = [
        entrant(log_way(Fill::Mapped, Preallocate::Auto, true), 5.0),
        entrant(log_way(Fill::Pwrite, Preallocate::Off, false), 9.0),
    ];
    let default = FileWay { is_default: true, ..FileWay::new(Method::Direct, 1 << 20, 2) };
    let file = [
        entrant(Way::File(default), 1.0),
        entrant(Way::File(FileWay::new(Method::Buffered, 256 << 10, 1)), 1.5),
    ];
    let measured = [(Purpose::Wal, wal), (Purpose::Log, log), (Purpose::File, file)];
    let measured = measured.map(|(purpose, entrants)| Measured {
        purpose,
        figures: vec![("speed".into(), "GB/s")],
        entrants: Ok(entrants.to_vec()),
        times: Vec::new(),
    });
    let conditions = Conditions::now(dir, &Options::default());
    let advised = Advised::new(conditions, 9, vec![], Surroundings::default(), measured.into());
    assert_eq!(recommend(Purpose::Wal, &[]).way, None);
    advised
}

#[test]
fn only_what_is_clearly_better_is_set() {
    let dir = tempfile::tempdir().unwrap();
    let advice = advised(dir.path()).advice();
    assert_eq!(advice.wal, LogAdvice::default());
    assert_eq!(advice.log.fill, Some(Fill::Pwrite));
    assert_eq!(advice.log.preallocate, Some(Preallocate::Off));
    let expected = FileAdvice {
        method: Some(Method::Buffered),
        piece_bytes: Some(256 << 10),
        threads: Some(1),
    };
    assert_eq!(advice.file, expected);
}

#[test]
fn who_asks_for_it_follows_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let advised = advised(dir.path());
    let path = advised.write(dir.path(), false).unwrap();
    assert_eq!(vellum_advice::read(dir.path()).unwrap(), Some(advised.advice()));
    let options = Options::default().tuning(Tuning::new().advice_from(vellum_advice::nearest));
    let stat = options.open(dir.path().join("log")).unwrap().stat().unwrap();
    assert_eq!((stat.fill, stat.preallocate), (Fill::Pwrite, Preallocate::Off));
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains("1.80 × as fast as the default"), "{text}");
    assert!(text.contains("# So nothing is set for wal."), "{text}");
}

#[test]
fn a_run_below_its_own_advice_measures_the_defaults() {
    let dir = tempfile::tempdir().unwrap();
    advised(dir.path()).write(dir.path(), false).unwrap();
    let mut config = Config::new(dir.path());
    config.time = std::time::Duration::from_millis(100);
    config.purposes = vec![Purpose::Log];
    let again = crate::advise::run(&config, &mut crate::Silent).unwrap();
    let default = again.report.cases[0].value("way").unwrap().to_string();
    let plain = Options::default().open(dir.path().join("plain")).unwrap();
    let fill = plain.stat().unwrap().fill;
    assert_eq!(default, format!("default ({fill}, auto)"));
}

#[test]
fn a_file_of_somebody_else_stays() {
    let dir = tempfile::tempdir().unwrap();
    let advised = advised(dir.path());
    let path = dir.path().join(vellum_advice::FILE_NAME);
    fs::write(&path, "# mine\n").unwrap();
    let error = advised.write(dir.path(), false).unwrap_err();
    assert!(error.to_string().contains("--force"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "# mine\n");
    advised.write(dir.path(), true).unwrap();
    // Now it is ours.
    advised.write(dir.path(), false).unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}
