//! The records of the check command, compared with the promises to the workload.

use anyhow::bail;

use super::command::Outcome;
use super::ranges::{self, Ranges};

/// The report of a check command.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The records that are there.
    pub records: Ranges,
    /// Its complaints, and lines that cannot be understood.
    pub complaints: Vec<String>,
}

impl Found {
    /// Reads what the command printed and how it ended.
    pub fn new(outcome: &Outcome) -> Found {
        let mut found = Found::default();
        for line in outcome.stdout.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match ranges::parse(line) {
                Some(range) => found.records.insert(&range),
                None if line.starts_with("BAD") => found.complaints.push(line.to_owned()),
                None => found.complaints.push(format!("the check printed {line:?}")),
            }
        }
        if !outcome.is_success() {
            found.complaints.push(format!("the check {outcome}"));
        }
        found
    }
}

/// The promise that must hold after a cut.
#[derive(Clone, Debug)]
pub struct Promise {
    /// Promised by the workload and not about to be deleted.
    pub required: Ranges,
    /// About to be deleted: may be there or not.
    pub dropped: Ranges,
    /// From this number on, the records must have no gap.
    pub prefix_from: Option<u64>,
}

impl Promise {
    /// The broken promises, each in a sentence.
    pub fn violations(&self, found: &Found) -> Vec<String> {
        let mut violations = found.complaints.clone();
        let missing = self.required.without(&found.records);
        if !missing.is_empty() {
            violations
                .push(format!("{} acknowledged records are gone: {missing}", missing.count()));
        }
        if let Some(origin) = self.prefix_from {
            let kept = found.records.without(&self.dropped);
            let gaps = kept.span_from(origin).without(&kept).without(&self.dropped);
            if !gaps.is_empty() {
                violations.push(format!("what is there has a gap: {gaps}"));
            }
        }
        violations
    }
}

/// The announcement in a line of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// These records survive from now on.
    Acknowledged(std::ops::RangeInclusive<u64>),
    /// These records are about to be deleted.
    Dropped(std::ops::RangeInclusive<u64>),
}

impl Announcement {
    /// Reads a line; any line but `ACK …` and `DROP …` is the workload's own affair.
    pub fn parse(line: &str) -> anyhow::Result<Option<Announcement>> {
        let mut words = line.split_whitespace();
        let (word, range) = (words.next(), words.next().and_then(ranges::parse));
        match (word, range, words.next()) {
            (Some("ACK"), Some(range), None) => Ok(Some(Announcement::Acknowledged(range))),
            (Some("DROP"), Some(range), None) => Ok(Some(Announcement::Dropped(range))),
            (Some("ACK" | "DROP"), ..) => bail!("the workload printed {line:?}"),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(stdout: &str) -> Found {
        Found::new(&Outcome { stdout: stdout.to_owned(), status: Some(0), ..Outcome::default() })
    }

    fn promise(required: &str, dropped: &str, prefix_from: Option<u64>) -> Promise {
        let set = |text: &str| found(&text.replace(' ', "\n")).records;
        Promise { required: set(required), dropped: set(dropped), prefix_from }
    }

    #[test]
    fn what_was_promised_must_be_there() {
        assert_eq!(promise("1-5", "", None).violations(&found("1\n2-7")), [""; 0]);
        assert_eq!(promise("1-5", "", None).violations(&found("1\n3-7")).len(), 1);
        assert_eq!(promise("", "", None).violations(&found("")), [""; 0]);
    }

    #[test]
    fn a_complaint_or_a_failure_is_a_violation() {
        assert_eq!(promise("", "", None).violations(&found("BAD record 3")), ["BAD record 3"]);
        assert_eq!(promise("", "", None).violations(&found("panic")).len(), 1);
        let failed = Outcome { status: Some(1), ..Outcome::default() };
        assert_eq!(promise("", "", None).violations(&Found::new(&failed)).len(), 1);
    }

    #[test]
    fn a_prefix_may_lack_only_what_was_dropped() {
        let prefix = promise("", "1-4", Some(1));
        assert_eq!(prefix.violations(&found("5-9")), [""; 0]);
        assert_eq!(prefix.violations(&found("3-9")), [""; 0]);
        assert_eq!(prefix.violations(&found("2 \n 4-9")), [""; 0]);
        assert_eq!(prefix.violations(&found("6-9")).len(), 1);
        assert_eq!(prefix.violations(&found("5-6\n8")).len(), 1);
    }

    #[test]
    fn announcements_are_read_strictly() {
        let parse = |line| Announcement::parse(line).unwrap();
        assert_eq!(parse("ACK 3"), Some(Announcement::Acknowledged(3..=3)));
        assert_eq!(parse("DROP 1-3"), Some(Announcement::Dropped(1..=3)));
        assert_eq!(parse("ACKNOWLEDGED nothing"), None);
        assert!(Announcement::parse("ACK x").is_err());
        assert!(Announcement::parse("ACK 1 2").is_err());
    }
}
