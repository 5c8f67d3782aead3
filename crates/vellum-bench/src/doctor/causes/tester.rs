//! Causes in what measured: its own processor time, the host, other programs, and two halves of a
//! run that say different things.

use crate::cause::Cause;
use crate::doctor::evidence::{Evidence, Finding, Weight};
use crate::doctor::machine::Processors;
use crate::doctor::series::{Tick, median};
use crate::doctor::verdict::Verdict;

/// A thread that uses so much of a processor waits for that, and not for a disk.
const OWN: f64 = 0.9;
/// The halves differ by so much.
const APART: f64 = 2.0;
/// With fewer ticks a half says nothing.
const TICKS_MIN: usize = 4;

pub(super) fn causes(evidence: &Evidence<'_>) -> Vec<Finding> {
    let rules =
        [tester_bound(evidence), steal(evidence), busy_machine(evidence), halves_differ(evidence)];
    rules.into_iter().flatten().collect()
}

fn tester_bound(evidence: &Evidence<'_>) -> Option<Finding> {
    let own = evidence.processors.own / f64::from(evidence.program.pattern.threads);
    (evidence.is_synced() && own >= OWN).then(|| {
        let what = format!(
            "this program used {:.0} % of a processor: the tester is the limit, and not the disk",
            own * 100.0
        );
        Finding::new(Cause::TesterBound, Weight::Care, what)
    })
}

fn steal(evidence: &Evidence<'_>) -> Option<Finding> {
    let stolen = evidence.processors.stolen;
    evidence.processors.are_stolen().then(|| {
        let what = format!("the host gave {:.0} % of the processors to others", stolen * 100.0);
        Finding::new(Cause::Steal, Weight::Care, what)
    })
}

fn busy_machine(evidence: &Evidence<'_>) -> Option<Finding> {
    let Processors { others, waiting, .. } = evidence.processors;
    if let (1.., all) = evidence.left_out {
        let what = format!(
            "in {} of {all} turns others used the processors; these turns do not count",
            evidence.left_out.0
        );
        return Some(Finding::new(Cause::BusyMachine, Weight::Note, what));
    }
    evidence.processors.are_busy().then(|| {
        let what = format!(
            "other programs used {:.0} % of the processors, and a writer waited for one {:.0} % of \
             its time",
            others * 100.0,
            waiting * 100.0
        );
        Finding::new(Cause::BusyMachine, Weight::Care, what)
    })
}

impl Cause {
    /// Is it the machine that measured, so that nothing follows for the disk?
    pub(in crate::doctor) fn is_of_machine(self) -> bool {
        matches!(self, Cause::TesterBound | Cause::Steal | Cause::BusyMachine)
    }
}

/// Would the verdict of one half be another than that of the other?
fn halves_differ(evidence: &Evidence<'_>) -> Option<Finding> {
    let (first, second) = evidence.series.halves();
    let p99 = |half: &[Tick]| {
        let busy = half.iter().filter(|tick| tick.operations > 0);
        let times: Vec<f64> = busy.map(|tick| tick.p99_us / 1e3).collect();
        (times.len() >= TICKS_MIN).then(|| median(&times))
    };
    let (first, second) = (p99(first)?, p99(second)?);
    let limit = evidence.program.limits.first()?;
    let verdicts = [first, second].map(|value| Verdict::of(limit, value));
    let is_apart = first.max(second) >= APART * first.min(second);
    (verdicts[0] != verdicts[1] && is_apart).then(|| {
        Finding::new(
            Cause::HalvesDiffer,
            Weight::Care,
            format!(
                "p99 was {first:.2} ms in the first half and {second:.2} ms in the second: measure \
                 for longer"
            ),
        )
    })
}
