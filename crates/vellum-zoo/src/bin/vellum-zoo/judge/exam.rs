//! The questions: disks with one fault each, and what `vellum doctor` has to say of them.

use super::claim::Claim;

/// A disk with a fault.
#[derive(Debug)]
pub(super) struct Exam {
    pub(super) animal: &'static str,
    pub(super) parameters: &'static [&'static str],
    /// What is seen of it without the doctor.
    pub(super) claim: Claim,
    pub(super) asked: Asked,
}

/// What is asked, and what the answer must be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// A measurement: the cause that must come first, and words of the line to paste.
    Measured { cause: &'static str, line: &'static str },
    /// The same for what is only a note beside the first cause.
    Noted { cause: &'static str, line: &'static str },
    /// `doctor --lies` with a cut of the power: did the disk lie?
    Lies(bool),
}

const fn measured(cause: &'static str, line: &'static str) -> Asked {
    Asked::Measured { cause, line }
}

/// All of them.
pub(super) const EXAMS: [Exam; 12] = [
    Exam {
        animal: "slow-flush",
        parameters: &["flush=25ms"],
        claim: Claim::Takes { ms: 25.0 },
        asked: measured("slow-flush", "etcd --wal-dir"),
    },
    Exam {
        animal: "no-fua",
        parameters: &["flush=25ms"],
        claim: Claim::Takes { ms: 25.1 },
        asked: Asked::Noted { cause: "no-fua", line: "etcd --wal-dir" },
    },
    Exam { animal: "lying", parameters: &[], claim: Claim::Forgets, asked: Asked::Lies(true) },
    Exam { animal: "forgets", parameters: &[], claim: Claim::Keeps, asked: Asked::Lies(false) },
    Exam {
        animal: "forgets-flushed",
        parameters: &[],
        claim: Claim::Forgets,
        asked: Asked::Lies(true),
    },
    Exam {
        animal: "budget",
        parameters: &[],
        claim: Claim::Ends { ms: 15.0 },
        asked: measured("budget-ends", "modify-volume"),
    },
    Exam {
        animal: "throttled",
        parameters: &[],
        claim: Claim::AtMost { a_second: 255.0 },
        asked: measured("throttle", "modify-volume"),
    },
    Exam {
        animal: "stalls",
        parameters: &[],
        claim: Claim::Stands { ms: 300.0 },
        asked: measured("stalls", "etcd --heartbeat-interval"),
    },
    Exam {
        animal: "512e",
        parameters: &[],
        claim: Claim::Part { ms: 8.0 },
        asked: measured("emulated-sectors", "mkfs.xfs -s size=4096"),
    },
    Exam {
        animal: "neighbour",
        parameters: &[],
        claim: Claim::Waits { share: 0.5 },
        asked: measured("neighbour", "a disk for etcd alone"),
    },
    Exam {
        animal: "jitter",
        parameters: &["median=3ms"],
        claim: Claim::Spread { times: 3.0 },
        asked: measured("jitter", "etcd --wal-dir"),
    },
    Exam {
        animal: "fails",
        parameters: &["at=500"],
        claim: Claim::Fails,
        asked: measured("write-errors", "dmesg"),
    },
];

impl Exam {
    /// What the doctor has to name.
    pub(super) fn expected(&self) -> &'static str {
        match self.asked {
            Asked::Measured { cause, .. } | Asked::Noted { cause, .. } => cause,
            Asked::Lies(true) => "it lied",
            Asked::Lies(false) => "honest so far",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_zoo::Animal;
    use vellum_zoo::animal::SPECIES;

    #[test]
    fn each_faulty_animal_has_one_exam() {
        let examined = EXAMS.iter().map(|exam| {
            Animal::new(exam.animal, exam.parameters, 1).unwrap();
            exam.animal
        });
        let mut all = vec!["sound"];
        all.extend(examined);
        assert_eq!(all, SPECIES.iter().map(|species| species.name).collect::<Vec<_>>());
    }
}
