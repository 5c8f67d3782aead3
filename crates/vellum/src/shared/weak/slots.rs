//! Slots: claimed, given back, given up.

use std::rc::Rc;

use super::append::Log;
use super::{Everyone, Place, explore, indices, join, make_watched_lock, owner, start};
use crate::Lsn;
use crate::shared::{lock, participants, tail_word};

/// A log whose only slot is free.
struct World {
    log: Rc<Log>,
    /// Memory that only the owner of the slot uses.
    own: Place,
}

impl World {
    fn begin(is_claimed: bool) -> Rc<World> {
        let log = Log::begin(0);
        super::make_slot(&log.words.slots[0], if is_claimed { owner(1).to_word() } else { 0 });
        let appended = &log.words.slots[0].appended;
        appended.records.poke(0);
        appended.bytes.poke(0);
        make_watched_lock(&log.words.repair);
        Rc::new(World { log, own: Place::default() })
    }

    /// Claims the slot, appends with it and gives it back.
    fn append_with_a_slot(&self, number: usize) {
        let words = &self.log.words;
        let Some(slot) = participants::claim_slot(words, owner(number), 0..1) else { return };
        self.own.write();
        self.log.append(slot, 1);
        tail_word::count(words, slot, 1, 1);
        participants::release_slot(words, slot);
    }
}

#[test]
fn the_next_owner_of_a_slot_sees_what_the_one_before_did() {
    explore("slots: 2 share one, reader", Some(3), || {
        let world = World::begin(false);
        let use_it = |number| move |world: &World| world.append_with_a_slot(number);
        let read = start(&world, |world: &World| _ = world.log.read());
        join([start(&world, use_it(1)), start(&world, use_it(2)), read]);
        let words = &world.log.words;
        let records = tail_word::tail(words).get() - super::BEGIN;
        assert_eq!(tail_word::appended(words), (records, records), "a count was lost");
    });
}

#[test]
fn what_is_given_up_is_padded_behind_its_owner() {
    explore("slots: 1 gives up, 1 repairs", None, || {
        let world = World::begin(true);
        world.log.words.counts.slots_used.store(1, crate::shared::primitive::Ordering::Relaxed);
        let give_up = start(&world, |world: &World| {
            let grant = world.log.reserve(0, 2);
            world.log.file[indices(grant.range)].iter().for_each(Place::write);
            participants::give_up_slot(&world.log.words, 0);
        });
        let repair = start(&world, |world: &World| {
            let words = &world.log.words;
            let _held = lock::acquire(&words.repair, owner(2), &Everyone);
            for slot in participants::orphaned_slots(words, &Everyone) {
                let verdict = tail_word::granted(words, slot, tail_word::load(words));
                assert_eq!(verdict, world.log.granted[slot].get(), "a wrong verdict");
                let range = verdict.expect("it was granted");
                world.log.file[indices(range)].iter().for_each(Place::write);
                tail_word::publish(words, slot);
                participants::release_slot(words, slot);
            }
        });
        join([give_up, repair]);
        assert!(world.log.read() <= Lsn::new(super::BEGIN + 2));
    });
}
