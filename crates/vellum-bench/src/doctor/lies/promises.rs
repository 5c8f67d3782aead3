//! What a witness knows: the head of a run, the numbers that were promised, and whether it ended.
//!
//! ```text
//! vellum-lies 1 run=0123456789abcdef boot=… filesystem=ef53:1073741824
//! 1
//! 2
//! end
//! ```

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use rustix::fs::{OFlags, statfs};
use vellum_command::files;

use crate::error::{Context, Error, Result};

const WORD: &str = "vellum-lies";
const FORM: &str = "1";
/// Longer than any line.
const LINE_BYTES_MAX: usize = 256;
/// Said when a run ends without a cut.
pub(super) const END: &str = "end";

/// What a run begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) run: u64,
    pub(super) boot: [u8; 16],
    /// Kind and size of the filesystem, to notice that it is not mounted.
    pub(super) filesystem: String,
}

impl Head {
    /// That of a run that begins now.
    pub(super) fn new(dir: &Path) -> Result<Head> {
        Ok(Head { run: fastrand::u64(..), boot: boot_id()?, filesystem: filesystem_of(dir)? })
    }

    /// Reads the line that is one.
    pub(super) fn parse(line: &str) -> Option<Head> {
        let mut words = line.split(' ');
        if words.next() != Some(WORD) || words.next() != Some(FORM) {
            return None;
        }
        let mut value = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
        Some(Head {
            run: u64::from_str_radix(value("run")?, 16).ok()?,
            boot: u128::from_str_radix(value("boot")?, 16).ok()?.to_be_bytes(),
            filesystem: value("filesystem")?.to_string(),
        })
    }
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Head { run, boot, filesystem } = self;
        let boot = u128::from_be_bytes(*boot);
        write!(f, "{WORD} {FORM} run={run:016x} boot={boot:032x} filesystem={filesystem}")
    }
}

/// The kernel's name for this boot.
pub(super) fn boot_id() -> Result<[u8; 16]> {
    vellum_sys::process::boot_id().context(|| "read the boot id")
}

/// Kind and size of the filesystem of a directory.
pub(super) fn filesystem_of(dir: &Path) -> Result<String> {
    let about = statfs(dir).context(|| format!("look at {}", dir.display()))?;
    let bytes = about.f_blocks as u128 * about.f_bsize as u128;
    Ok(format!("{:x}:{bytes}", about.f_type))
}

/// What was promised in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promises {
    pub(super) head: Option<Head>,
    /// The highest number; those before it were promised too. 0: none.
    pub(super) highest: u64,
    /// Whether the run ended without a cut.
    pub(super) is_ended: bool,
}

impl Promises {
    /// What was written down: the highest number that was seen.
    pub fn up_to(number: u64) -> Promises {
        Promises { head: None, highest: number, is_ended: false }
    }

    /// Reads what a witness has written: the run that `dir` has blocks of, or the last one.
    ///
    /// # Errors
    ///
    /// There is no run in it.
    pub fn parse(text: &str, dir: &Path) -> Result<Promises> {
        Promises::read_from(text.as_bytes(), dir)
    }

    /// The same of the file of a witness.
    ///
    /// # Errors
    ///
    /// There is no run in it, it is no regular file, or it can't be read.
    pub fn read(path: &Path, dir: &Path) -> Result<Promises> {
        let file = files::opened(path, OFlags::RDONLY);
        let file = file.context(|| format!("open {}", path.display()))?;
        Promises::read_from(BufReader::new(file), dir)
    }

    fn read_from(mut lines: impl BufRead, dir: &Path) -> Result<Promises> {
        let own = head_in(dir);
        let mut found: Option<Promises> = None;
        while let Some(line) = next_line(&mut lines).context(|| "read the witness")? {
            let line = line.as_str();
            if let Some(head) = Head::parse(line) {
                if found.is_some() && own.is_some() && found.as_ref().and_then(|f| f.run()) == own {
                    break;
                }
                found = Some(Promises { head: Some(head), highest: 0, is_ended: false });
            } else if let Some(promises) = &mut found {
                promises.take(line);
            }
        }
        found.ok_or_else(|| Error::invalid("the witness knows of no run"))
    }

    fn run(&self) -> Option<u64> {
        self.head.as_ref().map(|head| head.run)
    }

    fn take(&mut self, line: &str) {
        match line.parse() {
            Ok(number) => self.highest = self.highest.max(number),
            Err(_) => self.is_ended |= line == END,
        }
    }

    /// The highest number that was promised; 0 if none was.
    pub fn highest(&self) -> u64 {
        self.highest
    }
}

/// The name of the file that says whose the blocks are.
pub(super) const RUN_FILE: &str = "run";

/// The run whose blocks are below a directory.
fn head_in(dir: &Path) -> Option<u64> {
    read_head(dir).map(|head| head.run)
}

/// What the file of the run says.
pub(super) fn read_head(dir: &Path) -> Option<Head> {
    let dir = super::place::opened_in(dir).ok()?;
    let text = dir.read(Path::new(RUN_FILE), LINE_BYTES_MAX).ok()?;
    Head::parse(std::str::from_utf8(&text).ok()?.strip_suffix('\n')?)
}

/// The next whole line; what was being written when the power went is no promise.
fn next_line(lines: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    lines.take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    if line.len() == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
        return Err(io::Error::other("a line is too long to be one of a witness"));
    }
    let text = String::from_utf8_lossy(&line);
    Ok(text.strip_suffix('\n').map(str::to_owned))
}
