//! Real qcow2 images: QEMU makes them, and its NBD server writes them.
//!
//! ```text
//! making     qemu-img create -o preallocation=…
//! writing    we ── Unix sockets ── qemu-nbd ── Linux AIO, io_uring or threads ── the image
//! verifying  a new qemu-nbd: each block is read through it; then qemu-img check
//! ```
//!
//! A request costs two passes over a socket more than a direct write of our own. A raw image that
//! is written in the same way shows how much that is.
//!
//! **Why not FUSE or `qemu-io`:** QEMU's FUSE exports serve one request after the other, and
//! `qemu-io` fills a block with one byte repeated, which can't be verified.

use std::fs::{self, File};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::content::{self, BLOCK_BYTES};
use super::engine::ImageEngine;
use super::figures::Figures;
use super::load::Load;
use super::state::ImageState;
use crate::error::{Context, Error, Result};
use crate::process::{Child, fork_child};
use crate::queue::{NbdQueue, connections, open_direct};
use crate::sys;

const PROGRAMS: [&str; 2] = ["qemu-img", "qemu-nbd"];
const PACKAGE: &str = "qemu-utils";
/// The exit code of a child that could not become the server; shells use it too.
const NOT_STARTED: i32 = 127;

/// Is QEMU there?
///
/// # Errors
///
/// It is not; a line that says so.
pub(super) fn check() -> Result<()> {
    for program in PROGRAMS {
        if version(program).is_none() {
            let text = format!("{program} is missing; it comes with the package {PACKAGE}");
            return Err(Error::unsupported(text));
        }
    }
    Ok(())
}

/// The server's own name, as `qemu-nbd 7.2.22 (Debian …)`.
pub(super) fn software() -> Option<String> {
    version(PROGRAMS[1])
}

fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().next().map(str::to_string))?
}

/// Makes an image of `bytes`.
pub(super) fn make(state: ImageState, path: &Path, bytes: u64) -> Result<()> {
    check()?;
    let mut command = Command::new(PROGRAMS[0]);
    command.args(["create", "-q", "-f", format_of(state)]);
    if let Some(preallocation) = state.preallocation() {
        command.args(["-o", &format!("preallocation={preallocation}")]);
    }
    let dir = path.parent().unwrap_or(path);
    finish(command.arg(path.file_name().unwrap_or_default()).arg(bytes.to_string()), dir)?;
    // A filesystem without direct writes is told from a server that fails.
    open_direct(path).map(drop)
}

fn format_of(state: ImageState) -> &'static str {
    if state.preallocation().is_some() { "qcow2" } else { "raw" }
}

/// Writes to the image in `dir` and verifies it.
pub(super) fn run(
    state: ImageState,
    engine: ImageEngine,
    load: &Load,
    dir: &Path,
) -> Result<Figures> {
    let server = Server { state, engine, dir, depth: load.depth, bytes: load.write_bytes_max() };
    let (generations, meter) = server.serve(|queue| load.run(queue))?;
    server.serve(|queue| verify(queue, &generations, load.run))?;
    if format_of(state) == "qcow2" {
        let mut check = Command::new(PROGRAMS[0]);
        finish(check.args(["check", "-q", "-f", "qcow2", "image"]), dir)?;
    }
    Ok(meter.figures())
}

fn verify(queue: &mut NbdQueue, generations: &[u32], run: u64) -> Result<()> {
    let bytes = (generations.len() * BLOCK_BYTES) as u64;
    let found = queue.export_bytes();
    if found != bytes {
        return Err(Error::failed(format!("the image has {found} bytes and not {bytes}")));
    }
    content::verify_all(generations, run, |piece, offset| queue.read(piece, offset))
}

/// A server of the image `image` in `dir`.
#[derive(Clone, Copy)]
struct Server<'a> {
    state: ImageState,
    engine: ImageEngine,
    dir: &'a Path,
    depth: usize,
    bytes: usize,
}

