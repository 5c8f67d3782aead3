//! Short runs, and what is made of them.

use std::path::Path;

use vellum_testing::kernel::where_it_fails;

use super::verdict::OfDisk;
use super::*;
use crate::advise::{Disk, Surroundings};
use crate::conditions::Filesystem;
use crate::progress::Silent;

fn run_for(names: &[&str], change: impl Fn(&mut Config)) -> Diagnosis {
    let dir = tempfile::tempdir().unwrap();
    let programs = names.iter().map(|name| Program::named(name).unwrap()).collect();
    let mut config = Config::new(dir.path(), programs);
    config.time = Duration::from_millis(600);
    change(&mut config);
    let diagnosis = run(&config, &mut Silent).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    diagnosis
}

#[test]
fn every_program_gets_a_verdict_and_nothing_is_left() {
    let programs = Program::all().unwrap();
    let diagnosis = run_for(&[], |config| config.programs.clone_from(&programs));
    assert_eq!(diagnosis.programs.len(), programs.len());
    for judged in &diagnosis.programs {
        assert!(judged.operations > 0 && !judged.limits.is_empty(), "{judged:?}");
        assert_eq!(judged.failures, []);
        assert!(judged.reason.contains(&judged.name) || judged.verdict != Verdict::Good);
        assert_eq!(judged.change.is_none(), judged.verdict == Verdict::Good, "{judged:?}");
    }
    let text = diagnosis.text();
    assert!(text.contains("are too short to see budgets"), "{text}");
    let page = diagnosis.to_html();
    assert!(page.contains("p99 over time") && !page.contains("better than"), "no rivals");
    let junit = diagnosis.to_junit();
    assert_eq!(junit.matches("<testcase ").count(), programs.len(), "{junit}");
}

#[test]
fn a_directory_that_stays_takes_no_verdict_away() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(dir.path(), vec![Program::named("etcd").unwrap()]);
    config.time = Duration::from_millis(300);
    // The kernel does so where a device failed.
    let run = || run(&config, &mut Silent);
    let diagnosis = where_it_fails(libc::SYS_unlinkat, libc::EROFS, run).unwrap();
    assert_eq!(diagnosis.programs.len(), 1);
    let text = diagnosis.text();
    assert!(text.contains("the directory of the run stays: Read-only"), "{text}");
}

#[test]
fn what_is_asked_for_makes_sense_or_is_refused() {
    let refused = |names: &[&str], time: Duration| {
        let programs = names.iter().map(|name| Program::named(name).unwrap()).collect();
        let mut config = Config::new("/nonexistent", programs);
        config.time = time;
        run(&config, &mut Silent).unwrap_err().to_string()
    };
    assert!(refused(&[], Duration::from_secs(1)).contains("a program"));
    assert!(refused(&["etcd"], Duration::ZERO).contains("some time"));
    let twice = refused(&["etcd", "etcd"], Duration::from_secs(1));
    assert_eq!(twice, "the program etcd is given twice");
    assert!(refused(&["etcd"], Duration::from_secs(1)).contains("/nonexistent"));
}

#[test]
fn two_diagnoses_are_compared() {
    let [one, other] = [(); 2].map(|()| run_for(&["sqlite"], |_| {}));
    let (one, other) = (one.to_json().unwrap(), other.to_json().unwrap());
    let compared = compare(("a", &one), ("b", &other)).unwrap();
    assert_eq!(compared.programs[0].name, "sqlite");
    assert!(compared.text().starts_with("sqlite: "), "{}", compared.text());
    assert!(compared.to_json().unwrap().contains("\"verdicts\""));
    let text = one.replace("\"programs\":", "\"people\":");
    assert!(compare(("a", &text), ("b", &other)).unwrap_err().to_string().starts_with("a: "));
}

#[test]
fn names_of_others_are_one_word_of_a_line_and_nothing_obeys_them() {
    let mount = |mount_point: &str| {
        let filesystem = Some(Filesystem {
            kind: "ext4".into(),
            source: "/dev/sda1".into(),
            mount_point: mount_point.into(),
            mount_options: String::new(),
        });
        let around = Surroundings { filesystem, ..Surroundings::default() };
        let places = verdict::Places::of(Path::new("/data"), &around);
        let program = Program::named("kafka").unwrap();
        let series = series::Series::of_ticks(vec![Tick::default()]);
        let causes = vec![Finding::new(Cause::NoSpace, Weight::Danger, "seen")];
        verdict::judge(&program, &series, causes, &[], &OfDisk::default(), &places).change.unwrap()
    };
    assert_eq!(mount("/mnt/a-1"), "df -h /mnt/a-1 && df -i /mnt/a-1");
    for name in ["/mnt/x;touch PWNED;#", "/mnt/it's $(touch PWNED) `x`", "/mnt/\u{1b}[31m\n'\\ é"]
    {
        let line = mount(name);
        assert!(!line.contains(['\n', '\u{1b}']), "{line}");
        let (_, line) = line.rsplit_once("df -i ").unwrap();
        let mut shell = std::process::Command::new("bash");
        let output = shell.args(["-c", &format!("printf %s {line}")]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), name, "{line}");
    }
}

