//! The protocol under a model checker: every order of steps, and death at any of them.
//!
//! The functions of [`tail_word`], [`lock`], [`event_count`] and [`participants`] that are shipped
//! run here as processes of [`explore`](explore::explore), over words whose every operation is a
//! step (`model_atomics`). The file is an array with the writer of each byte. Beside it the model
//! keeps its omniscient knowledge, noted in the same step as the exchange or the store that
//! decides: the process that was granted each byte, and the range that each slot really has in
//! flight.
//!
//! The checks: no byte is granted twice; a verdict is the range that was really granted, neither
//! more nor less; the published end never passes a byte that is not filled; acknowledged bytes
//! stay; a range that a living process gives up is padded like one of the dead; after the last
//! repair all is published and no byte is unaccounted for; the lock excludes, and passes on when
//! its holder dies; no process sleeps through news.
//!
//! Not checked: weaker orderings than sequential consistency, exchanges that fail without cause,
//! segments, and kernel calls.
//!
//! Run by `RUSTFLAGS="--cfg shuttle" cargo test --profile model -p vellum --lib model`: 50 s of one
//! processor. With `--ignored` the larger ones: minutes.

mod commits;
mod committer;
mod device;
mod explore;

use std::sync::Arc;
use std::time::Duration;

use shuttle::thread::{self, JoinHandle};

use self::explore::{Deaths, Extent, explore};
use super::model_atomics::{self, Fate};
use super::participants::{self, CachedLiveness, Liveness, Owner};
use super::primitive::{self, AtomicU64, Ordering};
use super::tail_word::{self, Grant, Rivals, TailWord};
use super::words::{SLOT_COUNT, Words};
use super::{event_count, lock};
use crate::Lsn;
use crate::lsn::Range;

/// Bytes of the file.
const FILE_LEN: usize = 16;
/// Position of its first byte; 0 would mean that nothing is in flight.
const BEGIN: u64 = 8;
/// The byte that a repairer writes.
const PAD: u64 = 1 << 32;

/// The shared memory, the file, and facts that only the model knows.
#[derive(Default)]
struct World {
    words: Words,
    /// The content of each byte: the tag of an append, or [`PAD`].
    file: [AtomicU64; FILE_LEN],
    /// Tag of the append that was granted each byte.
    granted: [AtomicU64; FILE_LEN],
    /// Tag of the append that returned for each byte.
    acknowledged: [AtomicU64; FILE_LEN],
    /// The range that each slot has in flight: start << 8 | len.
    in_flight: [AtomicU64; SLOT_COUNT],
    /// The process that holds the lock, or held it when it died.
    inside: AtomicU64,
}

/// Death as the survivors see it.
struct Kernel;

impl Liveness for Kernel {
    fn is_alive(&self, owner: Owner) -> bool {
        model_atomics::is_alive(owner.index())
    }
}

/// The same, asked while waiting for a lock: of the changes since, only the holder matters.
struct KernelAtLock {
    before: u64,
}

impl Liveness for KernelAtLock {
    fn is_alive(&self, owner: Owner) -> bool {
        let is_alive = model_atomics::is_alive(owner.index());
        model_atomics::forget(model_atomics::mix(
            self.before,
            owner.to_word() << 1 | u64::from(is_alive),
        ));
        is_alive
    }
}

/// The bytes that an append writes: its process, and its number there.
fn tag(process: usize, append: u64) -> u64 {
    (process as u64) << 8 | (append + 1)
}

fn me() -> Owner {
    Owner::new(model_atomics::me(), 1)
}

fn index(lsn: u64) -> usize {
    (lsn - BEGIN) as usize
}

fn indices(range: Range) -> std::ops::Range<usize> {
    index(range.start.get())..index(range.end().get())
}

fn pack(range: Range) -> u64 {
    range.start.get() << 8 | range.len
}

/// Reserves `len` bytes, for which there is room. The next steps depend on `tag` and on the place,
/// and on nothing that was read before.
fn reserve(words: &Words, slot: usize, tag: u64, len: u64) -> Range {
    let ready_end = || tail_word::ready_end(words);
    let len_at = |start: Lsn| {
        model_atomics::forget(tag << 16 | start.get());
        len
    };
    let grant = tail_word::reserve(words, slot, &Rivals::default(), ready_end, len_at);
    let Ok(Grant { range, .. }) = grant else { panic!("there is room for all") };
    model_atomics::forget(tag << 16 | 1 << 15 | range.start.get());
    range
}

