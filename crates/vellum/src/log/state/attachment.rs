//! One process's place in a log: its life, its slots, its open segments.
//!
//! **Callers**: any thread of the process that attached. A forked child attaches for itself before
//! its first append (`sys::fork`), with a life and slots of its own.
//!
//! A child that has not attached yet counts as present: it holds on to its copy of the open file
//! through which its parent was, whatever the parent closes.
//!
//! **If the process dies here**: attaching claims a place by a lock that the kernel releases, so
//! half an attachment is no attachment. Detaching gives back slot by slot; the rest is found
//! orphaned.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io;

use crate::error::OsResult;
use crate::files::names::LOCK_NAME;
use crate::log::state::gate::Gate;
use crate::log::state::helpers::Helpers;
use crate::log::state::reserved::Reserved;
use crate::log::state::returning::Returning;
use crate::log::state::skipped::Skipped;
use crate::log::state::watch::CheckInterval;
use crate::lsn::Range;
use crate::segment::file::{Segment, UsedStage};
use crate::segment::kept::KeptFiles;
use crate::shared::exclusive::{Seats, Taken};
use crate::shared::participants::{self, Claim, LockLiveness, Owner, PRESENCE_BYTE};
use crate::shared::tail_word::Rivals;
use crate::shared::words::{PARTICIPANT_COUNT, Words};
use crate::sys::fork::Inherit;
use crate::sys::inherited::Marked;
use crate::sys::lock::{self, Kind};
use crate::sys::process::Incarnation;
use crate::sys::{self, Dir};
use crate::{Error, ErrorKind, Lsn, Options, Result, WriterId};

/// Appends that one process can have in progress at the same moment beside one for each of its
/// first threads; more wait their turn.
const SHARED_SLOT_COUNT: usize = 64;
/// A process's place in a log.
pub(crate) struct Attachment {
    /// Holds the lock of this life's place; nothing else uses this open file.
    lock_file: Marked,
    /// Holds the lock by which this process, and its forked children, are present. Given up by
    /// closing it, and not by unlocking, which would unlock for a child as well. `None` at the end.
    pub(crate) presence: Mutex<Option<Marked>>,
    /// Whether this process could not be present again after it was alone. Others may have gone on
    /// without it since, so it has to join again before it reserves anything.
    pub(crate) is_adrift: AtomicBool,
    /// Read by each thread that holds a lock of the log or writes a commit group.
    pub(crate) busy: RwLock<()>,
    me: Owner,
    /// Its name in envelopes, once it has written one.
    writer_id: OnceLock<WriterId>,
    pub(crate) slots: Seats<LocalSlot>,
    /// How many of them have a shared slot.
    pub(crate) claimed_count: AtomicUsize,
    /// Position up to which nothing more is prepared ahead, after that failed.
    back_off_until: AtomicU64,
    /// The holder that was waited for in vain (`text::write_lock`), or 0.
    pub(crate) given_up: AtomicU64,
    segments: Mutex<OpenSegments>,
    /// Files that are kept open for reads of single records.
    pub(crate) kept_files: KeptFiles,
    pub(crate) helpers: Helpers,
    pub(crate) reserved: Reserved,
    pub(crate) returning: Returning,
    pub(crate) skipped: Skipped,
}

/// The segments that a process has open.
#[derive(Default)]
pub(crate) struct OpenSegments {
    /// Those that were used last, newest at the end.
    pub(crate) list: Vec<Arc<Segment>>,
    /// Stages that are over, newest at the end.
    pub(crate) used_stages: Vec<UsedStage>,
}

impl OpenSegments {
    /// The segment at `first`, if it is open.
    pub(crate) fn find(&self, first: Lsn) -> Option<Arc<Segment>> {
        self.list.iter().find(|segment| segment.file.first == first).map(Arc::clone)
    }
}

/// The resources of an append, taken by a thread for its length.
#[derive(Default)]
pub(crate) struct LocalSlot {
    /// The shared slot, once claimed.
    pub(crate) index: u16,
    pub(crate) is_claimed: bool,
    /// Whether it is to be given back after one append.
    pub(crate) is_lent: bool,
    /// The segment written last, and its first position, which is 0 where there is none.
    pub(crate) segment: Option<Arc<Segment>>,
    pub(crate) segment_first: Lsn,
    /// Bytes of that segment in which short records need nothing but their bytes
    /// (`append::usual`); 0 where this is not known.
    pub(crate) short_room: u64,
    /// Segments that were opened for one reservation because it may lie in several.
    pub(crate) more: Vec<Arc<Segment>>,
    /// Positions that may be reserved: of the segments above.
    pub(crate) opened: (Lsn, Lsn),
    /// The others that append, as far as it has met them.
    pub(crate) rivals: Rivals,
    /// When to check again whether the log is at its path.
    pub(crate) place_check: CheckInterval,
    pub(crate) after_publish: AfterPublish,
}

