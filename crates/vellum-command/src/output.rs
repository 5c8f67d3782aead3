//! The two ways out: data on standard output, talk on standard error.

use std::fmt;
use std::io::{self, BufWriter, Stdout, Write};

use anyhow::Context;
use serde::Serialize;
use vellum::internal::escaped_lines;

use crate::stdio::{self, Waiting};

/// Collected before it is written: large enough that system calls don't count.
const BUFFER_BYTES: usize = 256 << 10;

/// Standard output for much data.
#[derive(Debug)]
pub struct Output(BufWriter<Waiting<Stdout>>);

impl Default for Output {
    fn default() -> Output {
        Output(BufWriter::with_capacity(BUFFER_BYTES, stdio::stdout()))
    }
}

impl Output {
    /// Writes `bytes`.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        written(self.0.write_all(bytes))
    }

    /// Writes `value` as one line of JSON.
    pub fn json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let line = serde_json::to_writer(&mut self.0, value).map_err(io::Error::from);
        written(line.and_then(|()| self.0.write_all(b"\n")))
    }

    /// Hands everything to the reader. Bytes that are not flushed may be lost without an error.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        written(self.0.flush())
    }
}

/// Prints one object of JSON.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut output = Output::default();
    output.json(value)?;
    output.flush()
}

/// Prints `text`, which may hold styles: they are left out unless a terminal shows them.
pub fn print(text: &str) -> anyhow::Result<()> {
    written(stdio::print(text))
}

/// Prints the result, unless the user wants silence.
pub fn note(is_quiet: bool, text: impl fmt::Display) {
    if !is_quiet {
        say(text);
    }
}

/// Prints something on standard error. If that is closed, it is left out. Names of files and texts
/// of others are quoted here, so no terminal obeys it.
pub fn say(text: impl fmt::Display) {
    say_as("vellum", text);
}

/// The same in the name of another program.
pub fn say_as(program: &str, text: impl fmt::Display) {
    tell(format_args!("{program}: {}", escaped_lines(text)));
}

/// Prints the progress on standard error.
pub fn tell(text: impl fmt::Display) {
    let _ = stdio::tell(&format!("{text}\n"));
}

fn written(result: io::Result<()>) -> anyhow::Result<()> {
    result.context("cannot write to standard output")
}
