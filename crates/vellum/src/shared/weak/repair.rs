//! The verdict on the ranges of the dead, and padding them.

use std::rc::Rc;

use loom::thread::JoinHandle;

use super::append::Log;
use super::{
    Kernel, Place, for_each_death, indices, make_event_count, make_watched_lock, owner, start,
};
use crate::shared::weak_atomics::Fate;
use crate::shared::{event_count, lock, participants, tail_word};

/// A log whose first process dies.
struct World {
    log: Rc<Log>,
    kernel: Kernel,
}

impl World {
    fn begin(slots: usize) -> Rc<World> {
        let log = Log::begin(slots);
        make_watched_lock(&log.words.repair);
        make_event_count(&log.words.event_count);
        Rc::new(World { log, kernel: Kernel::begin() })
    }

    /// As `log::repair::pad::repair`.
    fn repair(&self, number: usize) {
        let words = &self.log.words;
        if participants::orphaned_slots(words, &self.kernel).is_empty() {
            return;
        }
        let _held = lock::acquire(&words.repair, owner(number), &self.kernel);
        for slot in participants::orphaned_slots(words, &self.kernel) {
            let verdict = tail_word::granted(words, slot, tail_word::load(words));
            assert_eq!(verdict, self.log.granted[slot].get(), "a wrong verdict");
            if let Some(range) = verdict {
                self.log.file[indices(range)].iter().for_each(Place::write);
            }
            tail_word::publish(words, slot);
            self.log.granted[slot].set(None);
            participants::release_slot(words, slot);
        }
        event_count::notify(&words.event_count, false);
    }

    /// Appends, and remembers what is in flight.
    fn append(&self, slot: usize) {
        self.log.append(slot, 1 + slot as u64);
        self.log.granted[slot].set(None);
    }
}

fn start_living(
    world: &Rc<World>,
    number: usize,
    steps: u64,
    body: impl FnOnce(&World) + 'static,
) -> JoinHandle<Fate> {
    start(world, move |world| world.kernel.live(number, steps, || body(world)))
}

/// All of it is published once the last has repaired.
fn close(world: &World, number: usize) {
    world.repair(number);
    assert_eq!(world.log.read(), tail_word::tail(&world.log.words), "something is in flight");
}

#[test]
fn the_dead_are_padded_exactly() {
    for_each_death("repair: 1 dies, 1 appends and repairs", Some(2), |steps| {
        let world = World::begin(2);
        let first = start_living(&world, 0, steps, |world| world.append(0));
        let second = start_living(&world, 1, u64::MAX, |world| {
            world.append(1);
            world.repair(1);
        });
        let fate = first.join().expect("it ends");
        second.join().expect("it ends");
        close(&world, 2);
        fate
    });
}
