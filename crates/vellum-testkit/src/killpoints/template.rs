//! The log of a case as it is before the victim starts.

use std::path::Path;

use vellum::{Layout, Log, Lsn, Options, Preallocate};

use super::full;
use super::power;
use super::scenario::{Case, Operation};
use crate::payload::Payload;

impl Case {
    /// Makes the log as it is before the victim starts. Called in a process of its own.
    pub fn make_template(&self, dir: &Path) -> anyhow::Result<()> {
        if self.operation.recovers() {
            return self.make_cut_off(dir);
        }
        let log = self.template_options().open(dir)?;
        self.fill_template(&log)
    }

    fn fill_template(&self, log: &Log) -> anyhow::Result<()> {
        let is_new = matches!(self.operation, Operation::FirstRecord | Operation::FirstCommit);
        if self.recycles() && !is_new {
            // Records that come and go, so that there is a spare to use again.
            for number in 0..6 {
                log.append(&Payload::new('x', number, 2500).bytes(self.layout))?;
            }
            log.trim(log.append(&Payload::new('x', 9, 3900).bytes(self.layout))?)?;
            log.trim(log.published())?;
        }
        for record in self.operation.template_records() {
            log.append(&record.bytes(self.layout))?;
        }
        if self.operation.is_durable() && !is_new {
            log.sync()?;
        }
        Ok(())
    }

    /// Makes a log that was in use when the power went, or when a user removed its stage.
    fn make_cut_off(&self, dir: &Path) -> anyhow::Result<()> {
        let live = dir.with_extension("live");
        let log = self.options().open(&live)?;
        self.fill_template(&log)?;
        let torn = match self.layout {
            // A line that is half there cannot be judged after a power cut.
            Layout::Text => None,
            _ => Some(self.append_two(&log)?),
        };
        power::copy(&live, dir)?;
        drop(log);
        std::fs::remove_dir_all(&live)?;
        if let Some(torn) = torn {
            let capacity = self.operation.segment_capacity();
            power::tear(dir, torn.get(), capacity, Operation::CUT_LEN)?;
        }
        if self.operation == Operation::Recover {
            return Ok(power::enter_another_boot(dir)?);
        }
        Ok(power::remove_stages(dir)?)
    }

    /// Commits a batch of two, of which the second will arrive and the first will not.
    fn append_two(&self, log: &Log) -> vellum::Result<Lsn> {
        let torn = log.append(&Payload::new('x', 50, Operation::CUT_LEN).bytes(self.layout))?;
        log.append_durable(&Payload::new('x', 51, 700).bytes(self.layout))?;
        Ok(torn)
    }

    /// Options that its log is made with.
    fn template_options(&self) -> Options {
        match self.operation {
            Operation::BlockRetain => self.options().retain_bytes(full::RETAINED_BYTES),
            _ => self.options(),
        }
    }

    /// Whether trimmed files are used again.
    fn recycles(&self) -> bool {
        self.preallocate == Preallocate::Recycle || self.is_staged()
    }
}
