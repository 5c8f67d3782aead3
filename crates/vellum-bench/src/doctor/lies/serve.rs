//! The witness on another machine: it writes down what it hears, and answers with it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::fs::OFlags;
use vellum_command::files;

use super::promises::Promises;
use super::witness::connect;
use crate::error::{Context, Error, Result};

/// A line that is no promise: what is written down is asked for.
const ASK: &str = "ask";
/// Longer than any line; somebody else may speak to the port.
const LINE_BYTES_MAX: u64 = 256;
/// More than any witness has.
const TEXT_BYTES_MAX: u64 = 1 << 30;

/// A witness that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    path: PathBuf,
}

impl Server {
    /// Listens at an address, as `0.0.0.0:7007`, and writes down at the end of a file.
    ///
    /// # Errors
    ///
    /// It cannot listen, or not write there.
    pub fn new(address: &str, path: &Path) -> Result<Server> {
        let listener = TcpListener::bind(address).context(|| format!("listen at {address}"))?;
        Server::open(path)?;
        Ok(Server { listener, path: path.to_owned() })
    }

    fn open(path: &Path) -> Result<File> {
        let file = files::opened(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE);
        file.context(|| format!("open {}", path.display()))
    }

    /// Where it listens.
    ///
    /// # Errors
    ///
    /// The kernel does not say.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().context(|| "ask where it listens")
    }

    /// Serves for ever. A machine that was cut off never says so, so each has a thread.
    ///
    /// # Errors
    ///
    /// Nobody can be heard any more.
    pub fn run(&self) -> Result<()> {
        let file = Arc::new(Mutex::new(Server::open(&self.path)?));
        loop {
            let (stream, _) = self.listener.accept().context(|| "hear somebody")?;
            let (file, path) = (Arc::clone(&file), self.path.clone());
            thread::spawn(move || serve(stream, &file, &path));
        }
    }
}

/// Hears one machine until it is gone.
fn serve(stream: TcpStream, file: &Mutex<File>, path: &Path) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        (&mut stream).take(LINE_BYTES_MAX).read_line(&mut line)?;
        if !line.ends_with('\n') {
            return Ok(());
        }
        if line.trim_end() == ASK {
            let text = std::fs::read(path)?;
            return stream.get_mut().write_all(&text);
        }
        file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())?;
        stream.get_mut().write_all(line.as_bytes())?;
    }
}

impl Promises {
    /// Asks a witness on another machine; `dir` is the directory that was tested.
    ///
    /// # Errors
    ///
    /// It cannot be reached, or knows of no run.
    pub fn asked(address: &str, dir: &Path) -> Result<Promises> {
        let mut stream = connect(address)?;
        let what = || "ask the witness";
        stream.get_mut().write_all(format!("{ASK}\n").as_bytes()).context(what)?;
        let mut text = Vec::new();
        stream.take(TEXT_BYTES_MAX).read_to_end(&mut text).context(what)?;
        if text.is_empty() {
            return Err(Error::failed("the witness has nothing to say"));
        }
        Promises::parse(&String::from_utf8_lossy(&text), dir)
    }
}
