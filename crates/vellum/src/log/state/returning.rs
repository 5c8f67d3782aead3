//! Threads whose commit has just ended and whose next one is about to come: the leader of a group
//! waits for them, for a moment.
//!
//! Without that, the first thread that comes back takes its own record alone, and the others wait
//! until the device has written it: groups of one and of many take turns. No wait goes beyond a
//! moment after the end of a group. Where threads come back like that, one group at a time carries
//! all of them. Where they do not, because they do something else between two commits, no leader
//! waits for them, until another try some groups later.
//!
//! Each process counts its own threads, and keeps nothing of it in shared memory. So nothing here
//! decides what is durable, only when a group begins.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::shared::commit;
use crate::shared::words::CommitWords;

/// How long after the end of a group a leader waits for a thread at most.
const MOMENT_MAX: Duration = Duration::from_micros(50);
/// How much shorter than the time of the group that is at least: a short wait must pay for itself.
const MOMENTS_PER_GROUP: u32 = 2;
/// How often in a row threads may stay away that have always come back.
const TRUST_MAX: u32 = 4;
/// Groups until threads that stayed away are waited for again.
const GROUPS_APART: u32 = 32;
/// From so many bytes for each commit on no thread is waited for, and all lanes are open: the
/// device takes as long for one write of two records as for two, and the next ones are copied
/// meanwhile.
const LONG_COMMIT_BYTES: u64 = 256 << 10;

/// The threads of one process that come back to its groups.
#[derive(Default)]
pub(crate) struct Returning {
    /// Whether a thread is about to begin a group, and waits for others.
    is_gathering: AtomicBool,
    /// Commits that had to wait for the device.
    waited: AtomicU64,
    /// Whether no thread comes back soon.
    is_apart: AtomicBool,
    /// Whether the newest group carried long records.
    is_long: AtomicBool,
    last: Mutex<Last>,
}

/// The newest groups of the process.
#[derive(Default)]
struct Last {
    /// `waited` when one began.
    begun_at: u64,
    expected: Option<Expected>,
    habit: Habit,
}

/// The threads that are expected after the end of a group.
#[derive(Clone, Copy)]
struct Expected {
    /// `waited` when the group ended.
    ended_at: u64,
    /// How many the group carried.
    carried: u64,
    /// Until when they are waited for.
    until: Instant,
}

impl Expected {
    fn is_awaited(self, commits: u64, now: impl Fn() -> Instant) -> bool {
        commits - self.ended_at < self.carried && now() < self.until
    }

    /// Whether most of them have come back, when the next group begins and carries `carried`;
    /// `None` where that cannot be told.
    fn has_come_true(self, commits: u64, carried: u64) -> Option<bool> {
        match self.carried {
            0 | 1 => (carried < 2).then_some(false),
            expected => Some((commits - self.ended_at) * 2 > expected),
        }
    }
}

/// Whether the threads of the process come back at once.
struct Habit {
    trust: u32,
    /// Groups until the next try.
    apart: u32,
}

impl Default for Habit {
    fn default() -> Habit {
        Habit { trust: 1, apart: 0 }
    }
}

impl Habit {
    fn learn(&mut self, was_right: Option<bool>) {
        match was_right {
            _ if self.apart > 0 => self.apart -= 1,
            Some(true) => self.trust = (self.trust + 1).min(TRUST_MAX),
            Some(false) if self.trust == 1 => self.apart = GROUPS_APART,
            Some(false) => self.trust -= 1,
            None => {}
        }
    }
}

