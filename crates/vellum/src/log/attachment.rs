//! One process's place in a log: its life, its slots, its open segments.
//!
//! **Who may call**: any thread of the process that attached. A forked child attaches for itself
//! before its first append (`sys::fork`), with a life and slots of its own.
//!
//! A child that has not attached yet counts as present: it holds on to its copy of the open file
//! through which its parent was, whatever the parent closes.
//!
//! **If the process dies here**: attaching claims a place by a lock that the kernel releases, so
//! half an attachment is no attachment. Detaching gives back slot by slot; the rest is found
//! orphaned.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io;

use crate::error::OsResult;
use crate::log::core::Core;
use crate::log::gate::Gate;
use crate::log::pad;
use crate::log::{LOCK_NAME, shrink, trust};
use crate::segment::file::Segment;
use crate::shared::cursor::Range;
use crate::shared::exclusive::{Exclusive, Taken};
use crate::shared::participants::{self, Liveness, Owner, PRESENCE_BYTE};
use crate::shared::words::{PARTICIPANT_COUNT, SLOT_COUNT, Words};
use crate::sys::Dir;
use crate::sys::fork::Inherit;
use crate::sys::inherited::Marked;
use crate::sys::lock::{self, Kind};
use crate::{Error, ErrorKind, Layout, Lsn, Result, sys};

/// Appends that one process can have in progress at the same moment; more wait their turn.
const LOCAL_SLOT_COUNT: usize = 128;
/// Text segments that a process keeps open, beside those that its appends are busy with: the newest,
/// and the one before it for late writers.
const TEXT_SEGMENTS_MAX: u64 = 2;
/// Segments that a reservation has open before it is made.
const SEGMENTS_IN_HAND: usize = 4;
/// Slots that processes keep once they have claimed them. The others are for those that find none
/// left there, each for one append: so that there is one for every process that can attach.
const KEPT_SLOTS: std::ops::Range<usize> = 0..SLOT_COUNT / 4 * 3;
const LENT_SLOTS: std::ops::Range<usize> = KEPT_SLOTS.end..SLOT_COUNT;
/// How often, and for how long, to wait for one of those: who has one is in the middle of an append.
const LENDING_TRIES: u32 = 200;
const LENDING_NAP: Duration = Duration::from_millis(5);

/// A process's place in a log.
pub(crate) struct Attachment {
    /// Holds the lock of this life's place; nothing else uses this open file.
    lock_file: Marked,
    /// Holds the lock by which this process, and who was forked from it, is present. Given up by
    /// closing it, and not by unlocking, which would unlock for a child as well. `None` at the end.
    presence: Mutex<Option<Marked>>,
    /// Whether this process could not be present again after it was alone. Others may have gone on
    /// without it since, so it has to join again before it reserves anything.
    is_adrift: AtomicBool,
    me: Owner,
    /// Whether this process passes the barriers of who waits (`sys::barrier`).
    pub(crate) is_registered: bool,
    slots: Box<[Exclusive<LocalSlot>]>,
    /// How many of them have a shared slot.
    claimed_count: AtomicUsize,
    /// Position up to which nothing more is prepared ahead, after that failed.
    discouraged_until: AtomicU64,
    /// Who was waited for in vain to end its turn (`turn`), or 0.
    pub(crate) given_up: AtomicU64,
    /// Segments that were used last, newest at the end.
    segments: Mutex<Vec<Arc<Segment>>>,
}

/// What a thread needs to append, taken for the length of one append.
#[derive(Default)]
pub(crate) struct LocalSlot {
    /// The shared slot, once claimed.
    pub(crate) index: usize,
    is_claimed: bool,
    /// Whether it is to be given back after one append.
    is_lent: bool,
    /// The segment written last, and its first position, which is 0 where there is none.
    segment: Option<Arc<Segment>>,
    pub(crate) segment_first: Lsn,
    /// Segments that were opened for one reservation because it may lie in several.
    more: Vec<Arc<Segment>>,
    /// Positions that may be reserved: of the segments above.
    in_hand: (Lsn, Lsn),
    /// How soon the next look is due whether the log is at its path.
    pub(crate) glance: Glance,
    /// Whether its last reservation went on in a new text file, whose predecessors are to be looked
    /// after.
    pub(crate) has_rolled: bool,
}

