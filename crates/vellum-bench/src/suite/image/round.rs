//! One case, one time: make the image, write for a while, count its pieces, read it back. All in a
//! process of its own, so that whatever becomes of it is a row and not the end of the run.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use super::content;
use super::engine::ImageEngine;
use super::figures::Figures;
use super::fio;
use super::load::Load;
use super::qemu;
use super::state::ImageState;
use crate::error::Result;
use crate::process;
use crate::suite::settle;
use crate::sys;

/// For making an image and reading it back, on a slow disk; beside the run itself.
const LIMIT: Duration = Duration::from_secs(900);

/// The program that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Vellum,
    Fio,
    /// An image that QEMU makes, too.
    Qemu,
}

impl Tool {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Tool::Vellum => "vellum",
            Tool::Fio => "fio",
            Tool::Qemu => "qemu-nbd",
        }
    }

    /// Is what it wrote read back?
    pub(super) fn is_verified(self) -> bool {
        self != Tool::Fio
    }
}

/// The measured way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) state: ImageState,
    pub(super) engine: ImageEngine,
    pub(super) tool: Tool,
}

/// Measures in an empty directory, which is left with the image in it. An error is of the kind
/// [`Unsupported`](crate::ErrorKind::Unsupported) if it is a call that the system has not.
pub(super) fn measure(way: Way, load: &Load, dir: &Path) -> Result<Figures> {
    let count = Figures::count(load.duration);
    let told = process::figures(LIMIT + load.duration, count, || Ok(run(way, load, dir)?.tell()))?;
    Ok(Figures::told(&told))
}

fn run(way: Way, load: &Load, dir: &Path) -> Result<Figures> {
    let path = dir.join("image");
    let begun = Instant::now();
    way.state.make(&path, load.blocks as u64 * content::BLOCK_BYTES as u64)?;
    let making_ms = begun.elapsed().as_secs_f64() * 1e3;
    settle(dir)?;
    let mut figures = match way.tool {
        Tool::Vellum => write_and_verify(way.engine, load, &path)?,
        Tool::Fio => fio::run(way.engine, load, dir)?,
        Tool::Qemu => qemu::run(way.state, way.engine, load, dir)?,
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