/// The tasks of a writer once its record is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AfterPublish {
    /// Its reservation made a new file, whose predecessors are to be looked after.
    pub(crate) has_new_segment: bool,
    /// It made space ready while memory is full of dirty pages, and sleeps for so long.
    pub(crate) pause: Duration,
    /// Its record has come near the end of the ready space.
    pub(crate) space: Option<Space>,
}

impl AfterPublish {
    #[inline]
    pub(crate) fn is_anything(&self) -> bool {
        self.has_new_segment | self.space.is_some() | !self.pause.is_zero()
    }
}

/// Space to make ready ahead of need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// Where the record ends that came near.
    pub(crate) end: Lsn,
    /// Its bytes.
    pub(crate) len: u64,
    /// Whether they are to be stored to.
    pub(crate) is_ready: bool,
}

impl LocalSlot {
    /// The shared slot's index.
    #[inline]
    pub(crate) fn index(&self) -> usize {
        usize::from(self.index)
    }

    /// Whether the segment written last is the one that holds `lsn`.
    #[inline]
    pub(crate) fn was_in_segment_of(&self, capacity: u64, lsn: Lsn) -> bool {
        lsn.get().wrapping_sub(self.segment_first.get()) < capacity
    }

    /// Whether everything is open that filling `range` needs.
    pub(crate) fn has_opened(&self, range: Range) -> bool {
        self.opened.0 <= range.start && range.end() <= self.opened.1
    }

    /// The segment at `first`, if it is open here.
    pub(crate) fn held(&self, first: Lsn) -> Option<&Arc<Segment>> {
        self.segment.iter().chain(&self.more).find(|segment| segment.file.first == first)
    }

    /// Releases the resources that only the last reservation needed.
    #[inline]
    pub(crate) fn let_go(&mut self) {
        if !self.more.is_empty() {
            self.let_go_of_more();
        }
    }

    #[cold]
    fn let_go_of_more(&mut self) {
        self.more.clear();
        self.opened = (Lsn::ZERO, Lsn::ZERO);
    }

    pub(crate) fn forget_segment(&mut self) {
        (self.segment, self.segment_first, self.short_room) = (None, Lsn::ZERO, 0);
        self.let_go_of_more();
    }
}

impl Inherit for Attachment {
    fn disown(&self) {
        self.lock_file.close_inherited();
        // Held only while detaching or truncating; then the copy ends with the process.
        if let Ok(presence) = self.presence.try_lock() {
            presence.iter().for_each(Marked::close_inherited);
        }
    }
}

impl Attachment {
    /// Attaches the calling process. `lock_file` is its own; the caller is in the gate.
    pub(crate) fn attach(
        dir: &Dir,
        words: &Words,
        lock_file: OwnedFd,
        options: &Options,
    ) -> Result<Attachment> {
        let path = dir.join(LOCK_NAME);
        let claim = claim(options);
        if let Some((who, other)) = participants::in_the_way(words, &lock_file, claim) {
            return Err(in_use(who, other).at_path(dir));
        }
        let claim = || -> io::Result<(Marked, Marked, Option<Owner>)> {
            let (lock_file, presence) = (Marked::new(lock_file)?, Marked::open(dir, &path)?);
            // Exclusive is held only within the gate, which is ours; so this is never refused.
            if !lock::try_lock(presence.fd(), PRESENCE_BYTE, Kind::Shared)? {
                return Err(io::Errno::BUSY);
            }
            let place = participants::attach(words, lock_file.fd(), claim)?;
            Ok((lock_file, presence, place))
        };
        let (lock_file, presence, place) = claim().or_os("take a participant's lock on", &path)?;
        let me = place.ok_or_else(|| {
            let message =
                format!("{PARTICIPANT_COUNT} processes are attached already, as many as can be");
            Error::new(ErrorKind::TooManyParticipants, message).at_path(&path)
        })?;
        // A process with several threads waits 10 ms for that: a staged log is opened without.
        let is_registered = words.commits.stage.id() == 0 && sys::barrier::register();
        let slots = Seats::new(SHARED_SLOT_COUNT, is_registered);
        Ok(Attachment {
            lock_file,
            presence: Mutex::new(Some(presence)),
            is_adrift: AtomicBool::new(false),
            busy: RwLock::new(()),
            me,
            writer_id: OnceLock::new(),
            slots,
            claimed_count: AtomicUsize::new(0),
            back_off_until: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            segments: Mutex::default(),
            kept_files: KeptFiles::default(),
            helpers: Helpers::default(),
            reserved: Reserved::default(),
            returning: Returning::default(),
            skipped: Skipped::default(),
        })
    }

