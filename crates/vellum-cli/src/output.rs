//! The two ways out: data on standard output, talk on standard error.

use std::fmt;
use std::io::{self, BufWriter, Stdout, Write};

use anyhow::Context;
use serde::Serialize;
use vellum::internal::escaped_lines;

use crate::outcome::Result;
use crate::stdio::{self, Waiting};

/// Collected before it is written: large enough that system calls don't count.
const BUFFER_BYTES: usize = 256 << 10;

/// Standard output for much data.
pub(crate) struct Output(BufWriter<Waiting<Stdout>>);

impl Output {
    pub(crate) fn new() -> Output {
        Output(BufWriter::with_capacity(BUFFER_BYTES, stdio::stdout()))
    }

    /// Writes `bytes`.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        written(self.0.write_all(bytes))
    }

    /// Writes `value` as one line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let line = serde_json::to_writer(&mut self.0, value).map_err(io::Error::from);
        written(line.and_then(|()| self.0.write_all(b"\n")))
    }

    /// Hands everything to the reader. What is not flushed may be lost without an error.
    pub(crate) fn flush(&mut self) -> Result<()> {
        written(self.0.flush())
    }
}

/// Prints one object of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<()> {
    let mut output = Output::new();
    output.json(value)?;
    output.flush()
}

/// Prints `text`, which may hold styles: they are left out unless a terminal shows them.
pub(crate) fn print(text: &str) -> Result<()> {
    written(stdio::print(text))
}

/// Says something on standard error. If that is closed, nobody wants to hear it. Names of files and
/// texts of others are quoted here, so no terminal obeys it.
pub(crate) fn say(text: impl fmt::Display) {
    tell(format_args!("vellum: {}", escaped_lines(text)));
}

/// Tells what goes on, on standard error.
pub(crate) fn tell(text: impl fmt::Display) {
    let _ = stdio::tell(&format!("{text}\n"));
}

fn written(result: io::Result<()>) -> Result<()> {
    result.context("cannot write to standard output")
}
