//! The atomics of the protocol as the model checker sees them.
//!
//! Each operation is a step: before it, the scheduler of the model (`model::explore`) may let
//! other processes go first, or kill the caller. A killed process unwinds to [`live`] and changes
//! nothing on its way, whatever its destructors try: to the others it has stopped between two
//! instructions.
//!
//! Every change of a word and everything a process has seen goes into a digest. Two moments with
//! the same digest continue alike, so the model looks at one of them only. Orderings are not
//! modelled: all operations are sequentially consistent.
//!
//! Where only one of several sleepers is to be woken, the scheduler says which (`question`).

#![cfg_attr(not(test), allow(dead_code, reason = "only the model drives the processes"))]

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{self, Ordering};
use std::time::Duration;

/// Processes that a model can have; the first starts the others and outlives them.
pub(crate) const TASK_COUNT: usize = 8;

/// The state of the current execution; all its processes run on one thread of the machine.
#[derive(Default)]
struct Stage {
    /// Address of the memory that is shared, which differs from one execution to the next.
    base: Cell<usize>,
    /// Digest of the shared memory.
    memory: Cell<u64>,
    tasks: [Task; TASK_COUNT],
    /// Looks at the memory before every step.
    watch: RefCell<Option<Rc<dyn Fn()>>>,
    /// The number of possibilities that the scheduler chooses from, and its choice.
    question: Cell<usize>,
    answer: Cell<usize>,
}

#[derive(Default)]
struct Task {
    /// Digest of the values that the process has read since it last forgot.
    seen: Cell<u64>,
    /// Address of the word the process sleeps on, or 0.
    sleeps_on: Cell<usize>,
    /// Its last sleep ended by the timeout.
    is_late: Cell<bool>,
    /// Address of the word the process used last, and whether it has paused since.
    last: Cell<usize>,
    is_spinning: Cell<bool>,
    is_started: Cell<bool>,
    is_done: Cell<bool>,
    is_killed: Cell<bool>,
    /// Has noticed that it was killed.
    is_gone: Cell<bool>,
}

thread_local! {
    static STAGE: Stage = Stage::default();
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Finished,
    Died,
}

/// The panic that unwinds a killed process.
struct Death;

/// Begins an execution over shared memory at `base`.
pub(crate) fn begin(base: usize) {
    STAGE.with(|stage| {
        stage.base.set(base);
        stage.memory.set(0);
        stage.watch.take();
        stage.question.set(0);
        for task in &stage.tasks {
            task.seen.set(0);
            task.sleeps_on.set(0);
            task.last.set(0);
            task.is_late.set(false);
            task.is_spinning.set(false);
            for flag in [&task.is_started, &task.is_done, &task.is_killed, &task.is_gone] {
                flag.set(false);
            }
        }
    });
}

/// Has `watch` look at the memory before every step of this execution; it must not change any.
pub(crate) fn watch(watch: impl Fn() + 'static) {
    STAGE.with(|stage| stage.watch.replace(Some(Rc::new(watch))));
}

/// Runs the body of a process, which may be killed.
pub(crate) fn live(body: impl FnOnce()) -> Fate {
    with_task(me(), |task| task.is_started.set(true));
    let end = panic::catch_unwind(AssertUnwindSafe(body));
    with_task(me(), |task| task.is_done.set(true));
    match end {
        Ok(()) => Fate::Finished,
        Err(payload) if payload.is::<Death>() => Fate::Died,
        Err(payload) => panic::resume_unwind(payload),
    }
}

/// Says that all the calling process knows from here on is what `label` names, together with the
/// shared memory.
pub(crate) fn forget(label: u64) {
    with_task(me(), |task| task.seen.set(mix(label, 1)));
}

/// Digest of the values that the calling process has read since it last forgot, for a label.
pub(crate) fn memory() -> u64 {
    with_task(me(), |task| task.seen.get())
}

/// Whether a process lives; to ask is a step.
pub(crate) fn is_alive(task: usize) -> bool {
    let is_alive = step() && !is_killed(task);
    note(u64::from(is_alive));
    is_alive
}

/// Number of the calling process.
pub(crate) fn me() -> usize {
    shuttle::current::me().into()
}

