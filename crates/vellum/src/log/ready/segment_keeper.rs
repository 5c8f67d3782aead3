//! A thread that keeps segments ready, so that no writer has to make one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::io;

use crate::log::append::Append;
use crate::log::commit::Commit;
use crate::log::keep::retention;
use crate::log::ready::spare_segments;
use crate::log::state::core::Core;
use crate::{Error, Result};

/// How often to look whether a segment is missing: a fraction of the time one lasts.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Keeps segments ready ahead of the writers of every process, in a thread of its own. In a
/// [staged](crate::Fill::Staged) log it also commits when half a segment is not durable.
///
/// Made by [`Log::keep_prepared`](crate::Log::keep_prepared); ends when it is dropped. Writers
/// still help themselves where it does not keep up, or has met an error.
#[derive(Debug)]
pub struct SegmentKeeper {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    pid: u32,
}

impl SegmentKeeper {
    pub(crate) fn new(core: Arc<Core>, segments: u64) -> Result<SegmentKeeper> {
        spare_segments::prepare_all(&core, segments)?;
        let is_over = Arc::<AtomicBool>::default();
        let thread = thread::Builder::new().name("vellum-prepare".into()).spawn({
            let (core, is_over) = (Arc::clone(&core), Arc::clone(&is_over));
            move || keep(&core, segments, &is_over)
        });
        let thread = thread.map_err(|error| {
            let errno = io::Errno::from_io_error(&error).unwrap_or(io::Errno::AGAIN);
            Error::os(errno, "start a thread that prepares segments of", &core.files.dir)
        })?;
        core.attachment()?.helpers.add(thread.thread());
        // Appends get the error.
        let _ = Commit::of(&core).help_unasked();
        Ok(SegmentKeeper { is_over, thread: Some(thread), pid: std::process::id() })
    }
}

/// The loop of the thread: appends get the errors of a full disk and of a commit.
fn keep(core: &Core, segments: u64, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Acquire) {
        thread::park_timeout(LOOK_AGAIN);
        let mut made = 0;
        let _ = Append::of(core).prepare(segments, &mut made);
        if made > 0
            && let Ok(writer) = core.writer()
        {
            retention::tidy(writer);
        }
        let _ = Commit::of(core).help();
        let _ = Commit::of(core).help_unasked();
    }
    if let Ok(attachment) = core.attachment() {
        attachment.helpers.leave();
    }
}

impl Drop for SegmentKeeper {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take()
            && self.pid == std::process::id()
        {
            self.is_over.store(true, Ordering::Release);
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
