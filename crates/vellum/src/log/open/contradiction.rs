//! Options against what is stored in the log.

use crate::format::control::Geometry;
use crate::sys::Dir;
use crate::{Error, ErrorKind, Options, Result};

impl Options {
    /// Refuses options with which the program would misunderstand the log. How long segments are,
    /// and how they are made ready and filled, is the log's own: programs append and read alike.
    pub(crate) fn check_against(&self, stored: &Geometry, dir: &Dir) -> Result<()> {
        self.check_layout(stored.layout, dir.path(), "write to a text log")?;
        let in_words = |has: bool| if has { "yes" } else { "no" };
        let contradiction = [
            contradict("layout", self.layout, stored.layout),
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
