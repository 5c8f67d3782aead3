//! Standard input, output and error, which wait also where they were made non-blocking.
//!
//! That is a property of the open file, and so of every process that shares it: a program that
//! hands its own pipe to this one (Node.js and Bun do) may have made it so, or may do so at any
//! moment.

#![expect(clippy::disallowed_methods, reason = "here they are made to wait")]

use std::io::{self, Read, Stderr, Stdin, Stdout, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process;

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// A stream whose calls wait until they can do something. It has no buffer.
#[derive(Debug)]
pub struct Waiting<F>(F);

/// Standard input.
pub fn stdin() -> Waiting<Stdin> {
    Waiting(io::stdin())
}

/// Standard output.
pub fn stdout() -> Waiting<Stdout> {
    Waiting(io::stdout())
}

/// Standard error.
pub fn stderr() -> Waiting<Stderr> {
    Waiting(io::stderr())
}

impl<F: AsFd> Waiting<F> {
    /// Repeats `call` until it has not been interrupted, and does not have to wait.
    fn call(
        &self,
        events: PollFlags,
        mut call: impl FnMut(&F) -> Result<usize, Errno>,
    ) -> io::Result<usize> {
        loop {
            match call(&self.0) {
                Err(Errno::AGAIN) => {
                    // Interrupted, it asks again.
                    let _ = poll(&mut [PollFd::new(&self.0, events)], None);
                }
                Err(Errno::INTR) => {}
                answer => return Ok(answer?),
            }
        }
    }
}

impl<F: AsFd> AsFd for Waiting<F> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl<F: AsFd> Write for Waiting<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call(PollFlags::OUT, |fd| rustix::io::write(fd, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<F: AsFd> Read for Waiting<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.call(PollFlags::IN, |fd| rustix::io::read(fd, &mut *buffer))
    }
}

/// Writes `text` to standard output. Styles in it are left out unless a terminal shows them.
pub fn print(text: &str) -> io::Result<()> {
    put(stdout(), text, AutoStream::choice(&io::stdout()))
}

/// The same to standard error.
pub fn tell(text: &str) -> io::Result<()> {
    put(stderr(), text, AutoStream::choice(&io::stderr()))
}

/// Says whether text has styles, whatever the environment says.
pub fn choose_styles(choice: clap::ColorChoice) {
    match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    }
    .write_global();
}

/// Whether standard output shows styles.
pub fn shows_styles() -> bool {
    AutoStream::choice(&io::stdout()) != ColorChoice::Never
}

/// In one piece, so that the output of other processes does not come in between.
fn put(mut stream: impl Write, text: &str, choice: ColorChoice) -> io::Result<()> {
    match choice {
        ColorChoice::Never => stream.write_all(strip_str(text).to_string().as_bytes()),
        _ => stream.write_all(text.as_bytes()),
    }
}

/// Prints the help that the command line asks for, or its error, and exits.
pub fn answer(error: &clap::Error) -> ! {
    let text = error.render().ansi().to_string();
    let _ = if error.use_stderr() { tell(&text) } else { print(&text) };
    process::exit(error.exit_code())
}

/// Whether the output has no reader any more. Without this, `cat --follow | head -1` would stay
/// until the next record.
pub fn is_output_closed() -> bool {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok_and(|_| fds[0].revents().contains(PollFlags::ERR))
}
