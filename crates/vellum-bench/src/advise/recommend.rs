//! From measurements to recommendations: a pure function, held to the measurements by its tests.

use serde::{Serialize, Serializer};
use vellum::Fill;

use super::Purpose;
use super::choice::{Choice, choose};
use super::measure::{Entrant, Times};
use super::way::{FileWay, LogWay, Way};
use crate::bytes::size;
use crate::faster::Evidence;
use crate::report::number;
use crate::stats::{Spread, ratios};

/// How sure a recommendation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sureness {
    /// Faster beyond noise: than the default or, if it is the default, than all others.
    Clear,
    /// The default, because nothing else is faster beyond noise.
    NoDifference,
    /// The default is slower beyond noise than something, and which is the fastest can't be told.
    Likely,
    /// Nothing could be measured.
    NotMeasured,
}

impl Sureness {
    fn in_words(self) -> &'static str {
        match self {
            Sureness::Clear => "clear",
            Sureness::NoDifference => "the default, because nothing is clearly faster",
            Sureness::Likely => "likely",
            Sureness::NotMeasured => "not measured",
        }
    }
}

/// One recommendation.
#[derive(Clone, Debug, Serialize)]
pub struct Recommendation {
    /// What for.
    pub purpose: Purpose,
    /// The row that speaks for it, by its key `way`; `None` if nothing could be measured.
    pub way: Option<String>,
    /// Is it what the library does by itself?
    pub is_default: bool,
    /// How sure it is.
    pub sureness: Sureness,
    /// What it comes to, in the order of importance.
    pub settings: Vec<Setting>,
    /// How long a commit took in the middle of the rounds, where commits were measured.
    pub commit_times: Vec<CommitTime>,
    /// Against the default, if it is another way.
    pub against_default: Option<Evidence>,
    /// The best of the others.
    pub next_best: Option<Rival>,
    /// Why, in a sentence.
    pub reason: String,
    #[serde(skip)]
    pub(super) chosen: Option<Way>,
}

/// How long commits took: the middle of the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct CommitTime {
    /// How many threads committed, as `4 threads`.
    pub threads: String,
    /// Half of the commits took no longer, in microseconds.
    pub p50_us: f64,
    /// 99 of a hundred took no longer.
    pub p99_us: f64,
}

impl CommitTime {
    pub(super) fn of(times: &Times) -> Option<CommitTime> {
        let median = |samples: &[f64]| Some(Spread::of(samples)?.median);
        let (p50_us, p99_us) = (median(&times.p50)?, median(&times.p99)?);
        Some(CommitTime { threads: times.threads.clone(), p50_us, p99_us })
    }

    fn text(&self) -> String {
        let CommitTime { threads, p50_us, p99_us } = self;
        format!("p50 {} us, p99 {} us with {threads}", number(*p50_us), number(*p99_us))
    }
}

/// A setting and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// As `preallocate`.
    pub name: &'static str,
    /// As `fallocate`.
    pub value: String,
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.name, &self.value).serialize(serializer)
    }
}

/// The best of the ways that are not recommended.
#[derive(Clone, Debug, Serialize)]
pub struct Rival {
    /// The row, by its key `way`.
    pub way: String,
    /// What is recommended, against it.
    pub evidence: Evidence,
}

/// How many times as fast each way was as the first that has numbers, in each round: over all its
/// figures, which count alike (their geometric mean).
pub(super) fn scores(entrants: &[Entrant]) -> Vec<Option<Vec<f64>>> {
    let samples = |entrant: &Entrant| entrant.samples().to_vec();
    let measured = || entrants.iter().map(samples).filter(|samples| !samples.is_empty());
    let base = measured().next().unwrap_or_default();
    let rounds = measured().map(|samples| samples.len()).min().unwrap_or(0);
    let score = |(sample, base): (&Vec<f64>, &Vec<f64>)| {
        let logs = ratios(sample, base).into_iter().map(f64::ln);
        (logs.sum::<f64>() / sample.len() as f64).exp()
    };
    let scores = |entrant: &Entrant| {
        let pairs = entrant.samples().iter().zip(&base).take(rounds);
        (!entrant.samples().is_empty()).then(|| pairs.map(score).collect())
    };
    entrants.iter().map(scores).collect()
}

/// What to do for `purpose`, after `entrants` were measured; the first of them is the default.
pub(super) fn recommend(purpose: Purpose, entrants: &[Entrant]) -> Recommendation {
    let scores = scores(entrants);
    let lists: Vec<Option<&[f64]>> = scores.iter().map(Option::as_deref).collect();
    let Some(choice) = choose(&lists) else {
        let first = entrants.iter().find_map(Entrant::reason);
        return nothing(purpose, first.unwrap_or("there was no time"));
    };
    let evidence = |other: usize| Evidence::of(lists[choice.chosen]?, lists[other]?);
    let against_default = if choice.chosen == 0 { None } else { evidence(0) };
    let next_best = choice.next.and_then(|next| {
        Some(Rival { way: entrants[next].way.to_string(), evidence: evidence(next)? })
    });
    let chosen = &entrants[choice.chosen];
    let mut recommendation = Recommendation {
        purpose,
        way: Some(chosen.way.to_string()),
        is_default: chosen.way.is_default(),
        sureness: sureness(choice, against_default.as_ref(), next_best.as_ref()),
        settings: settings(purpose, chosen),
        commit_times: Vec::new(),
        against_default,
        next_best,
        reason: String::new(),
        chosen: Some(chosen.way),
    };
    recommendation.reason = recommendation.explain(&entrants[0]);
    recommendation
}

