//! Options against what is stored in the log.

use crate::format::control::Geometry;
use crate::sys::Dir;
use crate::{Error, ErrorKind, Fill, Options, Result};

impl Options {
    /// Refuses options that contradict what is stored in the log.
    pub(crate) fn check_against(&self, stored: &Geometry, dir: &Dir) -> Result<()> {
        self.check_layout(stored.layout, dir.path(), "write to a text log")?;
        let capacity = self.tuning.segment_capacity_bytes;
        let in_words = |has: bool| if has { "yes" } else { "no" };
        let contradiction = [
            contradict("layout", self.layout, stored.layout),
            contradict("segment_capacity_bytes", capacity, stored.segment_capacity),
            contradict("preallocate", self.tuning.preallocate, stored.preallocate),
            // Earlier versions made such a log where there was no shared memory to stage in.
            ((self.tuning.fill, stored.fill) != (Some(Fill::Staged), Fill::Pwrite))
                .then(|| contradict("fill", self.tuning.fill, stored.fill))
                .flatten(),
            contradict("envelope", self.envelope.map(in_words), in_words(stored.has_envelope)),
        ];
        match contradiction.into_iter().flatten().next() {
            Some(message) => Err(Error::new(ErrorKind::InvalidOption, message).at_path(dir)),
            None => Ok(()),
        }
    }
}

fn contradict<T: PartialEq + std::fmt::Display>(
    what: &str,
    asked: Option<T>,
    stored: T,
) -> Option<String> {
    let asked = asked.filter(|asked| *asked != stored)?;
    Some(format!("the log was created with \0{what}\0 {stored}, and {asked} was asked for"))
}
