//! The atomics of the protocol with the weak memory of C11: `loom` chooses which of the stores that
//! a load may return it does return.
//!
//! A word is made with [`poke`](AtomicU64::poke) before the processes begin. The model is slow if
//! it has unused words, and a word that is made later would bring its maker's knowledge to all
//! processes.
//!
//! **Sequential consistency**: `loom` takes such an access for acquire and release. Here a load of
//! this order that follows a store or an exchange of this order passes a fence first.
//!
//! **Death**: a process may have a number of steps after which it dies. It unwinds to [`live`] and
//! changes nothing on its way.
//!
//! **One order weaker**: `VELLUM_WEAKEN=file:line:column:which=order` weakens one order of one
//! access, without another build; several are separated by commas. `which` is 1 for the order of a
//! failed exchange and 0 otherwise.
//! `VELLUM_ORDERS=file` appends each access that a model makes to that file (`make orders`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use loom::sync::atomic;
use loom::thread::Thread;

/// State of one process of the model.
#[derive(Default)]
struct Process {
    /// Steps that it still takes, if it is to die.
    steps: Cell<Option<u64>>,
    is_dead: Cell<bool>,
    /// Its last sequentially consistent access stored something.
    owes_fence: Cell<bool>,
}

loom::thread_local! {
    static PROCESS: Process = Process::default();
}

thread_local! {
    /// The sleeping threads, and the word of each. All processes of a model run on one thread of
    /// the machine.
    static SLEEPERS: RefCell<Vec<(usize, Thread)>> = const { RefCell::new(Vec::new()) };
    /// Whether a process can die in this model, so that sleeps end by their timeouts.
    static CAN_DIE: Cell<bool> = const { Cell::new(false) };
    /// Accesses that this model has made.
    static USES: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Finished,
    Died,
}

/// The panic that unwinds a process that dies.
struct Death;

/// Begins an execution. Where a process can die, every sleep ends at once, as if its time was over.
pub(crate) fn begin(can_die: bool) {
    SLEEPERS.with(|sleepers| sleepers.borrow_mut().clear());
    CAN_DIE.set(can_die);
}

/// Whether a process can die in this model.
pub(crate) fn can_die() -> bool {
    CAN_DIE.get()
}

/// Runs the body of a process, which dies after `steps`.
pub(crate) fn live(steps: u64, body: impl FnOnce()) -> Fate {
    PROCESS.with(|process| process.steps.set(Some(steps)));
    let end = panic::catch_unwind(AssertUnwindSafe(body));
    PROCESS.with(|process| {
        process.steps.set(None);
        process.is_dead.set(false);
    });
    match end {
        Ok(()) => Fate::Finished,
        Err(payload) if payload.is::<Death>() => Fate::Died,
        Err(payload) => panic::resume_unwind(payload),
    }
}

/// Counts a step of the calling process; false if it is dead and must not act.
fn step() -> bool {
    if !CAN_DIE.get() {
        return true;
    }
    let is_last = PROCESS.with(|process| {
        let steps = process.steps.get();
        process.steps.set(steps.map(|steps| steps.saturating_sub(1)));
        !process.is_dead.get() && steps == Some(0)
    });
    if is_last {
        PROCESS.with(|process| process.is_dead.set(true));
        // Past the panic hook: this is no failure.
        panic::resume_unwind(Box::new(Death));
    }
    !PROCESS.with(|process| process.is_dead.get())
}

/// An order to weaken: where, which of an access's orders, and to what.
struct Weakened {
    place: String,
    line: u32,
    which: u8,
    order: Ordering,
}

fn weakened() -> &'static [Weakened] {
    static WEAKENED: OnceLock<Vec<Weakened>> = OnceLock::new();
    WEAKENED.get_or_init(|| {
        let text = std::env::var("VELLUM_WEAKEN").unwrap_or_default();
        text.split_terminator(',').map(parse).collect()
    })
}

fn parse(text: &str) -> Weakened {
    let (access, order) = text.split_once('=').expect("access=order");
    let (place, which) = access.rsplit_once(':').expect("file:line:column:which");
    let line = place.rsplit(':').nth(1).expect("file:line:column");
    let order = match order {
        "Relaxed" => Ordering::Relaxed,
        "Acquire" => Ordering::Acquire,
        "Release" => Ordering::Release,
        "AcqRel" => Ordering::AcqRel,
        _ => panic!("no order: {order}"),
    };
    Weakened {
        place: place.to_owned(),
        line: line.parse().expect("a line"),
        which: which.parse().expect("0 or 1"),
        order,
    }
}

/// The order of an access, which may be a weakened one.
fn order_at(place: &Location<'_>, what: &str, which: u8, order: Ordering) -> Ordering {
    note(place, what, which, order);
    let is_it = |weakened: &&Weakened| {
        weakened.line == place.line()
            && weakened.which == which
            && weakened.place == place.to_string()
    };
    weakened().iter().find(is_it).map_or(order, |weakened| weakened.order)
}

fn orders_file() -> Option<&'static str> {
    static FILE: OnceLock<Option<String>> = OnceLock::new();
    FILE.get_or_init(|| std::env::var("VELLUM_ORDERS").ok()).as_deref()
}

fn note(place: &Location<'_>, what: &str, which: u8, order: Ordering) {
    if orders_file().is_some() {
        let line = format!("{place}:{which}\t{what}\t{order:?}");
        USES.with(|uses| uses.borrow_mut().insert(line));
    }
}

/// Writes down the accesses that the models of this test have made.
pub(crate) fn write_orders() {
    let Some(file) = orders_file() else { return };
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let uses = USES.take();
    let text: String = uses.iter().map(|line| format!("{line}\t{test}\n")).collect();
    let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
    file.and_then(|mut file| file.write_all(text.as_bytes())).expect("the list of accesses");
}