/// Looks at a clock that some appends leave out: it costs a tenth of a short one.
#[derive(Debug, Default)]
pub(crate) struct Glance {
    /// Appends that go by before the next look.
    pub(crate) left: u8,
    /// How many went by before the last one.
    pub(crate) step: u8,
}

impl LocalSlot {
    /// Whether the segment written last is the one that holds `lsn`.
    #[inline]
    pub(crate) fn was_in_segment_of(&self, core: &Core, lsn: Lsn) -> bool {
        lsn.get().wrapping_sub(self.segment_first.get()) < core.capacity()
    }

    /// Whether everything is open that filling `range` needs.
    pub(crate) fn has_in_hand(&self, range: Range) -> bool {
        self.in_hand.0 <= range.start && range.end() <= self.in_hand.1
    }

    /// The segment at `first`, if it is open here.
    pub(crate) fn held(&self, first: Lsn) -> Option<&Arc<Segment>> {
        self.segment.iter().chain(&self.more).find(|segment| segment.first == first)
    }

    /// Lets go of what only the last reservation needed.
    #[inline]
    pub(crate) fn let_go(&mut self) {
        if !self.more.is_empty() {
            self.more.clear();
            self.in_hand = (Lsn::ZERO, Lsn::ZERO);
        }
    }

    fn forget_segment(&mut self) {
        (self.segment, self.segment_first) = (None, Lsn::ZERO);
        self.more.clear();
        self.in_hand = (Lsn::ZERO, Lsn::ZERO);
    }
}

impl Inherit for Attachment {
    fn disown(&self) {
        self.lock_file.close_inherited();
        // Held only by who detaches or truncates; then the copy goes with the process.
        if let Ok(presence) = self.presence.try_lock() {
            presence.iter().for_each(Marked::close_inherited);
        }
    }
}

impl Attachment {
    /// Attaches the calling process. `lock_file` is its own; the caller is in the gate.
    pub(crate) fn attach(dir: &Dir, words: &Words, lock_file: OwnedFd) -> Result<Attachment> {
        let path = dir.join(LOCK_NAME);
        let claim = || -> io::Result<(Marked, Marked, Option<Owner>)> {
            let (lock_file, presence) = (Marked::new(lock_file)?, Marked::open(dir, &path)?);
            // Exclusive is held only within the gate, which is ours; so this is never refused.
            if !lock::try_lock(presence.fd(), PRESENCE_BYTE, Kind::Shared)? {
                return Err(io::Errno::BUSY);
            }
            let place = participants::attach(words, lock_file.fd())?;
            Ok((lock_file, presence, place))
        };
        let (lock_file, presence, place) = claim().or_os("take a participant's lock on", &path)?;
        let me = place.ok_or_else(|| {
            let message =
                format!("{PARTICIPANT_COUNT} processes are attached already, as many as can be");
            Error::new(ErrorKind::TooManyParticipants, message).at_path(&path)
        })?;
        let slots = (0..LOCAL_SLOT_COUNT).map(|_| Exclusive::default()).collect();
        let is_registered = sys::barrier::register();
        Ok(Attachment {
            lock_file,
            presence: Mutex::new(Some(presence)),
            is_adrift: AtomicBool::new(false),
            me,
            is_registered,
            slots,
            claimed_count: AtomicUsize::new(0),
            discouraged_until: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            segments: Mutex::default(),
        })
    }

    /// Attaches a forked child, whose parent's attachment is not its own.
    pub(crate) fn attach_again(core: &Core) -> Result<Attachment> {
        let path = core.dir.join(LOCK_NAME);
        let _gate = Gate::enter(&core.dir)?;
        let lock_file = core.dir.open_file(&path, OFlags::RDWR).or_os("open", &path)?;
        Attachment::attach(&core.dir, core.words(), lock_file)
    }

