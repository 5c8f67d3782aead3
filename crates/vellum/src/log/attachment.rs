//! One process's place in a log: its life, its slots, its open segments.
//!
//! **Who may call**: any thread of the process that attached. A forked child attaches for itself
//! before its first append (`sys::fork`), with a life and slots of its own.
//!
//! **If the process dies here**: attaching claims a place by a lock that the kernel releases, so
//! half an attachment is no attachment. Detaching gives back slot by slot; the rest is found
//! orphaned.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;
use rustix::io;

use crate::error::OsResult;
use crate::log::core::Core;
use crate::log::pad::{self, Reason};
use crate::log::{LOCK_NAME, shrink};
use crate::segment::file::Segment;
use crate::shared::cursor;
use crate::shared::exclusive::{Exclusive, Taken};
use crate::shared::participants::{self, GATE_BYTE, Owner, PRESENCE_BYTE};
use crate::shared::words::Words;
use crate::sys::fork::{Inherit, close_inherited};
use crate::sys::lock::{self, Kind};
use crate::{Error, ErrorKind, Lsn, Result, sys};

/// Appends that one process can have in progress at the same moment; more wait their turn.
const LOCAL_SLOT_COUNT: usize = 128;

/// A process's place in a log.
pub(crate) struct Attachment {
    /// Holds this life's locks; nothing else uses this open file.
    lock_file: OwnedFd,
    me: Owner,
    slots: Box<[Exclusive<LocalSlot>]>,
    /// Segments that were used last, newest at the end.
    segments: Mutex<Vec<Arc<Segment>>>,
}

/// What a thread needs to append, taken for the length of one append.
#[derive(Default)]
pub(crate) struct LocalSlot {
    /// The shared slot, once claimed.
    pub(crate) index: usize,
    is_claimed: bool,
    /// A reservation that could be neither filled nor padded; it has to be padded first.
    pub(crate) unfinished: Option<cursor::Range>,
    /// The segment written last.
    segment: Option<Arc<Segment>>,
}

impl Inherit for Attachment {
    fn disown(&self) {
        close_inherited(&self.lock_file);
    }
}

impl Attachment {
    /// Attaches the calling process. `lock_file` is its own, and the gate is held through it.
    pub(crate) fn attach(words: &Words, lock_file: OwnedFd) -> Result<Attachment> {
        let claim = || -> io::Result<Option<Owner>> {
            lock::lock(&lock_file, PRESENCE_BYTE, Kind::Shared)?;
            participants::attach(words, &lock_file)
        };
        let place = claim().or_os("take a participant's lock on", LOCK_NAME.as_ref())?;
        let full = || {
            let count = crate::shared::words::PARTICIPANT_COUNT;
            let message = format!("{count} processes are attached already, as many as can be");
            Error::new(ErrorKind::TooManyParticipants, message)
        };
        let me = place.ok_or_else(full)?;
        let mut slots: Box<[_]> = (0..LOCAL_SLOT_COUNT)
            .map(|_| Exclusive::default())
            .collect();
        // One slot from the start: who is attached can append.
        let index = participants::claim_slot(words, me).ok_or_else(full)?;
        slots[0] = Exclusive::new(LocalSlot {
            index,
            is_claimed: true,
            ..LocalSlot::default()
        });
        Ok(Attachment {
            lock_file,
            me,
            slots,
            segments: Mutex::default(),
        })
    }

    /// Attaches a forked child, whose parent's attachment is not its own.
    pub(crate) fn attach_again(core: &Core) -> Result<Attachment> {
        let path = core.dir.join(LOCK_NAME);
        let lock_file = sys::file::open(&path, OFlags::RDWR, 0).or_os("open", &path)?;
        lock::lock(&lock_file, GATE_BYTE, Kind::Exclusive).or_os("lock", &path)?;
        let attachment = Attachment::attach(core.words(), lock_file)?;
        lock::unlock(&attachment.lock_file, GATE_BYTE).or_os("unlock", &path)?;
        Ok(attachment)
    }