/// Before a load: see above.
fn before_load(order: Ordering) {
    if order == Ordering::SeqCst && PROCESS.with(|process| process.owes_fence.replace(false)) {
        atomic::fence(Ordering::SeqCst);
    }
}

fn after_store(order: Ordering) {
    if order == Ordering::SeqCst {
        PROCESS.with(|process| process.owes_fence.set(true));
    }
}

macro_rules! weak_atomic {
    ($name:ident, $value:ty) => {
        /// A word, once it is made.
        #[derive(Default, Debug)]
        pub(crate) struct $name(OnceLock<atomic::$name>);

        #[allow(dead_code, reason = "the interface of the standard library's")]
        impl $name {
            pub(crate) fn new(value: $value) -> $name {
                $name(OnceLock::from(atomic::$name::new(value)))
            }

            /// Makes the word.
            pub(crate) fn poke(&self, value: $value) {
                self.0.set(atomic::$name::new(value)).expect("made once");
            }

            fn made(&self) -> &atomic::$name {
                self.0.get().expect("the model has made this word")
            }

            #[track_caller]
            pub(crate) fn load(&self, order: Ordering) -> $value {
                let order = order_at(Location::caller(), "load", 0, order);
                if !step() {
                    return <$value>::default();
                }
                before_load(order);
                self.made().load(order)
            }

            #[track_caller]
            pub(crate) fn store(&self, value: $value, order: Ordering) {
                let order = order_at(Location::caller(), "store", 0, order);
                if step() {
                    self.made().store(value, order);
                    after_store(order);
                }
            }

            #[track_caller]
            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                let order = order_at(Location::caller(), "swap", 0, order);
                self.change(order, |word| word.swap(value, order))
            }

            #[track_caller]
            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let success = order_at(Location::caller(), "exchange", 0, success);
                let failure = order_at(Location::caller(), "exchange", 1, failure);
                if !step() {
                    return Err(<$value>::default());
                }
                before_load(success);
                let result = self.made().compare_exchange(current, new, success, failure);
                if result.is_ok() {
                    after_store(success);
                }
                result
            }

            #[track_caller]
            pub(crate) fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            fn change(
                &self,
                order: Ordering,
                change: impl FnOnce(&atomic::$name) -> $value,
            ) -> $value {
                if !step() {
                    return <$value>::default();
                }
                before_load(order);
                let old = change(self.made());
                after_store(order);
                old
            }
        }
    };
}

macro_rules! weak_number {
    ($name:ident, $value:ty) => {
        weak_atomic!($name, $value);

        #[allow(dead_code, reason = "the interface of the standard library's")]
        impl $name {
            #[track_caller]
            pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                let order = order_at(Location::caller(), "add", 0, order);
                self.change(order, |word| word.fetch_add(value, order))
            }

            #[track_caller]
            pub(crate) fn fetch_max(&self, value: $value, order: Ordering) -> $value {
                let order = order_at(Location::caller(), "max", 0, order);
                self.change(order, |word| word.fetch_max(value, order))
            }

            #[track_caller]
            pub(crate) fn fetch_min(&self, value: $value, order: Ordering) -> $value {
                let order = order_at(Location::caller(), "min", 0, order);
                self.change(order, |word| word.fetch_min(value, order))
            }

            #[track_caller]
            pub(crate) fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                let order = order_at(Location::caller(), "and", 0, order);
                self.change(order, |word| word.fetch_and(value, order))
            }

            #[track_caller]
            pub(crate) fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                let order = order_at(Location::caller(), "or", 0, order);
                self.change(order, |word| word.fetch_or(value, order))
            }

            /// The newest value, and no step of a process: the kernel reads it.
            fn newest(&self) -> $value {
                let exchange = self.made().compare_exchange(
                    <$value>::MAX,
                    <$value>::MAX,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
                exchange.unwrap_or_else(|newest| newest)
            }
        }
    };
}

weak_number!(AtomicU32, u32);
weak_number!(AtomicU64, u64);
weak_atomic!(AtomicBool, bool);

/// A full barrier. That of the compiler too, because readers make writers pass one.
#[track_caller]
pub(crate) fn fence(order: Ordering) {
    let order = order_at(Location::caller(), "fence", 0, order);
    if step() {
        PROCESS.with(|process| process.owes_fence.set(false));
        atomic::fence(order);
    }
}

/// Sleeps while `word` holds `seen`, until it is woken.
pub(crate) fn wait(word: &AtomicU32, seen: u32) {
    if !step() {
        return;
    }
    if CAN_DIE.get() {
        loom::thread::yield_now();
    } else if word.newest() == seen {
        // No other process runs between the look and this.
        SLEEPERS.with_borrow_mut(|all| all.push((address(word), loom::thread::current())));
        loom::thread::park();
    }
}

/// Wakes all sleepers of `word`.
pub(crate) fn wake_all(word: &AtomicU32) {
    wake(word, usize::MAX);
}

/// Wakes the thread that has slept longest on `word`.
pub(crate) fn wake_one(word: &AtomicU32) {
    wake(word, 1);
}

fn wake(word: &AtomicU32, most: usize) {
    if !step() || CAN_DIE.get() {
        return;
    }
    word.newest();
    let woken: Vec<_> = SLEEPERS.with_borrow_mut(|all| {
        all.extract_if(.., |sleeper| sleeper.0 == address(word)).take(most).collect()
    });
    woken.iter().for_each(|(_, sleeper)| sleeper.unpark());
}

/// Nothing to do: a pause is the same as another process taking the next step.
pub(crate) fn spin_loop() {}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}
