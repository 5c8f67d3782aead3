//! The outcomes of the mutants, in a file with which a later run continues.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Result;

use crate::mutate::Mutant;

/// The word for a mutant that no test noticed.
pub(crate) const SURVIVES: &str = "SURVIVES";

/// One line for each mutant: its key, its place, and the test that noticed it.
pub(crate) struct Results {
    path: PathBuf,
    known: Mutex<BTreeMap<String, String>>,
}

impl Results {
    /// Reads the file. Survivors are forgotten if they are to be tried `again`.
    pub(crate) fn open(work: &Path, again: bool) -> Result<Results> {
        let path = work.join("results.tsv");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let parts = text.lines().filter_map(|line| line.split_once('\t'));
        let mut known: BTreeMap<String, String> =
            parts.map(|(by, key)| (key.to_owned(), by.to_owned())).collect();
        known.retain(|_, by| !again || by != SURVIVES);
        Ok(Results { path, known: Mutex::new(known) })
    }

    /// The test that noticed a mutant, if it was tried.
    pub(crate) fn of(&self, mutant: &Mutant) -> Option<String> {
        self.known.lock().expect("no thread panics").get(&mutant.key()).cloned()
    }

    pub(crate) fn add(&self, mutant: &Mutant, by: &str) -> Result<()> {
        let mut known = self.known.lock().expect("no thread panics");
        let mut file = File::options().append(true).create(true).open(&self.path)?;
        writeln!(file, "{by}\t{}", mutant.key())?;
        known.insert(mutant.key(), by.to_owned());
        Ok(())
    }
}