    /// Gives everything back; the last to leave tidies the end of the log.
    pub(crate) fn detach(&self, core: &Core) -> io::Result<()> {
        lock::lock(&self.lock_file, GATE_BYTE, Kind::Exclusive)?;
        for mut slot in self.slots.iter().filter_map(Exclusive::try_take) {
            slot.segment = None;
            let is_idle = slot.is_claimed && {
                self.finish(core, &mut slot).is_ok()
                    && cursor::in_flight(&core.words().slots[slot.index]).is_none()
            };
            if is_idle {
                participants::release_slot(core.words(), slot.index);
            }
        }
        if lock::try_lock(&self.lock_file, PRESENCE_BYTE, Kind::Exclusive)? {
            // An error leaves a longer file and nothing else.
            let _ = shrink::to_data(core, self);
        }
        participants::detach(core.words(), self.me);
        lock::unlock(&self.lock_file, GATE_BYTE)
    }

    pub(crate) fn lock_file(&self) -> &OwnedFd {
        &self.lock_file
    }

    pub(crate) fn me(&self) -> Owner {
        self.me
    }

    /// A slot for the calling thread, with nothing in flight in it.
    #[inline]
    pub(crate) fn take_slot(&self, core: &Core) -> Result<Taken<'_, LocalSlot>> {
        if let Some(slot) = self.slots[thread_number() % LOCAL_SLOT_COUNT].try_take()
            && slot.is_claimed
            && slot.unfinished.is_none()
        {
            return Ok(slot);
        }
        self.take_any_slot(core)
    }

    #[cold]
    fn take_any_slot(&self, core: &Core) -> Result<Taken<'_, LocalSlot>> {
        let favourite = thread_number();
        loop {
            for turn in 0..LOCAL_SLOT_COUNT {
                let slot = &self.slots[(favourite + turn) % LOCAL_SLOT_COUNT];
                let Some(mut slot) = slot.try_take() else {
                    continue;
                };
                if !slot.is_claimed {
                    // All 1024 owned: share those that this process has.
                    let Some(index) = participants::claim_slot(core.words(), self.me) else {
                        continue;
                    };
                    (slot.index, slot.is_claimed) = (index, true);
                }
                self.finish(core, &mut slot)?;
                return Ok(slot);
            }
            // Every slot of this process is in the middle of an append.
            std::thread::yield_now();
        }
    }

    /// Pads what an earlier failure left in a slot.
    fn finish(&self, core: &Core, slot: &mut LocalSlot) -> Result<()> {
        if let Some(range) = slot.unfinished {
            pad::write(core, range, Reason::Failed)?;
            cursor::publish(core.words(), slot.index);
            slot.unfinished = None;
        }
        Ok(())
    }

    /// The open segment that holds `lsn`.
    #[inline]
    pub(crate) fn segment<'a>(
        &self,
        core: &Core,
        slot: &'a mut LocalSlot,
        lsn: Lsn,
    ) -> Result<&'a Segment> {
        let holds = |segment: &Arc<Segment>| {
            lsn.get().wrapping_sub(segment.first.get()) < core.geometry.segment_capacity
        };
        if !slot.segment.as_ref().is_some_and(holds) {
            slot.segment = None;
            slot.segment = Some(self.open_segment(core, core.segment_of(lsn))?);
        }
        Ok(slot.segment.as_ref().expect("was just set"))
    }

    #[cold]
    fn open_segment(&self, core: &Core, first: Lsn) -> Result<Arc<Segment>> {
        let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(segment) = segments.iter().find(|segment| segment.first == first) {
            return Ok(Arc::clone(segment));
        }
        let segment = Arc::new(Segment::open(&core.dir, &core.geometry, first)?);
        segments.push(Arc::clone(&segment));
        let budget = (core.mapped_bytes_max / segment.mapped_len().max(1)).clamp(1, 64) as usize;
        if segments.len() > budget {
            segments.sort_unstable_by_key(|segment| segment.first);
            let excess = segments.len() - budget;
            let oldest: Vec<_> = segments
                .drain(..excess)
                .map(|segment| segment.first)
                .collect();
            self.forget_segments(&oldest);
        }
        Ok(segment)
    }

    /// Lets idle slots drop the segments that have gone from the list.
    fn forget_segments(&self, gone: &[Lsn]) {
        for mut slot in self.slots.iter().filter_map(Exclusive::try_take) {
            if slot
                .segment
                .as_ref()
                .is_some_and(|segment| gone.contains(&segment.first))
            {
                slot.segment = None;
            }
        }
    }
}

impl<T: Default> Default for Exclusive<T> {
    fn default() -> Exclusive<T> {
        Exclusive::new(T::default())
    }
}

/// A small number for the calling thread, so that threads find different slots.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}