    /// Gives everything back; the last to leave tidies the end of the log.
    pub(crate) fn detach(&self, core: &Core) -> Result<()> {
        let gate = Gate::enter(&core.dir);
        if participants::has_given_up_slots(core.words()) {
            // What cannot be padded is left to whoever can.
            let _ = pad::repair(core, self);
        }
        if let Ok(gate) = &gate {
            drop(self.presence().take());
            if gate.is_soon_alone(|| self.has_company(core)) == Ok(true) {
                // Another log may have taken the place; its files are not ours.
                if core.has_own_files() {
                    // An error leaves what is not durable in the stage, or a longer file.
                    let _ = core.end_commits(self);
                    let _ = shrink::to_data(core, self);
                    let _ = trust::note_closed(core);
                }
            }
        }
        self.empty_slots(core);
        let left = participants::detach(core.words(), self.lock_file(), self.me);
        left.or_os("unlock", &core.dir)
    }

    /// Enters the gate if no other process is present; the caller is not present meanwhile.
    pub(crate) fn enter_gate_alone(&self, core: &Core) -> Result<Option<Gate>> {
        let gate = Gate::enter(&core.dir)?;
        // Before the old one goes: coming back must not depend on a free descriptor.
        let path = core.dir.join(LOCK_NAME);
        let fresh = Marked::open(&core.dir, &path).or_os("open", &path)?;
        drop(self.presence().replace(fresh));
        let is_alone = gate.is_soon_alone(|| self.has_company(core));
        if is_alone != Ok(true) {
            self.be_present(core).inspect_err(|_| self.go_adrift(core))?;
        }
        is_alone.map(|alone| alone.then_some(gate)).or_os("lock", &path)
    }

    /// Leaves the gate, present again.
    pub(crate) fn leave_gate(&self, core: &Core, gate: Gate) -> Result<()> {
        let present = gate.let_in().or_os("unlock", &core.dir);
        present.and_then(|()| self.be_present(core)).inspect_err(|_| self.go_adrift(core))
    }

    /// Joins the log again, as who opens it would.
    #[cold]
    fn come_back(&self, core: &Core) -> Result<()> {
        let presence = self.presence();
        let Some(file) = presence.as_ref().filter(|_| self.is_adrift.load(Ordering::SeqCst)) else {
            return Ok(());
        };
        let gate = Gate::enter(&core.dir)?;
        core.check_poison()?;
        core.check_words()?;
        let is_first = gate.is_alone().or_os("lock", &core.dir)?;
        core.join_stage(is_first)?;
        if is_first {
            core.region.origin().iter().for_each(|origin| origin.reopen());
            gate.let_in().or_os("unlock", &core.dir)?;
        }
        lock::lock(file.fd(), PRESENCE_BYTE, Kind::Shared).or_os("lock", &core.dir)?;
        self.is_adrift.store(false, Ordering::SeqCst);
        Ok(())
    }

    /// Keeps this process from appending until it has come back.
    #[cold]
    fn go_adrift(&self, core: &Core) {
        self.is_adrift.store(true, Ordering::SeqCst);
        self.empty_slots(core);
        self.segments.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Gives back every slot that is not in use, with what it has open.
    fn empty_slots(&self, core: &Core) {
        for mut slot in self.slots.iter().filter_map(Exclusive::try_take) {
            slot.forget_segment();
            if slot.is_claimed {
                self.give_back(core, &mut slot);
            }
        }
    }

    /// Whether another participant is attached.
    fn has_company(&self, core: &Core) -> bool {
        let census = core.census(self);
        let mut others =
            participants::attached(core.words()).filter(|(owner, _)| *owner != self.me);
        others.any(|(owner, _)| census.is_alive(owner))
    }

    fn be_present(&self, core: &Core) -> Result<()> {
        let presence = self.presence();
        let Some(presence) = &*presence else { return Ok(()) };
        lock::lock(presence.fd(), PRESENCE_BYTE, Kind::Shared).or_os("lock", &core.dir)
    }

    fn presence(&self) -> MutexGuard<'_, Option<Marked>> {
        self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every slot of this process, if none is in use.
    pub(crate) fn take_all_slots(&self) -> Option<Vec<Taken<'_, LocalSlot>>> {
        self.slots.iter().map(Exclusive::try_take).collect()
    }