impl Server<'_> {
    /// Starts it, does `work` with it, and waits until it has closed the image.
    fn serve<T>(&self, work: impl FnOnce(&mut NbdQueue) -> Result<T>) -> Result<T> {
        let said = self.dir.join("qemu-nbd.err");
        let (mut child, streams) = self.start(&said)?;
        let result = NbdQueue::new(streams, self.depth, self.bytes).and_then(|mut queue| {
            let result = work(&mut queue)?;
            queue.flush()?;
            Ok(result)
        });
        // No client is connected any more, so it ends by itself. Its own message is the better
        // reason.
        let status = child.reap()?.exit_status();
        match (status, result) {
            (Some(0), result) => result,
            (status, _) => Err(failed(PROGRAMS[1], status, &said)),
        }
    }

    /// The server, and connections to it. They are made before it starts: it is handed a socket
    /// that listens already, so no client has to wait for it.
    fn start(&self, said: &Path) -> Result<(Child, Vec<UnixStream>)> {
        let address = address().context(|| "name a socket")?;
        let listener = UnixListener::bind_addr(&address).context(|| "listen on a socket")?;
        let child = becoming(|| self.become_server(&listener, said));
        let child = child.context(|| "start qemu-nbd")?;
        let connect = |_| UnixStream::connect_addr(&address).context(|| "connect to qemu-nbd");
        let streams = (0..connections(self.depth)).map(connect).collect::<Result<_>>()?;
        Ok((child, streams))
    }

    /// Returns only if that is not possible. A service manager hands a socket over in this way: as
    /// descriptor 3, for the process that `LISTEN_PID` names.
    fn become_server(&self, listener: &UnixListener, said: &Path) -> std::io::Error {
        if let Err(error) = sys::hand_over_listener(listener) {
            return error;
        }
        // After that, lest it was the number of this one.
        let errors = match File::create(said) {
            Ok(errors) => errors,
            Err(error) => return error,
        };
        let mut command = Command::new(PROGRAMS[1]);
        command.args(self.arguments()).current_dir(self.dir);
        command.env("LISTEN_FDS", "1").env("LISTEN_PID", std::process::id().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        command.exec()
    }

    fn arguments(&self) -> Vec<String> {
        let aio = match self.engine {
            ImageEngine::Aio => "native",
            ImageEngine::Uring => "io_uring",
            ImageEngine::Threads => "threads",
        };
        vec![
            format!("--format={}", format_of(self.state)),
            format!("--aio={aio}"),
            String::from("--cache=none"),
            format!("--shared={}", connections(self.depth)),
            String::from("image"),
        ]
    }
}

/// A name of this process's own, which is in no directory.
fn address() -> std::io::Result<SocketAddr> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    SocketAddr::from_abstract_name(format!("vellum-bench-{}-{number}", std::process::id()))
}

/// Runs a program in `dir` to its end; an error has its standard error.
fn finish(command: &mut Command, dir: &Path) -> Result<()> {
    let said = dir.join("qemu-img.err");
    let file = File::create(&said).context(|| "make a file for what qemu-img says")?;
    let both = file.try_clone().context(|| "make a file for what qemu-img says")?;
    command.current_dir(dir).stdin(Stdio::null()).stdout(both).stderr(file);
    let mut child = becoming(|| command.exec()).context(|| "start qemu-img")?;
    match child.reap()?.exit_status() {
        Some(0) => Ok(()),
        status => Err(failed(PROGRAMS[0], status, &said)),
    }
}

/// A child that becomes another program, and is not spawned as one: so the kernel kills it when its
/// parent dies. `exec` returns only if that is not possible.
fn becoming(exec: impl FnOnce() -> std::io::Error) -> std::io::Result<Child> {
    fork_child(|| {
        let _error = exec();
        NOT_STARTED
    })
}

/// With the output of the program, which is in a file.
fn failed(program: &str, status: Option<i32>, said: &Path) -> Error {
    let said = fs::read_to_string(said).unwrap_or_default().trim().replace('\n', "; ");
    match status {
        Some(NOT_STARTED) => Error::failed(format!("{program} can't be started")),
        _ => Error::failed(format!("{program} failed ({status:?}): {said}")),
    }
}
