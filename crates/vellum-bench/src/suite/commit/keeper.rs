//! The log of a contender, from round to round.

use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use super::contender::{Cell, Contender, Prepared};
use crate::error::{Context, Error, Result};
use crate::footprint::{self, Footprint};
use crate::suite::settle;

/// The log of a contender. Several rounds may use it.
pub(crate) struct Keeper {
    pub(super) contender: Rc<dyn Contender>,
    dir: PathBuf,
    log: Option<Box<dyn Prepared>>,
    /// The footprint of the last round.
    pub(super) footprint: Option<Footprint>,
}

impl Keeper {
    /// In `dir`, a directory that does not exist yet.
    pub(crate) fn new(contender: Rc<dyn Contender>, dir: PathBuf) -> Keeper {
        Keeper { contender, dir, log: None, footprint: None }
    }

    /// Is there a log?
    pub(crate) fn has_log(&self) -> bool {
        self.log.is_some()
    }

    /// Records what the log has left on the disk.
    pub(super) fn look_at_files(&mut self) -> Result<()> {
        settle(&self.dir)?;
        self.footprint = Some(footprint::of(&self.dir)?);
        Ok(())
    }

    /// The log, ready for another round.
    pub(crate) fn ready(&mut self, cell: &Cell) -> Result<&dyn Prepared> {
        let is_kept = match &mut self.log {
            Some(log) => log.renew()?,
            None => false,
        };
        if !is_kept {
            self.clear()?;
            fs::create_dir(&self.dir).context(|| format!("make {}", self.dir.display()))?;
            self.log = Some(self.contender.prepare(&self.dir, cell)?);
        }
        settle(&self.dir)?;
        self.log.as_deref().ok_or_else(|| Error::failed("there is no log"))
    }

    /// Removes the log.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.log = None;
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context(|| format!("remove {}", self.dir.display()))
            }
            _ => Ok(()),
        }
    }
}
