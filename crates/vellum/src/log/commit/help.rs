//! The work of a thread of the program for appends: it makes windows ready, continues the next
//! segment, and commits before the stage is full.

use crate::log::append::Appender;
use crate::log::commit::Commit;
use crate::log::keep::retention;
use crate::log::layout::framed::FrameWriter;
use crate::log::layout::helped;
use crate::log::ready::{RoomMaker, space, stage};
use crate::log::state::writer::Writer;
use crate::shared::{commit, tail_word};
use crate::{Lsn, Result};

impl Commit<'_> {
    /// Does the work that appends have asked for; returns the new durable end, if they asked for
    /// that.
    pub(crate) fn help(self) -> Result<Option<Lsn>> {
        let (writer, words) = (self.core.writer()?, self.core.words());
        if !writer.attachment.helpers.is_asked() {
            return Ok(None);
        }
        let seen = tail_word::tail(words).get();
        // The append that needs the space gets the error of a full disk.
        let _ = make_windows(writer);
        if FrameWriter::of(writer).make_next_segment().is_ok_and(|is_new| is_new) {
            retention::tidy(writer);
        }
        let durable = self.commit_half_stage();
        let tail = tail_word::tail(words);
        if tail.get().saturating_sub(seen) >= self.core.ready.window.most() {
            // Appends in between may have found the lock held, and asked for nothing.
            writer.attachment.helpers.ask(helped::asks_next(self.core, tail));
        }
        durable
    }

    /// Does what appends would ask for soon, for a thread that looks by itself again and again:
    /// waking it costs an append 15 µs.
    pub(crate) fn help_unasked(self) -> Result<()> {
        let writer = self.core.writer()?;
        // A stage that is full has no more windows: it is committed below.
        let _ = make_windows(writer);
        let tail = tail_word::tail(self.core.words());
        let half = helped::bytes_ahead(self.core) / 2;
        writer.attachment.helpers.put_off(Lsn::new(tail.get() + half));
        // Those of other processes cannot ask.
        self.commit_half_stage().map(drop)
    }

    /// Commits, if half a segment of a staged log is in no group: the other half is for concurrent
    /// appends.
    ///
    /// Commits what is published: the thread that helps waits for no append.
    pub(crate) fn commit_half_stage(self) -> Result<Option<Lsn>> {
        let words = self.core.words();
        let waiting = tail_word::tail(words).get().saturating_sub(words.commits.grouped().get());
        if self.core.commits.stage.is_none() || waiting < self.core.files.capacity() / 2 {
            return Ok(None);
        }
        self.commit_published()?;
        Ok(Some(commit::durable(&words.commits)))
    }
}

/// Makes windows ready, and maps them: appends of this process neither write zeros nor have pages
/// to find.
fn make_windows(writer: Writer<'_>) -> Result<()> {
    while space::needs_zeros(writer.core) && make_window(writer)? {}
    Ok(())
}

/// Makes one window ready, because an append may want the lock; returns whether more are wanted.
fn make_window(writer: Writer<'_>) -> Result<bool> {
    let core = writer.core;
    let (words, most) = (core.words(), core.ready.window.most());
    let prepare = writer.lock_prepare()?;
    core.check_words()?;
    let tail = tail_word::tail(words);
    core.ready.window.adapt(tail);
    let wanted = tail.get() + helped::bytes_ahead(core);
    let wanted = Lsn::new(wanted.min(helped::zeros_limit(core)));
    let ready = core.ready_end().max(tail);
    if ready < wanted {
        let end = wanted.min(Lsn::new(ready.get() + most));
        stage::check_room(core, end)?;
        RoomMaker::of(&prepare).make_ready_to(end)?;
    }
    map_ahead(writer, tail)?;
    Ok(core.ready_end() < wanted)
}

/// Maps what is ready from `tail` on. The prepare lock is held, so no segment goes meanwhile.
fn map_ahead(writer: Writer<'_>, tail: Lsn) -> Result<()> {
    let (core, ready_end) = (writer.core, writer.core.ready_end());
    let mut begin = tail;
    while begin < ready_end {
        let segment = Appender::of(writer).open_segment(core.files.segment_of(begin))?;
        segment.make_ready_ahead(begin, ready_end)?;
        begin = core.files.segment_end(begin);
    }
    Ok(())
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::{fs, thread};

    use vellum_testing::counts::moved_bytes;

    use super::*;
    use crate::log::append::Append;
    use crate::log::open::enter;
    use crate::{Options, Tuning};

    const CAPACITY: u64 = 4 << 20;

    /// Bytes that this thread has written by system calls, where the kernel counts them, and its
    /// page faults.
    fn costs() -> (Option<u64>, u64) {
        let written = moved_bytes().map(|(_, written)| written);
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let behind_name = stat.rsplit_once(") ").unwrap().1;
        (written, behind_name.split(' ').nth(7).unwrap().parse().unwrap())
    }

    #[test]
    fn where_a_thread_helps_an_append_writes_nothing_and_finds_every_page() {
        let tuning = Tuning::new().segment_capacity_bytes(CAPACITY);
        for options in [Options::mapped_text(), Options::events(), Options::wal()] {
            let dir = tempfile::tempdir().unwrap();
            let log =
                enter::open(&dir.path().join("log"), &options.tuning(tuning.clone())).unwrap();
            log.attachment().unwrap().helpers.add(&thread::current());
            let append = || Append::of(&log).append_record(&[b'x'; 100]).unwrap();
            append();
            let tail = || tail_word::tail(log.words()).get();
            // Two segments of a framed log. A text log makes its next file itself.
            let end = if log.files.geometry.layout.rotates() { CAPACITY / 2 } else { 2 * CAPACITY };
            let (begin, mut faults) = (tail(), 0);
            while tail() < begin + end {
                Append::of(&log).prepare(1, &mut 0).unwrap();
                Commit::of(&log).help_unasked().unwrap();
                let until = tail() + helped::bytes_ahead(&log) / 4;
                let before = costs();
                while tail() < until {
                    append();
                }
                let after = costs();
                assert_eq!(after.0, before.0, "{:?}: up to {until}", log.files.geometry.layout);
                faults += after.1 - before.1;
            }
            // The kernel has a page found again that it has written to the device.
            let pages = (tail() - begin) / 4096;
            assert!(faults < pages / 4, "{:?}: {faults} of {pages}", log.files.geometry.layout);
        }
    }

    #[test]
    fn an_append_asks_again_when_it_has_used_up_what_it_asked_for() {
        for options in [Options::mapped_text(), Options::events(), Options::wal()] {
            let dir = tempfile::tempdir().unwrap();
            let log = enter::open(&dir.path().join("log"), &options).unwrap();
            let helpers = &log.attachment().unwrap().helpers;
            let append = || Append::of(&log).append_record(&[b'x'; 100]).unwrap();
            let tail = || tail_word::tail(log.words()).get();
            append();
            assert!(!helpers.is_asked() && !helpers.are_there());
            helpers.add(&thread::current());
            let (begin, mut asks) = (tail(), 0);
            while tail() < begin + helped::bytes_ahead(&log) {
                append();
                if helpers.is_asked() {
                    asks += 1;
                    make_windows(log.writer().unwrap()).unwrap();
                }
            }
            // The windows of text become longer meanwhile.
            assert!((4..=24).contains(&asks), "{:?}: {asks}", log.files.geometry.layout);
            helpers.leave();
            append();
            helpers.is_asked();
            (0..10_000).for_each(|_| _ = append());
            assert!(!helpers.is_asked() && !helpers.are_there(), "there is nobody to ask");
        }
    }
}
