//! The page of a short run, changed by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use vellum_bench::doctor::{Config, Diagnosis, Finding, Program, Tick, Verdict, Weight, run};
use vellum_bench::{Cause, Silent};

use super::STYLE;

fn diagnosis(names: &[&str]) -> Diagnosis {
    let dir = tempfile::tempdir().unwrap();
    let programs = names.iter().map(|name| Program::named(name).unwrap()).collect();
    let mut config = Config::new(dir.path(), programs);
    config.time = Duration::from_millis(600);
    run(&config, &mut Silent).unwrap()
}

fn page(diagnosis: &Diagnosis) -> String {
    super::page(diagnosis, &diagnosis.report.conditions.directory)
}

fn finding(cause: Cause, weight: Weight, what: &str) -> Finding {
    Finding { cause, weight, what: what.into() }
}

/// A tick of a second, `at` seconds after the begin.
fn tick(at: u32, p99_ms: f64) -> Tick {
    Tick {
        at_ms: f64::from(at) * 1e3,
        span_ms: 1e3,
        operations: 100,
        p50_us: 300.0,
        p99_us: p99_ms * 1e3,
        max_us: p99_ms * 1.5e3,
        ..Tick::default()
    }
}

#[test]
fn the_verdict_comes_first_and_the_curve_last() {
    let mut diagnosis = diagnosis(&["etcd"]);
    let judged = &mut diagnosis.programs[0];
    judged.verdict = Verdict::NotGoodEnough;
    judged.reason = "p99 is 44 ms".into();
    judged.change = Some("etcd --wal-dir /fast/disk/wal".into());
    judged.causes = vec![
        finding(Cause::SlowFlush, Weight::Reason, "the flush is slow"),
        finding(Cause::NoFua, Weight::Note, "a durable write is two"),
    ];
    let page = page(&diagnosis);
    let mut rest = page.as_str();
    for said in [
        "<h1>not good enough</h1>",
        "p99 is 44 ms",
        "Limits",
        "etcd FAQ",
        "slow-flush",
        "the flush is slow",
        "etcd --wal-dir /fast/disk/wal",
        "Over time",
        "<polyline",
        "Good to know",
        "a durable write is two",
        "Single calls",
        "Conditions",
    ] {
        let (_, behind) = rest.split_once(said).unwrap_or_else(|| panic!("no {said} in {rest}"));
        rest = behind;
    }
    for limit in &diagnosis.programs[0].limits {
        assert!(page.contains(&limit.limit.source), "{}", limit.limit.source);
    }
}

#[test]
fn nothing_on_the_page_is_obeyed_or_fetched() {
    let mut diagnosis = diagnosis(&["etcd"]);
    let evil = "\u{1b}[31m</style><script>fail()</script>\u{202e}\" onload=\"x";
    diagnosis.report.conditions.directory = evil.into();
    diagnosis.report.conditions.command_line = vec![evil.into()];
    diagnosis.report.warnings = vec![evil.into()];
    diagnosis.surroundings.filesystem.as_mut().unwrap().mount_point = evil.into();
    let judged = &mut diagnosis.programs[0];
    (judged.name, judged.reason, judged.about) = (evil.into(), evil.into(), evil.into());
    judged.source = evil.into();
    judged.change = Some(evil.into());
    judged.causes = vec![
        finding(Cause::Stalls, Weight::Reason, evil),
        finding(Cause::NoFua, Weight::Note, evil),
    ];
    judged.limits[0].limit.source = evil.into();
    let page = page(&diagnosis);
    assert!(page.matches("&lt;script&gt;").count() > 10, "{page}");
    for obeyed in ["<script", "\u{1b}", "\u{202e}", "\" onload", "src=", "@import", "url("] {
        assert!(!page.contains(obeyed), "{obeyed}");
    }
    assert_eq!(page.matches("</style>").count(), 1);
    assert_eq!(page.matches("href=\"data:,\"").count(), 1);
}

#[test]
fn slow_stretches_are_marked_and_the_turns_of_others_are_gaps() {
    let mut diagnosis = diagnosis(&["etcd"]);
    let slow = [3, 4, 8];
    let times = [0, 1, 2, 3, 4, 7, 8, 9];
    let ticks = times.map(|at| tick(at, if slow.contains(&at) { 30.0 } else { 1.0 }));
    diagnosis.programs[0].ticks = ticks.to_vec();
    let shown = page(&diagnosis);
    assert_eq!(shown.matches("class=\"slow\"").count(), 2, "{shown}");
    assert!(shown.contains("Slow stretches: 3.0 to 5.0 s, 8.0 to 9.0 s."), "{shown}");
    assert_eq!(shown.matches("<polyline").count(), 2 * 3, "two parts of three lines");
    diagnosis.programs[0].ticks = vec![tick(0, 1.0)];
    assert!(page(&diagnosis).contains("No stretch was slow."));
    diagnosis.programs[0].ticks.clear();
    assert!(!page(&diagnosis).contains("Over time"), "nothing was measured");
}

#[test]
fn no_drawing_has_a_place_that_is_none() {
    let mut diagnosis = diagnosis(&["etcd", "kafka"]);
    let odd = [0.0, 1e-9, 1e12, f64::NAN, f64::INFINITY];
    diagnosis.programs[0].ticks = (0..).zip(odd).map(|(at, p99_ms)| tick(at, p99_ms)).collect();
    let page = page(&diagnosis);
    for part in page.split("points=\"").skip(1) {
        let points = part.split('"').next().unwrap();
        assert!(!points.contains("NaN") && !points.contains("inf"), "{points}");
    }
}

/// The colours of the light page, and of the dark one.
fn palettes() -> [BTreeMap<&'static str, [f64; 3]>; 2] {
    let (light, dark) = STYLE.split_once("prefers-color-scheme: dark").unwrap();
    [light, dark].map(|part| {
        let colours =
            part.lines().filter_map(|line| line.trim().strip_prefix("--")?.split_once(": #"));
        colours.map(|(name, hex)| (name, rgb(hex.trim_end_matches(';')))).collect()
    })
}

fn rgb(hex: &str) -> [f64; 3] {
    [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0)
}

/// How far two colours are apart, as the guidelines for accessible pages count it.
fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let linear = |part: f64| match part {
        ..=0.04045 => part / 12.92,
        part => ((part + 0.055) / 1.055).powf(2.4),
    };
    let light = |[red, green, blue]: [f64; 3]| {
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue) + 0.05
    };
    let (one, other) = (light(one), light(other));
    one.max(other) / one.min(other)
}

#[test]
fn every_text_can_be_read_in_light_and_in_dark() {
    let texts = [
        ("ink", "paper"),
        ("soft", "paper"),
        ("link", "paper"),
        ("ink", "quiet"),
        ("ink", "slow"),
        ("on-verdict", "good"),
        ("on-verdict", "marginal"),
        ("on-verdict", "cannot-tell"),
        ("on-verdict", "not-good-enough"),
    ];
    for palette in palettes() {
        for (text, ground) in texts {
            let found = contrast(palette[text], palette[ground]);
            assert!(found >= 4.5, "{text} on {ground}: {found:.2}");
        }
    }
    let apart = contrast([0.0; 3], [1.0; 3]);
    assert!((20.9..21.1).contains(&apart), "{apart}");
}
