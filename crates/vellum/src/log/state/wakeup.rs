//! Waking a process that polls a descriptor, without a thread.
//!
//! A process can be woken by another through a futex, but no futex can be polled for. So a poller
//! watches the control file by inotify(7), and arms the event count as a poller. The writer that
//! finds it armed opens the control file and closes it again, which the watch reports. A writer
//! that finds no waiter does nothing of that, and a waiter is woken once until it arms again. A
//! timer covers the cases that the watch misses: a writer that died before it woke a waiter, or had
//! no descriptor left, and one of an earlier version.
//!
//! `docs/decisions/0018-readers.md` has the other designs that were considered.
//!
//! **If the process dies here**: the kernel closes what it had.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::fs::{OFlags, inotify};
use rustix::io;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::error::OsResult;
use crate::files::names::CONTROL_NAME;
use crate::log::state::core::Core;
use crate::shared::event_count;
use crate::sys::descriptor::above_standard;
use crate::{Error, ErrorKind, Result};

/// The meaning of an event of the descriptor, for a caller that asks.
const WATCH: u64 = 1;
const TIMER: u64 = 2;

/// Wakes the watchers of the control file. It costs a few system calls, and only where a poller is
/// armed.
#[cold]
pub(crate) fn wake_pollers(core: &Core) {
    // Where there is no descriptor left, their timers look again.
    let _ = core.files.dir.open_file(&core.files.dir.join(CONTROL_NAME), OFlags::RDONLY);
}

/// Wakes the waiters and pollers for newly durable records.
pub(crate) fn notify_durable(core: &Core) {
    if event_count::notify(&core.words().commits.ends.durable_count, false) {
        wake_pollers(core);
    }
}

/// A descriptor that becomes readable when the control file was opened, or a time is over.
#[derive(Debug)]
pub(crate) struct Wakeup {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// `None` where the system grants no more watches.
    watch: Option<OwnedFd>,
    pid: u32,
}

impl Wakeup {
    pub(crate) fn new(core: &Core) -> Result<Wakeup> {
        let made = Wakeup::make(core).or_os("make a descriptor to poll for", &core.files.dir)?;
        Ok(made)
    }

    fn make(core: &Core) -> io::Result<Wakeup> {
        let epoll = above_standard(|| epoll::create(epoll::CreateFlags::CLOEXEC))?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = above_standard(|| timerfd_create(TimerfdClockId::Monotonic, flags))?;
        let readable = epoll::EventFlags::IN;
        epoll::add(&epoll, &timer, epoll::EventData::new_u64(TIMER), readable)?;
        let watch = watch_control(core).ok();
        if let Some(watch) = &watch {
            epoll::add(&epoll, watch, epoll::EventData::new_u64(WATCH), readable)?;
        }
        Ok(Wakeup { epoll, timer, watch, pid: std::process::id() })
    }

    /// Whether anything but the timer can wake it.
    pub(crate) fn has_watch(&self) -> bool {
        self.watch.is_some()
    }

    /// Refuses a child that was forked later: a wakeup that one process takes, the other would
    /// miss.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.pid == std::process::id() {
            return Ok(());
        }
        let message = "the descriptor is shared with the process that was forked; make another \
                       reader";
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// Forgets what the watch has reported.
    pub(crate) fn clear(&self) {
        let mut events = [0; 4096];
        let watch = self.watch.as_ref();
        while watch.is_some_and(|watch| io::read(watch, &mut events).is_ok_and(|len| len > 0)) {}
    }

    /// Has the descriptor become readable after `pause`, if nothing makes it so before.
    pub(crate) fn look_again(&self, pause: Duration) -> Result<()> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let nanos = pause.subsec_nanos().into();
        let it_value = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: nanos };
        let once = Itimerspec { it_interval: zero, it_value };
        let set = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once);
        set.map(drop).map_err(|errno| {
            Error::new(ErrorKind::Io, format!("cannot set a timer for a reader: {errno}"))
        })
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// A watch that reports each opening of the control file. Names of files may lead elsewhere by now;
/// the descriptor does not.
fn watch_control(core: &Core) -> io::Result<OwnedFd> {
    let control = core.files.dir.open_file(&core.files.dir.join(CONTROL_NAME), OFlags::RDONLY)?;
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    let watch = above_standard(|| inotify::init(flags))?;
    let path = format!("/proc/self/fd/{}", control.as_raw_fd());
    inotify::add_watch(&watch, path, inotify::WatchFlags::OPEN)?;
    Ok(watch)
}