impl Returning {
    /// Counts a commit that has to wait.
    pub(crate) fn count_waiting(&self) {
        self.waited.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a thread waits for others before it begins a group. The end of its group wakes
    /// all threads that see this; without a group it wakes another leader.
    pub(crate) fn is_gathering(&self) -> bool {
        self.is_gathering.load(Ordering::Acquire)
    }

    /// How many groups may be on their way, of `lanes` at most.
    pub(crate) fn allowed_lanes(&self, lanes: usize) -> usize {
        if self.is_nobody_awaited() { lanes } else { 1 }
    }

    fn is_nobody_awaited(&self) -> bool {
        self.is_long.load(Ordering::Relaxed) || self.is_apart.load(Ordering::Relaxed)
    }

    /// Makes the caller the one that begins the next group; `None` where another one does.
    pub(crate) fn begin_gathering<'a>(&'a self, words: &'a CommitWords) -> Option<Gathering<'a>> {
        let is_taken = self.is_gathering.swap(true, Ordering::AcqRel);
        (!is_taken).then(|| Gathering { returning: self, words, has_begun: false })
    }

    /// Notes that the device has done a group of `bytes` for `carried` commits of this process. To
    /// be called before the group's waiters can see that.
    pub(crate) fn note_group_end(&self, carried: u64, bytes: u64, time: Duration) {
        let ended_at = self.waited_count();
        let until = Instant::now() + (time / MOMENTS_PER_GROUP).min(MOMENT_MAX);
        self.is_long.store(bytes >= carried.max(1) * LONG_COMMIT_BYTES, Ordering::Relaxed);
        self.newest().expected = Some(Expected { ended_at, carried, until });
    }

    fn waited_count(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }

    fn newest(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right of one thread of the process to begin the next group. Given up without one, it wakes
/// another.
pub(crate) struct Gathering<'a> {
    returning: &'a Returning,
    words: &'a CommitWords,
    has_begun: bool,
}

impl Gathering<'_> {
    /// Waits for the threads that are expected back.
    pub(crate) fn wait_for_return(&self) {
        if self.returning.is_nobody_awaited() {
            return;
        }
        let Some(expected) = self.returning.newest().expected else { return };
        while expected.is_awaited(self.returning.waited_count(), Instant::now) {
            // For threads that need this very processor.
            thread::yield_now();
        }
    }

    /// Notes that the group has begun; returns how many commits it carries.
    pub(crate) fn note_begun(mut self) -> u64 {
        self.has_begun = true;
        let mut last = self.returning.newest();
        // Under the lock, so that it is not before the last one's count.
        let commits = self.returning.waited_count();
        let carried = commits - last.begun_at;
        last.begun_at = commits;
        let was_right = last.expected.and_then(|expected| expected.has_come_true(commits, carried));
        last.habit.learn(was_right);
        self.returning.is_apart.store(last.habit.apart > 0, Ordering::Relaxed);
        carried
    }
}

impl Drop for Gathering<'_> {
    fn drop(&mut self) {
        self.returning.is_gathering.store(false, Ordering::Release);
        if !self.has_begun {
            commit::pass_on(self.words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_begins_a_group() {
        let (returning, words) = (Returning::default(), CommitWords::default());
        let gathering = returning.begin_gathering(&words).unwrap();
        assert!(returning.is_gathering() && returning.begin_gathering(&words).is_none());
        drop(gathering);
        assert!(!returning.is_gathering() && returning.begin_gathering(&words).is_some());
    }

    #[test]
    fn a_group_carries_the_commits_since_the_one_before() {
        let (returning, words) = (Returning::default(), CommitWords::default());
        for commits in [3, 0, 1] {
            (0..commits).for_each(|_| returning.count_waiting());
            assert_eq!(returning.begin_gathering(&words).unwrap().note_begun(), commits);
        }
    }

    #[test]
    fn as_many_are_expected_as_the_group_carried_and_for_a_moment() {
        let (now, moment) = (Instant::now(), Duration::from_micros(1));
        let expected = Expected { ended_at: 3, carried: 2, until: now + moment };
        assert!(expected.is_awaited(4, || now));
        assert!(!expected.is_awaited(4, || now + moment));
        assert!(!expected.is_awaited(5, || now));
    }

    #[test]
    fn a_guess_was_right_where_most_came_back() {
        let was_right = |carried, came, next| {
            Expected { ended_at: 0, carried, until: Instant::now() }.has_come_true(came, next)
        };
        assert_eq!([was_right(2, 1, 1), was_right(4, 2, 3)], [Some(false); 2]);
        assert_eq!([was_right(2, 2, 2), was_right(4, 3, 3)], [Some(true); 2]);
        // One thread alone is no company, but another one has joined it.
        assert_eq!([was_right(1, 1, 1), was_right(1, 1, 2)], [Some(false), None]);
    }

    #[test]
    fn threads_that_stay_away_are_waited_for_again_some_groups_later() {
        let mut habit = Habit::default();
        (0..TRUST_MAX * 2).for_each(|_| habit.learn(Some(true)));
        for _ in 1..TRUST_MAX {
            habit.learn(Some(false));
            assert_eq!(habit.apart, 0);
        }
        habit.learn(Some(false));
        for left in (0..GROUPS_APART).rev() {
            assert_eq!(habit.apart, left + 1);
            habit.learn(Some(true));
        }
        assert_eq!((habit.apart, habit.trust), (0, 1));
    }

    #[test]
    fn threads_that_come_back_share_one_lane_and_others_have_all() {
        let (returning, words) = (Returning::default(), CommitWords::default());
        assert_eq!(returning.allowed_lanes(2), 1);
        for _ in 0..2 {
            returning.count_waiting();
            let carried = returning.begin_gathering(&words).unwrap().note_begun();
            returning.note_group_end(carried, 0, Duration::ZERO);
        }
        assert_eq!(returning.allowed_lanes(2), 2);
    }

    #[test]
    fn nobody_waits_for_long_records() {
        for (bytes, lanes) in [(2 * LONG_COMMIT_BYTES, 2), (2 * LONG_COMMIT_BYTES - 1, 1)] {
            let returning = Returning::default();
            (0..2).for_each(|_| returning.count_waiting());
            returning.note_group_end(2, bytes, Duration::ZERO);
            assert_eq!(returning.allowed_lanes(2), lanes);
        }
    }

    #[test]
    fn a_thread_alone_waits_for_nobody() {
        let (returning, words) = (Returning::default(), CommitWords::default());
        returning.count_waiting();
        let carried = returning.begin_gathering(&words).unwrap().note_begun();
        returning.note_group_end(carried, 0, Duration::MAX);
        returning.count_waiting();
        let expected = returning.newest().expected.unwrap();
        assert!(!expected.is_awaited(returning.waited_count(), || unreachable!()));
    }
}
