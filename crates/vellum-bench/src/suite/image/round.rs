//! One case, one time: make the image, write for a while, count its pieces, read it back. All in a
//! process of its own, so that whatever becomes of it is a row and not the end of the run.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use super::content;
use super::engine::ImageEngine;
use super::figures::{Figures, Note};
use super::fio;
use super::load::Load;
use super::state::ImageState;
use crate::error::{Error, ErrorKind, Result};
use crate::process::race;
use crate::suite::settle;
use crate::sys;

/// For making an image and reading it back, on a slow disk; beside the run itself.
const LIMIT: Duration = Duration::from_secs(900);
/// What the one process of a race is called when it fails.
const CHILD: &str = "process 0 failed: ";

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Vellum,
    Fio,
}

impl Tool {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Tool::Vellum => "vellum",
            Tool::Fio => "fio",
        }
    }

    /// Is what it wrote read back?
    pub(super) fn is_verified(self) -> bool {
        self == Tool::Vellum
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) state: ImageState,
    pub(super) engine: ImageEngine,
    pub(super) tool: Tool,
}

/// Measures in an empty directory, which is left with the image in it. An error is of the kind
/// [`ErrorKind::Unsupported`] if it is a call that the system has not.
pub(super) fn measure(case: Case, load: &Load, dir: &Path) -> Result<Figures> {
    let note = Note::new(load.duration)?;
    let result = race(1, LIMIT + load.duration, &|runner| {
        let standing = runner.stand_ready()?;
        let figures = run(case, load, dir).inspect_err(|error| {
            if error.kind() == ErrorKind::Unsupported {
                note.set_unsupported();
            }
        })?;
        note.leave(&figures);
        runner.finish(standing, 0)
    });
    result.map_err(|error| {
        let text = error.to_string();
        let text = text.strip_prefix(CHILD).unwrap_or(&text);
        if note.is_unsupported() { Error::unsupported(text) } else { Error::failed(text) }
    })?;
    Ok(note.take())
}

fn run(case: Case, load: &Load, dir: &Path) -> Result<Figures> {
    let path = dir.join("image");
    let begun = Instant::now();
    case.state.make(&path, load.blocks as u64 * content::BLOCK_BYTES as u64)?;
    let making_ms = begun.elapsed().as_secs_f64() * 1e3;
    settle(dir)?;
    let mut figures = match case.tool {
        Tool::Vellum => write_and_verify(case.engine, load, &path)?,
        Tool::Fio => fio::run(case.engine, load, dir)?,
    };
    figures.making_ms = making_ms;
    figures.extents = File::open(&path).and_then(|file| sys::extents(&file)).ok();
    Ok(figures)
}

fn write_and_verify(engine: ImageEngine, load: &Load, path: &Path) -> Result<Figures> {
    let mut queue = engine.queue(path, load.depth, load.write_bytes_max())?;
    let (generations, meter) = load.run(queue.as_mut())?;
    drop(queue);
    content::verify(path, &generations, load.run)?;
    Ok(meter.figures())
}
