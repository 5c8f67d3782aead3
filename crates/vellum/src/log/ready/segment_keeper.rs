//! A thread that keeps segments ready, so that no writer has to make one.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io;

use crate::log::append::Append;
use crate::log::ready::spare_segments;
use crate::log::state::core::Core;
use crate::{Error, Result};

/// How often to look whether a segment is missing: a fraction of the time one lasts.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Keeps segments ready ahead of the writers of every process, in a thread of its own.
///
/// Made by [`Log::keep_prepared`](crate::Log::keep_prepared); ends when it is dropped. Writers
/// still help themselves where it does not keep up, or has met an error.
#[derive(Debug)]
pub struct SegmentKeeper {
    /// Dropped first, which ends the thread.
    life: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    pid: u32,
}

impl SegmentKeeper {
    pub(crate) fn new(core: Arc<Core>, segments: u64) -> Result<SegmentKeeper> {
        spare_segments::prepare_all(&core, segments)?;
        let dir = core.dir.clone();
        let (life, end) = mpsc::channel();
        let keep = move || {
            while end.recv_timeout(LOOK_AGAIN) == Err(RecvTimeoutError::Timeout) {
                // A full disk is told to who needs the space.
                let _ = Append::of(&core).prepare(segments, &mut 0);
            }
        };
        let thread = std::thread::Builder::new().name("vellum-prepare".into()).spawn(keep);
        let thread = thread.map_err(|error| {
            let errno = io::Errno::from_io_error(&error).unwrap_or(io::Errno::AGAIN);
            Error::os(errno, "start a thread that prepares segments of", &dir)
        })?;
        Ok(SegmentKeeper { life: Some(life), thread: Some(thread), pid: std::process::id() })
    }
}

impl Drop for SegmentKeeper {
    fn drop(&mut self) {
        self.life = None;
        if let Some(thread) = self.thread.take()
            && self.pid == std::process::id()
        {
            let _ = thread.join();
        }
    }
}
