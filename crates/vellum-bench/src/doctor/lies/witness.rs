//! The witness is told of each number, and the power cut does not reach it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use vellum_command::files;

use super::promises::END;
use crate::error::{Context, Error, Result};

/// How long another machine may take for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// How often a number is shown that is to be written down.
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// Somebody who remembers what was promised.
pub trait Witness {
    /// Takes in a line: the head of a run, a number, or the end. When it returns, the line is safe
    /// from the cut.
    ///
    /// # Errors
    ///
    /// The witness does not hear. What it was told last counts as not promised.
    fn hear(&mut self, line: &str) -> Result<()>;

    /// Takes in that the run has ended without a cut.
    ///
    /// # Errors
    ///
    /// As [`hear`](Witness::hear).
    fn end(&mut self) -> Result<()> {
        self.hear(END)
    }
}

/// A witness on another disk than that of `tested`: lines at the end of a file.
///
/// # Errors
///
/// The file cannot be written, or it is on the same disk.
pub fn file_witness(path: &Path, tested: &Path) -> Result<impl Witness + use<>> {
    let what = || format!("open {}", path.display());
    let file = files::opened(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE);
    let file = file.context(what)?;
    let device = |metadata: fs::Metadata| metadata.dev();
    let own = file.metadata().map(device).context(what)?;
    let of_tested =
        fs::metadata(tested).map(device).context(|| format!("open {}", tested.display()))?;
    if own == of_tested {
        let path = path.display();
        return Err(Error::invalid(format!(
            "{path} is on the disk that is tested: the cut reaches \
                                           it too"
        )));
    }
    Ok(FileWitness(file))
}

struct FileWitness(File);

impl Witness for FileWitness {
    fn hear(&mut self, line: &str) -> Result<()> {
        let line = format!("{line}\n");
        self.0.write_all(line.as_bytes()).context(|| "write to the witness")?;
        self.0.sync_data().context(|| "flush the witness")
    }
}

/// A witness on another machine, which [`Server`](super::Server) is.
///
/// # Errors
///
/// It cannot be reached.
pub fn tcp_witness(address: &str) -> Result<impl Witness + use<>> {
    Ok(TcpWitness(connect(address)?))
}

/// What a witness on another machine knows.
pub(super) fn connect(address: &str) -> Result<BufReader<TcpStream>> {
    let what = || format!("connect to {address}");
    let stream = TcpStream::connect(address).context(what)?;
    stream.set_nodelay(true).context(what)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX)).context(what)?;
    Ok(BufReader::new(stream))
}

struct TcpWitness(BufReader<TcpStream>);

impl Witness for TcpWitness {
    fn hear(&mut self, line: &str) -> Result<()> {
        let what = || "talk to the witness";
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).context(what)?;
        let mut answer = String::new();
        self.0.read_line(&mut answer).context(what)?;
        match answer.trim_end() == line {
            true => Ok(()),
            false => Err(Error::failed("the witness has not understood")),
        }
    }
}

/// Somebody who watches a terminal and writes down the last number.
#[derive(Debug)]
pub struct Terminal<W> {
    output: W,
    shown: Option<Instant>,
}

impl<W: Write> Terminal<W> {
    /// Shows numbers there.
    pub fn new(output: W) -> Terminal<W> {
        Terminal { output, shown: None }
    }
}

impl<W: Write> Witness for Terminal<W> {
    fn hear(&mut self, line: &str) -> Result<()> {
        let is_number = line.parse::<u64>().is_ok();
        if is_number && self.shown.is_some_and(|shown| shown.elapsed() < SHOWN_EVERY) {
            return Ok(());
        }
        if is_number {
            self.shown = Some(Instant::now());
        }
        let told = writeln!(self.output, "{line}").and_then(|()| self.output.flush());
        told.context(|| "show a number")
    }
}