    /// Lets go of every open segment; the caller has taken all slots.
    pub(crate) fn forget_all_segments(&self, slots: &mut [Taken<'_, LocalSlot>]) {
        for slot in slots {
            slot.forget_segment();
        }
        self.segments.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn lock_file(&self) -> &OwnedFd {
        self.lock_file.fd()
    }

    pub(crate) fn me(&self) -> Owner {
        self.me
    }

    /// Whether preparing ahead has failed a short while before `tail`.
    pub(crate) fn is_discouraged(&self, tail: Lsn) -> bool {
        tail.get() < self.discouraged_until.load(Ordering::Relaxed)
    }

    /// Remembers that preparing ahead failed, up to position `until`.
    pub(crate) fn discourage(&self, until: Lsn) {
        self.discouraged_until.store(until.get(), Ordering::Relaxed);
    }

    /// A slot for the calling thread, with nothing in flight in it.
    #[inline]
    pub(crate) fn take_slot(&self, core: &Core) -> Result<Taken<'_, LocalSlot>> {
        if let Some(slot) = self.slots[thread_number() % LOCAL_SLOT_COUNT].try_take()
            && slot.is_claimed
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
                let Some(mut slot) = slot.try_take() else { continue };
                if slot.is_claimed || self.claim(core, &mut slot)? {
                    return Ok(slot);
                }
            }
            // Every slot of this process is in the middle of an append.
            std::thread::yield_now();
        }
    }

    /// Claims a shared slot; false where this process has to do with those it has.
    fn claim(&self, core: &Core, slot: &mut LocalSlot) -> Result<bool> {
        let words = core.words();
        if self.is_adrift.load(Ordering::SeqCst) {
            self.come_back(core)?;
        }
        if participants::has_given_up_slots(words) {
            // Perhaps by this very thread: it reserves no more until that can be padded.
            pad::repair(core, self)?;
        }
        let has_some = self.claimed_count.load(Ordering::Relaxed) > 0;
        let index = match participants::claim_slot(words, self.me, KEPT_SLOTS) {
            None if has_some => return Ok(false),
            None => self.borrow_slot(core)?,
            Some(index) => index,
        };
        (slot.index, slot.is_claimed) = (index, true);
        slot.is_lent = LENT_SLOTS.contains(&index);
        self.claimed_count.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    /// Claims a slot for one append, where there are no more to keep.
    #[cold]
    fn borrow_slot(&self, core: &Core) -> Result<usize> {
        let words = core.words();
        for turn in 0..LENDING_TRIES {
            if turn > 0 {
                std::thread::sleep(LENDING_NAP);
                // Those of the dead can be had again.
                pad::repair(core, self)?;
            }
            if let Some(index) = participants::claim_slot(words, self.me, LENT_SLOTS) {
                return Ok(index);
            }
        }
        let message = format!("all {SLOT_COUNT} slots for appends are in use");
        Err(Error::new(ErrorKind::TooManyParticipants, message).at_path(&core.dir))
    }

    /// Gives a slot back that was lent for one append, which is over.
    #[cold]
    fn give_back(&self, core: &Core, slot: &mut LocalSlot) {
        (slot.is_claimed, slot.is_lent) = (false, false);
        participants::release_slot(core.words(), slot.index);
        self.claimed_count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives a slot back if it was lent, which holds nothing in flight. After an error it may stay
    /// with this process until its next append.
    #[inline]
    pub(crate) fn end_use(&self, core: &Core, slot: &mut LocalSlot) {
        if slot.is_lent {
            self.give_back(core, slot);
        }
    }

    /// Lets others pad what could be neither filled nor padded here; the next append claims another
    /// slot.
    pub(crate) fn give_up_slot(&self, core: &Core, slot: &mut LocalSlot) {
        (slot.is_claimed, slot.is_lent) = (false, false);
        self.claimed_count.fetch_sub(1, Ordering::Relaxed);
        participants::give_up_slot(core.words(), slot.index);
    }

    /// The open segment that holds `lsn`.
    #[inline]
    pub(crate) fn segment<'a>(
        &self,
        core: &Core,
        slot: &'a mut LocalSlot,
        lsn: Lsn,
    ) -> Result<&'a Segment> {
        if !slot.was_in_segment_of(core, lsn) || slot.segment.is_none() {
            self.change_segment(core, slot, lsn)?;
        }
        Ok(slot.segment.as_ref().expect("was just set"))
    }

    #[cold]
    fn change_segment(&self, core: &Core, slot: &mut LocalSlot, lsn: Lsn) -> Result<()> {
        let first = core.segment_of(lsn);
        let held = slot.held(first).map(Arc::clone);
        if held.is_none() {
            slot.in_hand = (Lsn::ZERO, Lsn::ZERO);
        }
        (slot.segment, slot.segment_first) = (None, Lsn::ZERO);
        slot.segment = Some(held.map_or_else(|| self.open_segment(core, first), Ok)?);
        slot.segment_first = first;
        Ok(())
    }

    /// Opens what filling `range` will need, before it is reserved: what this process is short of, it
    /// is to notice while it holds nobody up. A record over many segments opens the later ones as it
    /// comes to them.
    #[cold]
    pub(crate) fn take_in_hand(
        &self,
        core: &Core,
        slot: &mut LocalSlot,
        range: Range,
    ) -> Result<()> {
        slot.let_go();
        slot.in_hand = (Lsn::ZERO, Lsn::ZERO);
        let mut first = core.segment_of(range.start);
        let mut more = Vec::new();
        while first < range.end() && more.len() < SEGMENTS_IN_HAND {
            let held = slot.held(first).map(Arc::clone);
            more.push(held.map_or_else(|| self.open_segment(core, first), Ok)?);
            first = core.segment_end(first);
        }
        if !core.has_mapping() {
            core.check_size_limit()?;
        }
        let end = core.segment_end(Lsn::new(range.end().get() - 1));
        slot.in_hand = (core.segment_of(range.start), end);
        if let [only] = &more[..] {
            (slot.segment, slot.segment_first) = (Some(Arc::clone(only)), only.first);
        } else {
            slot.more = more;
        }
        Ok(())
    }

    pub(crate) fn open_segment(&self, core: &Core, first: Lsn) -> Result<Arc<Segment>> {
        let mut segments = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(segment) = segments.iter().find(|segment| segment.first == first) {
            return Ok(Arc::clone(segment));
        }
        let segment = Arc::new(core.open_segment(first)?);
        segments.push(Arc::clone(&segment));
        self.forget_gone_of(core, &mut segments);
        // Closed text files are for others to remove or compress, which an open one resists.
        let most = if core.geometry.layout == Layout::Text { TEXT_SEGMENTS_MAX } else { 64 };
        let budget = (core.mapped_bytes_max / segment.mapped_len().max(1)).clamp(1, most) as usize;
        if segments.len() > budget {
            segments.sort_unstable_by_key(|segment| segment.first);
            let excess = segments.len() - budget;
            let oldest: Vec<_> = segments.drain(..excess).map(|segment| segment.first).collect();
            self.forget_segments(&oldest);
        }
        Ok(segment)
    }

    /// Lets go of segments whose files were removed: as long as they are open, they take space.
    pub(crate) fn forget_gone(&self, core: &Core) {
        self.forget_gone_of(
            core,
            &mut self.segments.lock().unwrap_or_else(PoisonError::into_inner),
        );
    }

    fn forget_gone_of(&self, core: &Core, segments: &mut Vec<Arc<Segment>>) {
        // What is durable has left the stage, whose memory it would hold on to.
        let begin = core.stage_begin().unwrap_or(core.begin());
        let is_gone = |first: Lsn| core.segment_end(first) <= begin;
        let gone = segments.extract_if(.., |segment| is_gone(segment.first));
        let gone: Vec<_> = gone.map(|segment| segment.first).collect();
        self.forget_segments(&gone);
    }

    /// Lets idle slots drop the segments that have gone from the list.
    fn forget_segments(&self, gone: &[Lsn]) {
        for mut slot in self.slots.iter().filter_map(Exclusive::try_take) {
            if slot.segment.as_ref().is_some_and(|segment| gone.contains(&segment.first)) {
                slot.forget_segment();
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