/// Kills a process, as far as the others can tell.
pub(crate) fn kill(task: usize) {
    with_task(task, |task| {
        task.is_killed.set(true);
        task.sleeps_on.set(0);
    });
}

/// Whether a process has been killed.
pub(crate) fn is_killed(task: usize) -> bool {
    with_task(task, |task| task.is_killed.get())
}

/// Ends a process's sleep, because its time is over.
pub(crate) fn time_out(task: usize) {
    with_task(task, |task| {
        task.sleeps_on.set(0);
        task.is_late.set(true);
    });
}

/// Whether the calling process's last sleep ended by its timeout; to be asked once.
pub(crate) fn was_late() -> bool {
    with_task(me(), |task| task.is_late.replace(false))
}

/// How many possibilities the calling process asks the scheduler to choose from, or 0.
pub(crate) fn question() -> usize {
    STAGE.with(|stage| stage.question.get())
}

/// Answers the [`question`].
pub(crate) fn answer(choice: usize) {
    STAGE.with(|stage| {
        stage.answer.set(choice);
        stage.question.set(0);
    });
}

/// Whether a process sleeps on a word.
pub(crate) fn is_asleep(task: usize) -> bool {
    with_task(task, |task| task.sleeps_on.get() != 0)
}

/// Whether the next step of a process concerns no other one: it begins or has ended.
pub(crate) fn is_private(task: usize) -> bool {
    with_task(task, |task| !task.is_started.get() || task.is_done.get() || task.is_killed.get())
}

/// Digest of everything that decides how the execution continues.
pub(crate) fn digest() -> u64 {
    STAGE.with(|stage| {
        let mut digest = mix(stage.memory.get(), stage.question.get() as u64);
        for (task, salt) in stage.tasks.iter().zip(1..) {
            let sleeps_on = match task.sleeps_on.get() {
                0 => 0,
                address => address.wrapping_sub(stage.base.get()) as u64 + 1,
            };
            let is_killed = task.is_killed.get();
            let is_over = is_killed || task.is_done.get();
            let seen = if is_over { u64::from(is_killed) } else { task.seen.get() };
            let flags = u64::from(task.is_late.get()) << 1 | u64::from(is_over);
            let state = mix(seen, sleeps_on << 2 | flags);
            digest = mix(digest ^ state, salt);
        }
        digest
    })
}

fn with_task<T>(task: usize, then: impl FnOnce(&Task) -> T) -> T {
    STAGE.with(|stage| then(&stage.tasks[task]))
}

/// Lets others go first; returns false if the caller is dead and must not act.
fn step() -> bool {
    let me = me();
    if with_task(me, |task| task.is_gone.get()) {
        return false;
    }
    with_task(me, |task| task.is_spinning.set(false));
    // Shuttle has no time: this only switches.
    shuttle::thread::sleep(Duration::ZERO);
    if is_killed(me) {
        with_task(me, |task| task.is_gone.set(true));
        // Past the panic hook: this is no failure.
        panic::resume_unwind(Box::new(Death));
    }
    if let Some(watch) = STAGE.with(|stage| stage.watch.borrow().clone()) {
        watch();
    }
    true
}

/// Adds to the digest of the calling process.
fn note(value: u64) {
    with_task(me(), |task| task.seen.set(mix(task.seen.get() ^ value, 2)));
}

/// Replaces a word's part in the digest of the memory.
fn changed(address: usize, old: u64, new: u64) {
    STAGE.with(|stage| {
        let place = address.wrapping_sub(stage.base.get()) as u64;
        let part = |value| if value == 0 { 0 } else { mix(value, place + 3) };
        stage.memory.set(stage.memory.get() ^ part(old) ^ part(new));
    });
}