impl World {
    /// An empty log.
    fn begin() -> Arc<World> {
        let world = Arc::new(World::default());
        model_atomics::begin(std::ptr::from_ref(&*world).addr());
        world.words.tail.poke(TailWord::new(Lsn::new(BEGIN), 0).to_word());
        world.words.ready_end.poke(BEGIN + FILE_LEN as u64);
        world
    }

    /// Gives slot `slot` to process `slot + 1`, for as many slots.
    fn give_slots(&self, count: usize) {
        for (index, slot) in self.words.slots[..count].iter().enumerate() {
            slot.owner.poke(Owner::new(index + 1, 1).to_word());
        }
        self.words.counts.slots_used.poke(count as u64);
    }

    /// As `log::append::general`: reserve, fill, publish.
    fn append(&self, slot: usize, tag: u64, len: u64) {
        let range = self.reserve(slot, tag, len);
        for byte in &self.file[indices(range)] {
            assert_eq!(byte.swap(tag, Ordering::Relaxed), 0, "a byte was written twice");
        }
        tail_word::publish(&self.words, slot);
        self.in_flight[slot].poke(0);
        for acknowledged in &self.acknowledged[indices(range)] {
            acknowledged.poke(tag);
        }
    }

    /// As `log::append::general` where half a record can be written, and no pad.
    fn give_up(&self, slot: usize, tag: u64, len: u64) {
        let range = self.reserve(slot, tag, len);
        self.file[indices(range).start].swap(tag, Ordering::Relaxed);
        participants::give_up_slot(&self.words, slot);
    }

    fn reserve(&self, slot: usize, tag: u64, len: u64) -> Range {
        model_atomics::forget(tag);
        let range = reserve(&self.words, slot, tag, len);
        for granted in &self.granted[indices(range)] {
            assert_eq!(granted.poke(tag), 0, "a byte was granted twice");
        }
        self.in_flight[slot].poke(pack(range));
        range
    }

    fn lock(&self) -> lock::Held<'_> {
        let before = model_atomics::memory();
        let held = lock::acquire(&self.words.repair, me(), &KernelAtLock { before });
        model_atomics::forget(before);
        held
    }

    /// As `log::repair::pad::repair`.
    fn repair(&self) {
        let words = &self.words;
        let who = CachedLiveness::new(&Kernel);
        if participants::orphaned_slots(words, &who).is_empty() {
            return;
        }
        let _held = self.lock();
        for slot in participants::orphaned_slots(words, &who) {
            let verdict = tail_word::granted(words, slot, tail_word::load(words));
            let is_right = verdict.map_or(0, pack) == self.in_flight[slot].peek();
            assert!(is_right, "a wrong verdict on slot {slot}: {verdict:?}");
            if let Some(range) = verdict {
                for byte in &self.file[indices(range)] {
                    byte.store(PAD, Ordering::Relaxed);
                }
            }
            tail_word::publish(words, slot);
            self.in_flight[slot].poke(0);
            participants::release_slot(words, slot);
        }
        event_count::notify(&words.event_count, false);
    }

    /// Looks at the published end as a reader does.
    fn observe(&self) -> Lsn {
        let published = tail_word::published(&self.words);
        let bytes = &self.file[..index(published.get())];
        assert!(
            bytes.iter().all(|byte| byte.peek() != 0),
            "a byte was published before it was filled"
        );
        published
    }

    /// Repairs what is left, and looks at everything. All other processes have ended.
    fn close(&self) {
        self.repair();
        let tail = tail_word::tail(&self.words);
        assert_eq!(self.observe(), tail, "something is in flight and nobody there");
        for at in 0..index(tail.get()) {
            let [granted, file, acknowledged] =
                [&self.granted, &self.file, &self.acknowledged].map(|bytes| bytes[at].peek());
            assert_ne!(granted, 0, "byte {at} is reserved and was granted to nobody");
            assert!(
                acknowledged == 0 || file == acknowledged,
                "byte {at} was acknowledged and lost"
            );
            assert!(file == granted || file == PAD, "byte {at} was granted to another");
        }
        let beyond = &self.file[index(tail.get())..];
        assert!(
            beyond.iter().all(|byte| byte.peek() == 0),
            "something was written beyond the tail"
        );
        drop(self.lock());
    }
}

/// Starts a process; they are numbered from 1.
fn start(world: &Arc<World>, body: impl FnOnce(&World) + Send + 'static) -> JoinHandle<Fate> {
    let world = Arc::clone(world);
    thread::spawn(move || model_atomics::live(|| body(&world)))
}

