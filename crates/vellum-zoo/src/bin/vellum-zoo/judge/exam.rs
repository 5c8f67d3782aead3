//! The questions: disks with one fault each, and the right answers of `vellum doctor` for them.

use super::claim::Claim;

/// A disk with a fault.
#[derive(Debug)]
pub(super) struct Exam {
    /// Its name, if not that of the animal.
    pub(super) case: Option<&'static str>,
    pub(super) animal: &'static str,
    pub(super) parameters: &'static [&'static str],
    /// The claim that is checked without the doctor.
    pub(super) claim: Claim,
    pub(super) asked: Asked,
}

/// The question, and the right answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// A measurement: the cause that must come first, and words of the line to paste.
    Measured { cause: &'static str, line: &'static str },
    /// The same for a cause that is only a note beside the first cause.
    Noted { cause: &'static str, line: &'static str },
    /// `doctor --lies` with a cut of the power: did the disk lie?
    Lies(bool),
    /// A measurement that finds no fault: the disk is good.
    Nothing,
    /// A measurement on a machine whose processors are all in use: nothing is said of the disk, and
    /// the figures are called doubtful.
    Doubt,
}

const fn measured(cause: &'static str, line: &'static str) -> Asked {
    Asked::Measured { cause, line }
}

/// All of them.
pub(super) const EXAMS: [Exam; 16] = [
    Exam {
        case: None,
        animal: "slow-flush",
        parameters: &["flush=25ms"],
        claim: Claim::Takes { ms: 25.0 },
        asked: measured("slow-flush", "etcd --wal-dir"),
    },
    Exam {
        case: None,
        animal: "no-fua",
        parameters: &["flush=25ms"],
        claim: Claim::Takes { ms: 25.1 },
        asked: Asked::Noted { cause: "no-fua", line: "etcd --wal-dir" },
    },
    Exam {
        case: None,
        animal: "lying",
        parameters: &[],
        claim: Claim::Forgets,
        asked: Asked::Lies(true),
    },
    Exam {
        case: None,
        animal: "forgets",
        parameters: &[],
        claim: Claim::Keeps,
        asked: Asked::Lies(false),
    },
    Exam {
        case: None,
        animal: "forgets-flushed",
        parameters: &[],
        claim: Claim::Forgets,
        asked: Asked::Lies(true),
    },
    Exam {
        case: None,
        animal: "budget",
        parameters: &[],
        claim: Claim::Ends { ms: 15.0 },
        asked: measured("budget-ends", "with a larger one"),
    },
    Exam {
        case: None,
        animal: "throttled",
        parameters: &[],
        claim: Claim::AtMost { a_second: 255.0 },
        asked: measured("throttle", "raise"),
    },
    Exam {
        case: None,
        animal: "stalls",
        parameters: &[],
        claim: Claim::Stands { ms: 300.0, seconds: 6 },
        asked: measured("stalls", "etcd --heartbeat-interval"),
    },
    Exam {
        case: Some("rare stalls"),
        animal: "stalls",
        parameters: &["every=20s", "for=2s"],
        claim: Claim::Stands { ms: 1500.0, seconds: 22 },
        asked: measured("stalls", "etcd --heartbeat-interval"),
    },
    Exam {
        case: None,
        animal: "bursts",
        parameters: &[],
        claim: Claim::Stands { ms: 50.0, seconds: 11 },
        asked: measured("neighbour", "a disk for etcd alone"),
    },
    Exam {
        case: None,
        animal: "slow-journal",
        parameters: &[],
        claim: Claim::Grows { ms: 15.0 },
        asked: measured("slow-journal", ""),
    },
    Exam {
        case: None,
        animal: "512e",
        parameters: &[],
        claim: Claim::Part { ms: 8.0 },
        // The disk is good, so there is no line.
        asked: measured("emulated-sectors", ""),
    },
    Exam {
        case: None,
        animal: "neighbour",
        parameters: &[],
        claim: Claim::Waits { share: 0.5 },
        asked: measured("neighbour", "a disk for etcd alone"),
    },
    Exam {
        case: None,
        animal: "jitter",
        parameters: &["median=3ms"],
        claim: Claim::Spread { times: 3.0 },
        asked: measured("jitter", "etcd --wal-dir"),
    },
    Exam {
        case: None,
        animal: "fails",
        parameters: &["at=500"],
        claim: Claim::Fails,
        asked: measured("write-errors", "dmesg"),
    },
    Exam {
        case: None,
        animal: "drops",
        parameters: &[],
        claim: Claim::Drops,
        asked: measured("lost-writes", "dmesg"),
    },
];

/// Reports of others whose tools said something else than the disk, made again. The claim is the
/// result that those tools would give.
pub(super) const CASES: [Exam; 6] = [
    // fio without sync.
    Exam {
        case: Some("etcd #10609"),
        animal: "slow-flush",
        parameters: &["flush=25ms"],
        claim: Claim::Unsynced { a_second: 2000.0 },
        asked: measured("slow-flush", "etcd --wal-dir"),
    },
    // An alarm about the first seconds of a disk.
    Exam {
        case: Some("troubleshoot #1215"),
        animal: "slow-flush",
        parameters: &["flush=67ms", "first=3s"],
        claim: Claim::Takes { ms: 67.0 },
        asked: Asked::Nothing,
    },
    // A small file that the cache of the disk takes.
    Exam {
        case: Some("scylladb #7146"),
        animal: "budget",
        parameters: &[],
        claim: Claim::Swift { ms: 5.0 },
        asked: measured("budget-ends", "with a larger one"),
    },
    // Writes of 512 bytes to a disk that has sectors of 4096.
    Exam {
        case: Some("seastar #2802"),
        animal: "512e",
        parameters: &[],
        claim: Claim::Part { ms: 8.0 },
        // The disk is good, so there is no line.
        asked: measured("emulated-sectors", ""),
    },
    // The processors are measured here.
    Exam {
        case: Some("redpanda #17162"),
        animal: "sound",
        parameters: &[],
        claim: Claim::Swift { ms: 5.0 },
        asked: Asked::Doubt,
    },
    // A mean without a tail.
    Exam {
        case: Some("pg_test_fsync"),
        animal: "jitter",
        parameters: &["median=1500us"],
        claim: Claim::Mean { ms: 10.0 },
        asked: measured("jitter", "etcd --wal-dir"),
    },
];

impl Exam {
    pub(super) fn name(&self) -> &'static str {
        self.case.unwrap_or(self.animal)
    }

    /// The name that the doctor has to give.
    pub(super) fn expected(&self) -> &'static str {
        match self.asked {
            Asked::Measured { cause, .. } | Asked::Noted { cause, .. } => cause,
            Asked::Lies(true) => "it lied",
            Asked::Lies(false) => "honest so far",
            Asked::Nothing => "nothing",
            Asked::Doubt => "busy-machine",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_zoo::Animal;
    use vellum_zoo::animal::SPECIES;

    #[test]
    fn each_faulty_animal_has_an_exam() {
        let examined = EXAMS.iter().map(|exam| {
            Animal::new(exam.animal, exam.parameters, 1).unwrap();
            exam.animal
        });
        for case in &CASES {
            Animal::new(case.animal, case.parameters, 1).unwrap();
        }
        let mut all = vec!["sound"];
        all.extend(examined);
        all.dedup();
        assert_eq!(all, SPECIES.iter().map(|species| species.name).collect::<Vec<_>>());
    }
}