pub(crate) fn mix(value: u64, salt: u64) -> u64 {
    let mut z = value.wrapping_add(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

macro_rules! mortal_atomic {
    ($name:ident, $value:ty) => {
        /// A word whose every operation is a step at which its caller may die.
        #[derive(Default, Debug)]
        #[repr(transparent)]
        pub(crate) struct $name(atomic::$name);

        #[allow(dead_code, reason = "the interface of the standard library's")]
        impl $name {
            /// The value, for the model's own book-keeping: no step.
            pub(crate) fn peek(&self) -> $value {
                self.0.load(Ordering::Relaxed)
            }

            /// Sets the value, for the model's own book-keeping: no step. Returns the old one.
            pub(crate) fn poke(&self, value: $value) -> $value {
                let old = self.0.swap(value, Ordering::Relaxed);
                let address = std::ptr::from_ref(self).addr();
                changed(address, u64::from(old), u64::from(value));
                old
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                if is_spinning_on(std::ptr::from_ref(self).addr()) {
                    return self.peek();
                }
                self.update(order, |old| old)
            }

            pub(crate) fn store(&self, value: $value, _: Ordering) {
                if step() {
                    self.poke(value);
                    note(0);
                }
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |_| value)
            }

            pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old.wrapping_add(value))
            }

            pub(crate) fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old.max(value))
            }

            pub(crate) fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old | value)
            }

            pub(crate) fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old & value)
            }

            pub(crate) fn fetch_min(&self, value: $value, order: Ordering) -> $value {
                self.update(order, |old| old.min(value))
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                _: Ordering,
            ) -> Result<$value, $value> {
                let mut is_done = false;
                let old = self.update(success, |old| {
                    is_done = old == current;
                    if is_done { new } else { old }
                });
                if is_done { Ok(old) } else { Err(old) }
            }

            pub(crate) fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            fn update(&self, _: Ordering, next: impl FnOnce($value) -> $value) -> $value {
                let old = if step() { self.poke(next(self.peek())) } else { self.peek() };
                note(u64::from(old));
                with_task(me(), |task| task.last.set(std::ptr::from_ref(self).addr()));
                old
            }
        }
    };
}

mortal_atomic!(AtomicU32, u32);
mortal_atomic!(AtomicU64, u64);

/// A pause in a loop that looks at a word again and again. The loop is over at once: until the
/// process does something else, it sees the same values again. What else could have happened, had
/// it looked for longer, happens where its look comes later.
pub(crate) fn spin_loop() {
    with_task(me(), |task| task.is_spinning.set(true));
}

fn is_spinning_on(address: usize) -> bool {
    with_task(me(), |task| task.is_spinning.get() && task.last.get() == address)
}

/// Nothing to do: all operations are in one order.
pub(crate) fn fence(_: Ordering) {}

/// Sleeps while `word` holds `seen`, until it is woken or until no other process can continue: then
/// the scheduler lets the timeout pass.
pub(crate) fn wait(word: &AtomicU32, seen: u32) {
    if !step() {
        return;
    }
    let is_same = word.peek() == seen;
    with_task(me(), |task| task.is_late.set(false));
    note(u64::from(is_same));
    if is_same {
        let address = std::ptr::from_ref(word).addr();
        with_task(me(), |task| task.sleeps_on.set(address));
        step();
        // The first process never waits; its time is over at once.
        if is_asleep(me()) {
            time_out(me());
        }
        note(with_task(me(), |task| u64::from(task.is_late.get())));
    }
}

/// Wakes all sleepers of `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    if step() {
        sleepers(word).into_iter().for_each(wake);
        note(0);
    }
}

/// Wakes one sleeper of `word`.
pub(crate) fn wake_one(word: &AtomicU32) {
    if step() {
        let sleepers = sleepers(word);
        if sleepers.len() > 1 {
            STAGE.with(|stage| stage.question.set(sleepers.len()));
            shuttle::thread::sleep(Duration::ZERO);
        } else {
            answer(0);
        }
        let choice = STAGE.with(|stage| stage.answer.get());
        sleepers.get(choice).copied().into_iter().for_each(wake);
        note(0);
    }
}

fn sleepers(word: &AtomicU32) -> Vec<usize> {
    let address = std::ptr::from_ref(word).addr();
    let sleeps = |task: &usize| with_task(*task, |task| task.sleeps_on.get() == address);
    (0..TASK_COUNT).filter(sleeps).collect()
}

fn wake(task: usize) {
    with_task(task, |task| task.sleeps_on.set(0));
}