#[test]
fn the_page_says_what_the_text_says() {
    let mut diagnosis = run_for(&["etcd"], |_| {});
    let judged = &mut diagnosis.programs[0];
    judged.verdict = Verdict::Marginal;
    judged.change = Some("etcd --wal-dir /fast/disk/wal".into());
    judged.causes = vec![Finding::new(Cause::SlowFlush, Weight::Reason, "the flush is slow")];
    let page = diagnosis.to_html();
    for said in ["etcd: marginal", "etcd --wal-dir /fast/disk/wal", "slow-flush", "ms of 10 ms"] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn no_page_has_anything_that_a_terminal_obeys() {
    let mut diagnosis = run_for(&["etcd"], |_| {});
    let evil = "\u{1b}[31m<script>\u{202e}";
    diagnosis.report.conditions.directory = evil.into();
    diagnosis.programs[0].reason = evil.into();
    diagnosis.surroundings.filesystem.as_mut().unwrap().mount_point = evil.into();
    let forms = [diagnosis.text(), diagnosis.to_json().unwrap(), diagnosis.to_junit()];
    for form in forms.into_iter().chain([diagnosis.to_html()]) {
        assert!(!form.contains('\u{1b}'), "{form}");
    }
}

/// etcd, after a hundred writes that took so long.
fn judged(accepted: &[Cause], causes: Vec<Finding>, p50_us: f64) -> Judged {
    judged_of(accepted, causes, &[(100, p50_us)])
}

/// The same after so many writes of each length.
fn judged_of(accepted: &[Cause], causes: Vec<Finding>, writes: &[(u64, f64)]) -> Judged {
    judged_for(&Program::named("etcd").unwrap(), accepted, causes, writes)
}

fn judged_for(
    program: &Program,
    accepted: &[Cause],
    causes: Vec<Finding>,
    writes: &[(u64, f64)],
) -> Judged {
    let tick = |(operations, p50_us): &(u64, f64)| Tick {
        operations: *operations,
        p50_us: *p50_us,
        ..Tick::default()
    };
    let series = series::Series::of_ticks(writes.iter().map(tick).collect());
    let places = verdict::Places::of(Path::new("/data"), &Surroundings::default());
    verdict::judge(program, &series, causes, accepted, &OfDisk::default(), &places)
}

#[test]
fn a_danger_outweighs_good_figures_unless_it_is_accepted() {
    let memory = || vec![Finding::new(Cause::Memory, Weight::Danger, "tmpfs is memory")];
    let refused = judged(&[], memory(), 10.0);
    assert_eq!(refused.verdict, Verdict::NotGoodEnough);
    assert_eq!(refused.reason, "tmpfs is memory");
    assert_eq!(
        refused.change.as_deref(),
        Some("mount /dev/DISK MOUNT  # a real disk in place of memory")
    );
    let accepted = judged(&[Cause::Memory], memory(), 10.0);
    assert_eq!((accepted.verdict, accepted.change), (Verdict::Good, None));
    assert_eq!(accepted.causes.len(), 1);
}

#[test]
fn the_reason_names_the_figure_the_limit_and_the_cause() {
    let slow = || vec![Finding::new(Cause::SlowFlush, Weight::Reason, "the flush is slow")];
    let marginal = judged(&[], slow(), 15_000.0);
    assert_eq!(marginal.verdict, Verdict::Marginal);
    assert!(marginal.reason.starts_with("p99 is 15"), "{}", marginal.reason);
    assert!(
        marginal
            .reason
            .ends_with("ms, and etcd wants 10 ms (100 % of the time): the flush is slow")
    );
    let change = marginal.change.unwrap();
    assert_eq!(change, "etcd --wal-dir /fast/disk/wal", "its defaults change nothing");
    let care = Finding::new(Cause::HalvesDiffer, Weight::Care, "the halves differ");
    let doubtful = judged(&[], vec![care], 30_000.0);
    assert_eq!(doubtful.verdict, Verdict::NotGoodEnough);
    assert!(doubtful.reason.ends_with("take it with care, the halves differ"));
}

#[test]
fn a_busy_machine_is_no_bad_disk() {
    let busy = || Finding::new(Cause::BusyMachine, Weight::Care, "others use the processors");
    for p50_us in [15_000.0, 44_000.0] {
        let told = judged(&[], vec![busy()], p50_us);
        assert_eq!(told.verdict, Verdict::CannotTell, "{told:?}");
        assert!(told.reason.ends_with("others use the processors"), "{}", told.reason);
        assert!(told.change.unwrap().contains("measure again"));
    }
    let overlay = Finding::new(Cause::Overlay, Weight::Reason, "an overlay copies");
    assert_eq!(judged(&[], vec![overlay, busy()], 44_000.0).verdict, Verdict::CannotTell);
    // What is seen of the disk counts, and so does a danger; good figures are good.
    let flush = Finding::new(Cause::SlowFlush, Weight::Reason, "the flush is slow");
    let seen = judged(&[], vec![flush, busy()], 44_000.0);
    assert_eq!(seen.verdict, Verdict::NotGoodEnough);
    let lost = Finding::new(Cause::LostWrites, Weight::Danger, "a write is lost");
    assert_eq!(judged(&[], vec![lost, busy()], 44_000.0).verdict, Verdict::NotGoodEnough);
    assert_eq!(judged(&[], vec![busy()], 10.0).verdict, Verdict::Good);
    let accepted = judged(&[Cause::BusyMachine], vec![busy()], 44_000.0);
    assert_eq!(accepted.verdict, Verdict::NotGoodEnough);
}

#[test]
fn a_line_stands_only_beside_a_verdict_that_is_not_good() {
    let stalls = || vec![Finding::new(Cause::Stalls, Weight::Reason, "seen")];
    let good = judged_of(&[], stalls(), &[(10_000, 10.0), (1, 20.0)]);
    assert_eq!((good.verdict, good.change), (Verdict::Good, None));
    // A heartbeat outlasts the longest stall, and not only nearly all writes.
    let bad = judged_of(&[], stalls(), &[(10_000, 10.0), (1, 1_440_000.0)]);
    assert_eq!(bad.verdict, Verdict::NotGoodEnough, "longer than the election timeout");
    let line = "etcd --heartbeat-interval=1500 --election-timeout=15000";
    assert_eq!(bad.change.as_deref(), Some(line));
}

#[test]
fn no_line_gives_up_durability() {
    for program in Program::all().unwrap() {
        for line in program.change.values() {
            let given_up =
                ["synchronous=NORMAL", "synchronous_commit", "trx_commit", "sync_interval"];
            assert!(!given_up.iter().any(|words| line.contains(words)), "{line}");
        }
    }
}

#[test]
fn the_time_counts_in_which_writes_are_slow_and_not_their_number() {
    // A second of a hundred-thousand fast writes, and a fifth of a second of four slow ones.
    let program = Program::custom(None, 4096, 10.0);
    let judged = |writes: &[(u64, f64)]| judged_for(&program, &[], vec![], writes);
    let fast = judged(&[(100_000, 10.0), (2, 20_000.0)]);
    assert_eq!(fast.verdict, Verdict::Good, "{fast:?}");
    let slow = judged(&[(100_000, 10.0), (4, 50_000.0)]);
    assert_eq!(slow.limits[0].verdict, Verdict::Good, "by its percentiles");
    assert_eq!(slow.verdict, Verdict::NotGoodEnough);
    assert!(slow.reason.starts_with("in 17 % of the time a write took longer than"), "{slow:?}");
}

#[test]
fn a_stop_in_the_turn_of_another_program_counts() {
    let series = || {
        series::Series::of_ticks(vec![Tick { operations: 100, p50_us: 10.0, ..Tick::default() }])
    };
    let places = verdict::Places::of(Path::new("/data"), &Surroundings::default());
    let of = |longest_ms| {
        let program = Program::named("etcd").unwrap();
        let of_disk = OfDisk { longest_ms, others: vec![] };
        verdict::judge(&program, &series(), vec![], &[], &of_disk, &places).verdict
    };
    assert_eq!((of(None), of(Some(300.0))), (Verdict::Good, Verdict::Good));
    assert_eq!(of(Some(2000.0)), Verdict::NotGoodEnough);
}

#[test]
fn what_the_directory_is_on_explains_nothing_where_all_is_good() {
    let overlay = || vec![Finding::new(Cause::Overlay, Weight::Reason, "an overlay copies")];
    assert_eq!(judged(&[], overlay(), 10.0).causes[0].weight, Weight::Note);
    let slow = judged(&[], overlay(), 15_000.0);
    assert_eq!(slow.causes[0].weight, Weight::Reason);
    assert!(slow.reason.ends_with("an overlay copies"), "{}", slow.reason);
}

#[test]
fn lines_about_a_filesystem_name_its_partition_and_not_the_disk() {
    let filesystem = Some(Filesystem {
        kind: "ext4".into(),
        source: "/dev/sda1".into(),
        mount_point: "/data".into(),
        mount_options: String::new(),
    });
    let disks = vec![Disk { name: "sda".into(), ..Disk::default() }];
    let around = Surroundings { filesystem, disks, ..Surroundings::default() };
    let places = verdict::Places::of(Path::new("/data/etcd"), &around);
    let line = |cause| {
        let program = Program::named("kafka").unwrap();
        let series = series::Series::of_ticks(vec![Tick::default()]);
        let causes = vec![Finding::new(cause, Weight::Danger, "seen")];
        verdict::judge(&program, &series, causes, &[], &OfDisk::default(), &places).change.unwrap()
    };
    for cause in [Cause::DataJournal, Cause::NoExtents, Cause::EmulatedSectors] {
        assert!(line(cause).contains("/dev/sda1"), "{}", line(cause));
    }
    assert!(line(Cause::WriteErrors).contains("/dev/sda"), "the disk itself fails");
    // The kernel refuses another mode of data for a filesystem that is mounted.
    assert!(!line(Cause::DataWriteback).contains("remount,"), "{}", line(Cause::DataWriteback));
}