fn wait_for_all(processes: Vec<JoinHandle<Fate>>) {
    for process in processes {
        process.join().expect("a process fails the whole model");
    }
}

/// Writers that append and die, others that repair meanwhile, and a reader that looks `looks` times
/// how far it may read.
fn write_and_repair(writers: usize, appends: u64, repairers: usize, looks: usize) {
    let world = World::begin();
    world.give_slots(writers);
    let mut processes: Vec<_> = (1..=writers)
        .map(|writer| {
            start(&world, move |world| {
                for append in 0..appends {
                    let len = 1 + (writer as u64 + append) % 2;
                    world.append(writer - 1, tag(writer, append), len);
                }
            })
        })
        .collect();
    processes.extend((0..repairers).map(|_| start(&world, World::repair)));
    let read = move |world: &World| {
        let mut seen = Lsn::ZERO;
        for look in 0..looks {
            model_atomics::forget(model_atomics::mix(seen.get(), look as u64));
            let published = world.observe();
            assert!(published >= seen, "the published end went back");
            seen = published;
        }
    };
    if looks > 0 {
        processes.push(start(&world, read));
    }
    wait_for_all(processes);
    world.close();
}

/// Writers that give up what they have reserved, and then append with another slot; others repair
/// meanwhile.
fn give_up_and_go_on(writers: usize, repairers: usize) {
    let world = World::begin();
    world.give_slots(writers);
    let mut processes: Vec<_> = (1..=writers)
        .map(|writer| {
            start(&world, move |world| {
                world.give_up(writer - 1, tag(writer, 0), 2);
                world.repair();
                if let Some(slot) = participants::claim_slot(&world.words, me(), 0..SLOT_COUNT) {
                    world.append(slot, tag(writer, 1), 1 + writer as u64 % 2);
                }
            })
        })
        .collect();
    processes.extend((0..repairers).map(|_| start(&world, World::repair)));
    wait_for_all(processes);
    world.close();
}

/// Processes that come, repair, append once and leave, with two slots for all of them: a late one
/// finds a slot that was given back, or a dead one's, or none.
fn come_and_go(writers: usize) {
    let world = World::begin();
    // The other slots belong to the first process.
    for slot in &world.words.slots[2..] {
        slot.owner.poke(Owner::new(0, 1).to_word());
    }
    let processes = (1..=writers)
        .map(|writer| {
            start(&world, move |world| {
                world.repair();
                if let Some(slot) = participants::claim_slot(&world.words, me(), 0..SLOT_COUNT) {
                    let len = 1 + writer as u64 % 2;
                    world.append(slot, tag(writer, 0), len);
                    participants::release_slot(&world.words, slot);
                }
            })
        })
        .collect();
    wait_for_all(processes);
    world.close();
}

/// Processes that take the lock several times each.
fn take_turns(count: usize, turns: u64) {
    let world = World::begin();
    let turn = |world: &World| {
        let held = world.lock();
        // Stays behind where the holder dies; the next one reads its name.
        let inside = world.inside.peek() as usize;
        assert!(inside == 0 || model_atomics::is_killed(inside), "two hold the lock");
        world.inside.poke(model_atomics::me() as u64);
        world.file[0].load(Ordering::Relaxed);
        assert_eq!(world.inside.poke(0), model_atomics::me() as u64, "the lock was taken away");
        drop(held);
    };
    let processes = (0..count)
        .map(|_| {
            start(&world, move |world| {
                for number in 0..turns {
                    model_atomics::forget(number);
                    turn(world);
                }
            })
        })
        .collect();
    wait_for_all(processes);
    turn(&world);
}

/// As `log::Reader::follow`: returns when `end` is published.
fn follow(world: &World, end: u64) {
    let look = |seen: Lsn, rings: u64| {
        model_atomics::forget(model_atomics::mix(seen.get(), rings));
        seen.max(world.observe())
    };
    let mut position = look(Lsn::new(BEGIN), 0);
    while position.get() < end {
        model_atomics::forget(position.get());
        let (rings, _) = event_count::prepare_wait(&world.words.event_count);
        let published = look(position, 1 + u64::from(rings));
        if published == position {
            event_count::wait(&world.words.event_count, rings, Duration::MAX);
        }
        position = look(published, 0);
    }
}