    /// Has this process pass the barriers of those that wait: fences cost more in the end.
    pub(crate) fn register(&self) {
        if !self.slots.is_registered() && sys::barrier::register() {
            self.slots.set_registered();
        }
    }

    /// Attaches a forked child, whose parent's attachment is not its own.
    pub(crate) fn attach_again(dir: &Dir, words: &Words, options: &Options) -> Result<Attachment> {
        let path = dir.join(LOCK_NAME);
        let _gate = Gate::enter(dir)?;
        let lock_file = dir.open_file(&path, OFlags::RDWR).or_os("open", &path)?;
        Attachment::attach(dir, words, lock_file, options)
    }

    pub(crate) fn presence(&self) -> MutexGuard<'_, Option<Marked>> {
        self.presence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the others take this process, which has lost its words, for dead: they finish what it
    /// holds in the words that they see. Not as long as a thread is in the middle of something.
    pub(crate) fn play_dead(&self) {
        let Ok(_idle) = self.busy.try_write() else { return };
        let Some(_slots) = self.slots.all() else { return };
        // Where the kernel refuses it, the others wait until the log is closed.
        let _ = participants::leave_place(self.lock_file.fd(), self.me);
        self.presence().take();
    }

    /// Gives back every slot that is not in use, with its open segments.
    pub(crate) fn empty_slots(&self, words: &Words) {
        for mut slot in self.slots.all_idle() {
            slot.forget_segment();
            if slot.is_claimed {
                self.give_back(words, &mut slot);
            }
        }
    }

    /// Gives a slot back that was lent for one append, which is over.
    #[cold]
    pub(crate) fn give_back(&self, words: &Words, slot: &mut LocalSlot) {
        (slot.is_claimed, slot.is_lent, slot.short_room) = (false, false, 0);
        participants::release_slot(words, slot.index());
        self.claimed_count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Closes every open segment; the caller has taken all slots.
    pub(crate) fn forget_all_segments(&self, slots: &mut [Taken<'_, LocalSlot>]) {
        for slot in slots {
            slot.forget_segment();
        }
        *self.open_segments() = OpenSegments::default();
        self.kept_files.close();
    }

    pub(crate) fn open_segments(&self) -> MutexGuard<'_, OpenSegments> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the descriptors that this process keeps are still those files: a program may close
    /// them by their numbers, and the kernel then takes its locks away.
    pub(crate) fn has_descriptors(&self) -> bool {
        self.lock_file.is_open()
            && self.presence().as_ref().is_none_or(Marked::is_open)
            && !self.open_segments().list.iter().any(|segment| segment.is_another_file())
    }

    pub(crate) fn lock_file(&self) -> &OwnedFd {
        self.lock_file.fd()
    }

    /// The liveness of the other participants, as this process can find it out.
    pub(crate) fn liveness<'a>(&'a self, words: &'a Words) -> LockLiveness<'a> {
        LockLiveness { words, lock_file: self.lock_file(), me: self.me() }
    }

    pub(crate) fn me(&self) -> Owner {
        self.me
    }

    /// The identity of this process in envelopes.
    #[inline]
    pub(crate) fn writer_id(&self) -> WriterId {
        *self.writer_id.get_or_init(|| {
            let random = sys::process::random_u64() & !u64::from(u32::MAX);
            WriterId::new(random | u64::from(std::process::id()))
        })
    }

    /// Whether preparing ahead has failed a short while before `tail`.
    pub(crate) fn backs_off_at(&self, tail: Lsn) -> bool {
        tail.get() < self.back_off_until.load(Ordering::Relaxed)
    }

    /// Remembers that preparing ahead failed, up to position `until`.
    pub(crate) fn back_off(&self, until: Lsn) {
        self.back_off_until.store(until.get(), Ordering::Relaxed);
    }
}

/// The processes that may append beside one that opens a log with these options.
fn claim(options: &Options) -> Claim {
    match (options.is_companion, options.exclusive) {
        (true, _) => Claim::IsNotAsked,
        (false, true) => Claim::Nobody,
        (false, false) => Claim::Everybody,
    }
}

/// The error of a process that another one keeps out, which has this claim.
fn in_use(who: Incarnation, claim: Claim) -> Error {
    let process = match who.is_elsewhere() {
        true => format!("process {} of another PID namespace", who.pid),
        false if who.pid == std::process::id() => format!("process {} (this one)", who.pid),
        false => format!("process {}", who.pid),
    };
    let message = match claim {
        Claim::Nobody => format!(
            "{process} has the log open for itself alone, with \0exclusive\0; end it, or open the \
             log for reading"
        ),
        _ => format!(
            "{process} has the log open for writing, and so it cannot be opened for one process \
             alone; end it, or leave out \0exclusive\0"
        ),
    };
    Error::new(ErrorKind::InUse, message)
}