/// For a purpose of which nothing could be measured.
pub(super) fn nothing(purpose: Purpose, reason: &str) -> Recommendation {
    Recommendation {
        purpose,
        way: None,
        is_default: true,
        sureness: Sureness::NotMeasured,
        settings: Vec::new(),
        commit_times: Vec::new(),
        against_default: None,
        next_best: None,
        reason: format!("nothing could be measured: {reason}"),
        chosen: None,
    }
}

fn sureness(choice: Choice, default: Option<&Evidence>, next: Option<&Rival>) -> Sureness {
    if choice.chosen == 0 {
        let is_sure = next.is_none_or(|next| next.evidence.is_sure);
        return if is_sure { Sureness::Clear } else { Sureness::NoDifference };
    }
    // Without a default there is nothing to be faster than: it is the best there is.
    let is_sure = default.is_none_or(|evidence| evidence.is_sure);
    if is_sure { Sureness::Clear } else { Sureness::Likely }
}

impl Recommendation {
    /// For people: what, how, why.
    pub(super) fn lines(&self) -> Vec<String> {
        let Recommendation { purpose, reason, .. } = self;
        let Some(way) = &self.way else {
            return vec![format!("For {} ({purpose}): –", purpose.title()), reason.clone()];
        };
        let settings =
            self.settings.iter().map(|Setting { name, value }| format!("{name}: {value}"));
        let settings: Vec<String> = settings.collect();
        let times: Vec<String> = self.commit_times.iter().map(CommitTime::text).collect();
        let times = format!("A commit takes {}", times.join("; "));
        let times = (!self.commit_times.is_empty()).then_some(times);
        let what = format!("For {} ({purpose}): {way}", purpose.title());
        let why = format!("{}: {reason}", self.sureness.in_words());
        [Some(what), Some(settings.join("; ")), times, Some(why)].into_iter().flatten().collect()
    }

    /// Why it is this way. `default` is the way that the library goes by itself.
    fn explain(&self, default: &Entrant) -> String {
        let next = self.next_best.as_ref().map(|next| against(&next.evidence, &next.way));
        let next = next.unwrap_or_else(|| "nothing else could be measured".into());
        if self.is_default {
            return next;
        }
        let Some(evidence) = &self.against_default else {
            let reason = default.reason().unwrap_or("?");
            return format!("the default does not work here ({reason}); {next}");
        };
        let is_next =
            self.next_best.as_ref().is_some_and(|next| next.way == default.way.to_string());
        let default = against(evidence, "the default");
        if is_next { default } else { format!("{default}; {next}") }
    }

    /// Is it a change that is worth making?
    pub(super) fn is_change(&self) -> bool {
        !self.is_default && self.sureness == Sureness::Clear
    }
}

/// `2.1 × as fast as mapped, off (1.9 … 2.3), in 9 of 9 rounds`.
fn against(evidence: &Evidence, other: &str) -> String {
    let Evidence { ratio, faster_rounds, rounds, .. } = evidence;
    if !evidence.is_sure {
        let others = rounds - faster_rounds;
        return format!(
            "no difference seen: {other} was as fast or faster in {others} of {rounds} rounds"
        );
    }
    format!(
        "{:.2} × as fast as {other} ({:.2} … {:.2}), faster in {faster_rounds} of {rounds} rounds",
        ratio.median, ratio.min, ratio.max
    )
}

fn settings(purpose: Purpose, entrant: &Entrant) -> Vec<Setting> {
    match entrant.way {
        Way::Log(way) => log_settings(purpose, way, entrant),
        Way::File(way) => file_settings(way),
    }
}

fn setting(name: &'static str, value: impl Into<String>) -> Setting {
    Setting { name, value: value.into() }
}

fn log_settings(purpose: Purpose, way: LogWay, entrant: &Entrant) -> Vec<Setting> {
    let is_staged = way.fill == Fill::Staged;
    let mut settings = vec![
        setting("fill", way.fill.to_string()),
        setting("preallocate", way.preallocate.to_string()),
        setting("sync", if is_staged { "none: direct, synchronous writes" } else { "fdatasync" }),
    ];
    settings.push(setting("segments", if is_staged { "16 MiB" } else { "64 MiB" }));
    if purpose == Purpose::Wal {
        settings.push(setting("threads", threads(entrant)));
    }
    settings
}

/// Is it worth to commit from several threads?
fn threads(entrant: &Entrant) -> String {
    if entrant.samples().iter().any(|sample| sample.len() != 2) {
        return "any".into();
    }
    let (one, several) = (entrant.figures(|sample| sample[0]), entrant.figures(|sample| sample[1]));
    match Evidence::of(&several, &one) {
        Some(gain) if gain.is_sure => {
            format!("several: together {:.1} × as much as one", gain.ratio.median)
        }
        _ => "one commits as much as several".into(),
    }
}

fn file_settings(way: FileWay) -> Vec<Setting> {
    vec![
        setting("method", way.method.to_string()),
        setting("preallocate", "all of it first, where that helps"),
        setting("piece", size(way.piece_bytes)),
        setting("threads", way.threads.to_string()),
        setting("sync", "one, in the end"),
    ]
}

#[cfg(test)]
#[path = "recommend_tests.rs"]
mod tests;