/// Writers that ring, and a follower that sleeps.
fn write_and_follow(writers: usize, appends: u64, followers: usize) {
    let world = World::begin();
    world.give_slots(writers);
    let mut processes: Vec<_> = (1..=writers)
        .map(|writer| {
            start(&world, move |world| {
                for append in 0..appends {
                    world.append(writer - 1, tag(writer, append), 1);
                    event_count::notify(&world.words.event_count, true);
                }
            })
        })
        .collect();
    let end = BEGIN + writers as u64 * appends;
    processes.extend((0..followers).map(|_| start(&world, move |world| follow(world, end))));
    wait_for_all(processes);
    world.close();
}

/// As `log::Shipper::wait` and the driver behind it: ships the wanted positions, until `end` is
/// shipped.
fn ship(world: &World, end: u64) {
    let words = &world.words.ship;
    let mut from = BEGIN;
    while from < end {
        model_atomics::forget(from);
        let rings = event_count::arm(&words.wanted_count, event_count::SLEEPER);
        let wanted = words.wanted().get();
        model_atomics::forget(model_atomics::mix(from.max(wanted), 1 + u64::from(rings)));
        if wanted <= from {
            event_count::wait(&words.wanted_count, rings, Duration::MAX);
        } else {
            words.store(Lsn::new(wanted), Lsn::new(wanted));
            from = wanted;
        }
    }
}

/// As `Log::wait_shipped`.
fn wait_shipped(world: &World, end: u64) {
    let words = &world.words.ship;
    while words.whole().get() < end {
        model_atomics::forget(end);
        words.want(Lsn::new(end));
        let rings = event_count::arm(&words.shipped_count, event_count::SLEEPER);
        model_atomics::forget(model_atomics::mix(end, 1 + u64::from(rings)));
        if words.whole().get() < end {
            event_count::wait(&words.shipped_count, rings, Duration::MAX);
        }
    }
}

/// A shipper, and its waiters, each for another position.
fn ship_and_wait(waiters: u64) {
    let world = World::begin();
    let end = BEGIN + waiters;
    let mut processes = vec![start(&world, move |world| ship(world, end))];
    processes.extend(
        (1..=waiters).map(|waiter| start(&world, move |world| wait_shipped(world, BEGIN + waiter))),
    );
    wait_for_all(processes);
}

/// As `log::PollableReader::next`: the word takes the place of the watch of the control file, which
/// a writer has opened that learned of a poller.
fn poll(world: &World, end: u64) {
    let watch = &world.words.full.removals;
    let look = |seen: Lsn, opened: u64| {
        model_atomics::forget(model_atomics::mix(seen.get(), opened));
        seen.max(world.observe())
    };
    let mut position = look(Lsn::new(BEGIN), 0);
    while position.get() < end {
        model_atomics::forget(position.get());
        let opened = watch.load(Ordering::Acquire);
        event_count::prepare_poll(&world.words.event_count);
        let published = look(position, 1 + u64::from(opened));
        if published == position {
            primitive::wait(watch, opened, Duration::MAX);
        }
        position = look(published, 0);
    }
}

/// Writers that ring, and beside a poller perhaps a follower that sleeps.
fn write_and_poll(writers: usize, has_follower: bool) {
    let world = World::begin();
    world.give_slots(writers);
    let mut processes: Vec<_> = (1..=writers)
        .map(|writer| {
            start(&world, move |world| {
                world.append(writer - 1, tag(writer, 0), 1);
                if event_count::notify(&world.words.event_count, true) {
                    world.words.full.removals.fetch_add(1, Ordering::AcqRel);
                    primitive::wake_all(&world.words.full.removals);
                }
            })
        })
        .collect();
    let end = BEGIN + writers as u64;
    processes.push(start(&world, move |world| poll(world, end)));
    if has_follower {
        processes.push(start(&world, move |world| follow(world, end)));
    }
    wait_for_all(processes);
    world.close();
}

fn deaths(count: usize, mortal_count: usize) -> Deaths {
    Deaths { count, mortal_count }
}

#[test]
fn appends_of_three_writers_survive_any_two_deaths() {
    explore("3 writers × 1 append", deaths(2, 3), Extent::All, || write_and_repair(3, 1, 0, 0));
    explore("2 writers × 2 appends", deaths(2, 2), Extent::All, || write_and_repair(2, 2, 0, 0));
}

#[test]
fn repair_beside_living_writers_is_right() {
    let name = "2 writers × 1 append, repairer";
    explore(name, deaths(2, 2), Extent::All, || write_and_repair(2, 1, 1, 0));
    let name = "2 writers × 1 append, repairer, reader";
    explore(name, deaths(1, 2), Extent::All, || write_and_repair(2, 1, 1, 1));
}

