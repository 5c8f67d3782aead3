//! The protocol with weak memory: each load returns any store that C11 allows it to.
//!
//! The functions that are shipped run as processes of `loom`, over words whose orders are those in
//! the sources (`weak_atomics`). The words protect a [`Place`]: `loom` finds every access of one
//! that does not happen after the access before it, for any value of the words. So a model fails
//! where a process could see old bytes on any machine, though the processor that runs it is
//! stronger.
//!
//! No sleep ends by a timeout, so a wake-up that is missed is a deadlock, which `loom` reports.
//! Where a process dies ([`for_each_death`]), timeouts end every sleep instead.
//!
//! Not checked: more than three processes and seven stores of a word, values out of thin air, an
//! exchange that fails without cause, kernel calls. A full barrier of `loom` orders more than that
//! of C11: everything before the one happens before everything after the next.
//!
//! Run by `make model`. `make orders` weakens each order and runs them again (`docs/protocol.md`).

mod append;
mod commit;
mod events;
mod exclusive;
mod files;
mod lock;
mod participants;
mod repair;
mod ship;
mod slots;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::thread::{self, JoinHandle};

use super::participants::{Liveness, Owner};
use super::primitive::{AtomicU32, Ordering};
use super::tail_word::TailWord;
use super::weak_atomics::{self, Fate};
use super::words::{EventCountWords, SlotWords, WatchedLockWords, Words};
use crate::Lsn;
use crate::lsn::Range;

/// Bytes of the file.
const FILE_LEN: usize = 8;
/// Position of its first byte; 0 would mean that nothing is in flight.
const BEGIN: u64 = 8;

/// The place that the words protect. It has no content: only the order of accesses counts.
#[derive(Default)]
struct Place(UnsafeCell<()>);

impl Place {
    fn read(&self) {
        self.0.with(|_| ());
    }

    fn write(&self) {
        self.0.with_mut(|_| ());
    }
}

/// How many times the machine may take the processor from a process that could continue. `None` is
/// as often as it likes.
type Preemptions = Option<usize>;

/// Runs `model` in every order of steps and with every value that a load may return.
fn explore(name: &str, preemptions: Preemptions, model: impl Fn() + Send + Sync + 'static) {
    let begun = Instant::now();
    let count = check(preemptions, false, model);
    report(name, preemptions, count, begun);
}

/// Runs `model` for each step at which the first process can die. The model is given the number of
/// steps that it takes before, and returns how it ended.
fn for_each_death(
    name: &str,
    preemptions: Preemptions,
    model: impl Fn(u64) -> Fate + Send + Sync + Copy + 'static,
) {
    let begun = Instant::now();
    let mut count = 0;
    for steps in 0.. {
        let has_died = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&has_died);
        count += check(preemptions, true, move || {
            noted.fetch_or(model(steps) == Fate::Died, Ordering::Relaxed);
        });
        if !has_died.load(Ordering::Relaxed) {
            return report(&format!("{name}, after {steps} steps"), preemptions, count, begun);
        }
    }
}

/// Returns how many executions there are.
fn check(preemptions: Preemptions, can_die: bool, model: impl Fn() + Send + Sync + 'static) -> u64 {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 20_000;
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        weak_atomics::begin(can_die);
        model();
    });
    count.load(Ordering::Relaxed)
}

fn report(name: &str, preemptions: Preemptions, count: u64, begun: Instant) {
    weak_atomics::write_orders();
    let bound = preemptions.map_or("any".to_owned(), |count| count.to_string());
    let took = begun.elapsed().as_secs_f64();
    println!("weak: {name}: {count} executions, preemptions: {bound}, {took:.1} s");
}

/// The living processes, as the kernel reports them: it releases a dead process's locks behind all
/// of its stores.
#[derive(Default)]
struct Kernel {
    has_died: [AtomicU32; 4],
}

impl Kernel {
    fn begin() -> Kernel {
        let kernel = Kernel::default();
        kernel.has_died.iter().for_each(|word| word.poke(0));
        kernel
    }

    /// Runs the body of process `number`, which dies after `steps`.
    fn live(&self, number: usize, steps: u64, body: impl FnOnce()) -> Fate {
        let fate = weak_atomics::live(steps, body);
        if fate == Fate::Died {
            self.has_died[number].store(1, Ordering::Release);
        }
        fate
    }
}

impl Liveness for Kernel {
    fn is_alive(&self, owner: Owner) -> bool {
        self.has_died[owner.index()].load(Ordering::Acquire) == 0
    }
}

/// No process dies.
struct Everyone;

impl Liveness for Everyone {
    fn is_alive(&self, _: Owner) -> bool {
        true
    }
}

fn owner(number: usize) -> Owner {
    Owner::new(number, 1)
}

fn start<W: 'static, T: 'static>(
    world: &Rc<W>,
    body: impl FnOnce(&W) -> T + 'static,
) -> JoinHandle<T> {
    let world = Rc::clone(world);
    thread::spawn(move || body(&world))
}

fn join<T>(processes: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    processes.into_iter().map(|process| process.join().expect("it ends")).collect()
}

/// Makes the words of an empty log that appends use, and gives slot `n` to process `n`.
fn make_log(words: &Words, slots: usize) {
    words.tail.poke(TailWord::new(Lsn::new(BEGIN), 0).to_word());
    words.ready_end.poke(BEGIN + FILE_LEN as u64);
    words.counts.slots_used.poke(slots as u64);
    for (number, slot) in words.slots[..slots].iter().enumerate() {
        make_slot(slot, owner(number).to_word());
    }
}

fn make_slot(slot: &SlotWords, owner: u64) {
    slot.owner.poke(owner);
    for word in [&slot.start, &slot.len, &slot.confirmed.0] {
        word.poke(0);
    }
}

fn make_watched_lock(words: &WatchedLockWords) {
    let WatchedLockWords { lock, noticed } = words;
    lock.holder.poke(0);
    lock.releases.poke(0);
    lock.contended.poke(0);
    for word in [&noticed.holder, &noticed.number, &noticed.since] {
        word.poke(0);
    }
}

fn make_event_count(count: &EventCountWords) {
    count.rings.poke(0);
    count.armed.poke(0);
}

fn indices(range: Range) -> std::ops::Range<usize> {
    index(range.start)..index(range.end())
}

fn index(lsn: Lsn) -> usize {
    (lsn.get() - BEGIN) as usize
}
