//! Which rows of two runs are the same thing measured twice.

use std::collections::{HashMap, HashSet};

use crate::report::{Better, Case, Key, Metric, Report};

/// A row of one run and the same of another.
pub(super) struct Pair<'a> {
    pub(super) suite: &'a str,
    pub(super) before: &'a Case,
    pub(super) after: &'a Case,
}

impl<'a> Pair<'a> {
    /// The metrics that both have and that have a good direction.
    pub(super) fn figures(&self) -> impl Iterator<Item = (&'a Metric, &'a Metric)> + use<'a> {
        let after = &self.after.metrics;
        let metrics = self.before.metrics.iter().filter(|it| it.better != Better::Neither);
        metrics.filter_map(|metric| {
            let is_same = |other: &&Metric| other.name == metric.name && other.unit == metric.unit;
            Some((metric, after.iter().find(is_same)?))
        })
    }
}

/// A row without a partner.
pub(super) struct Single<'a> {
    pub(super) suite: &'a str,
    pub(super) row: &'a Case,
}

pub(super) struct Pairs<'a> {
    /// In the order of the first run.
    pub(super) pairs: Vec<Pair<'a>>,
    pub(super) only_before: Vec<Single<'a>>,
    pub(super) only_after: Vec<Single<'a>>,
}

/// The identity of a row: suite, heading and keys.
type Known<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>);

/// The number is for rows that are known by the same: the first of one run is the first of the
/// other.
type Name<'a> = (Known<'a>, usize);

impl<'a> Pairs<'a> {
    pub(super) fn of(before: &'a [Report], after: &'a [Report]) -> Pairs<'a> {
        let (before, after) = (named(before), named(after));
        let by_name: HashMap<&Name<'_>, &'a Case> =
            after.iter().map(|(name, single)| (name, single.row)).collect();
        let names: HashSet<&Name<'_>> = before.iter().map(|(name, _)| name).collect();
        let only_after = after
            .iter()
            .filter(|(name, _)| !names.contains(name))
            .map(|(_, single)| Single { ..*single });
        let mut pairs =
            Pairs { pairs: Vec::new(), only_before: Vec::new(), only_after: only_after.collect() };
        for (name, Single { suite, row }) in &before {
            match by_name.get(name) {
                Some(other) => pairs.pairs.push(Pair { suite, before: row, after: other }),
                None => pairs.only_before.push(Single { suite, row }),
            }
        }
        pairs
    }
}

fn named(documents: &[Report]) -> Vec<(Name<'_>, Single<'_>)> {
    let mut counts: HashMap<Known<'_>, usize> = HashMap::new();
    let mut rows = Vec::new();
    for document in documents {
        let suite = document.suite.as_str();
        for row in &document.cases {
            let mut keys: Vec<(&str, &str)> = row.keys.iter().map(parts).collect();
            keys.sort_unstable();
            let known = (suite, row.table.as_str(), keys);
            let count = counts.entry(known.clone()).or_default();
            rows.push(((known, *count), Single { suite, row }));
            *count += 1;
        }
    }
    rows
}

fn parts(key: &Key) -> (&str, &str) {
    (&key.name, &key.value)
}