#[test]
fn what_the_living_give_up_is_padded_once_and_their_next_is_another() {
    explore("1 gives up, repairer", deaths(1, 2), Extent::All, || give_up_and_go_on(1, 1));
    explore("2 give up", deaths(0, 0), Extent::All, || give_up_and_go_on(2, 0));
    let name = "2 give up, repairer";
    explore(name, deaths(2, 3), Extent::Random(50_000), || give_up_and_go_on(2, 1));
}

#[test]
fn what_is_published_is_filled_and_stays_published() {
    let name = "2 writers × 2 appends, reader";
    explore(name, deaths(0, 0), Extent::All, || write_and_repair(2, 2, 0, 2));
}

#[test]
fn everything_at_once_at_random() {
    let name = "3 writers × 2 appends, 2 repairers, reader";
    explore(name, deaths(2, 5), Extent::Random(50_000), || write_and_repair(3, 2, 2, 2));
}

#[test]
#[ignore = "takes a minute; run when the protocol is changed"]
fn appends_of_three_writers_two_each_survive_any_two_deaths() {
    explore("3 writers × 2 appends", deaths(2, 3), Extent::All, || write_and_repair(3, 2, 0, 0));
}

#[test]
#[ignore = "takes a minute; run when the protocol is changed"]
fn the_lock_of_three_outlives_any_two() {
    explore("lock, 3 × 1 turn", deaths(2, 3), Extent::All, || take_turns(3, 1));
}

#[test]
fn a_dead_repairer_is_replaced() {
    let name = "1 writer × 2 appends, 2 repairers";
    explore(name, deaths(2, 3), Extent::All, || write_and_repair(1, 2, 2, 0));
}

#[test]
fn a_slot_is_used_again_after_a_death() {
    explore("2 come and go", deaths(1, 1), Extent::All, || come_and_go(2));
    explore("3 come and go", deaths(2, 2), Extent::Random(50_000), || come_and_go(3));
}

#[test]
fn the_lock_excludes_and_outlives_its_holders() {
    explore("lock, 2 × 2 turns", deaths(1, 2), Extent::All, || take_turns(2, 2));
    explore("lock, 3 × 1 turn", deaths(0, 0), Extent::All, || take_turns(3, 1));
    explore("lock, 3 × 2 turns", deaths(2, 3), Extent::Random(50_000), || take_turns(3, 2));
}

#[test]
fn a_release_wakes_who_waits() {
    let counts = explore("lock, 2 × 2 turns", deaths(0, 0), Extent::All, || take_turns(2, 2));
    assert_eq!(counts.timeouts_without_death(), 0, "only the timeout ended a sleep");
}

#[test]
fn nobody_sleeps_through_news() {
    let name = "event_count, 2 writers × 1 append, follower";
    let one = explore(name, deaths(0, 0), Extent::All, || write_and_follow(2, 1, 1));
    let name = "event_count, 1 writer × 1 append, 2 followers";
    let two = explore(name, deaths(0, 0), Extent::All, || write_and_follow(1, 1, 2));
    let name = "event_count, 2 writers × 2 appends, 2 followers";
    let many = Extent::Random(50_000);
    let many = explore(name, deaths(0, 0), many, || write_and_follow(2, 2, 2));
    let timeouts = [one, two, many].map(|counts| counts.timeouts_without_death());
    assert_eq!(timeouts, [0; 3], "only the timeout ended a sleep");
}

#[test]
fn neither_a_shipper_nor_who_waits_for_it_sleeps_for_ever() {
    let one = explore("ship, 1 waiter", deaths(0, 0), Extent::All, || ship_and_wait(1));
    let two = explore("ship, 2 waiters", deaths(0, 0), Extent::All, || ship_and_wait(2));
    let many = Extent::Random(20_000);
    let many = explore("ship, 4 waiters", deaths(0, 0), many, || ship_and_wait(4));
    let timeouts = [one, two, many].map(|counts| counts.timeouts_without_death());
    assert_eq!(timeouts, [0; 3], "only the timeout ended a sleep");
}

#[test]
fn who_polls_is_woken_beside_who_sleeps() {
    let name = "event_count, 2 writers × 1 append, poller";
    let one = explore(name, deaths(0, 0), Extent::All, || write_and_poll(2, false));
    let name = "event_count, 1 writer × 1 append, poller and follower";
    let two = explore(name, deaths(0, 0), Extent::All, || write_and_poll(1, true));
    let timeouts = [one, two].map(|counts| counts.timeouts_without_death());
    assert_eq!(timeouts, [0; 2], "only the timeout ended a sleep");
}
