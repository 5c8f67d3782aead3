//! Waiters for a shipped position, and the shipper.

use std::rc::Rc;
use std::time::Duration;

use super::{BEGIN, Place, explore, join, make_event_count, start};
use crate::Lsn;
use crate::shared::event_count;
use crate::shared::words::ShipWords;

/// The words, and the end in the store.
#[derive(Default)]
struct World {
    words: ShipWords,
    shipped: [Place; 2],
}

impl World {
    fn begin() -> Rc<World> {
        let world = World::default();
        let ShipWords { shipped, whole, wanted, shipped_count, wanted_count, .. } = &world.words;
        [shipped, whole, wanted].iter().for_each(|word| word.poke(BEGIN));
        [shipped_count, wanted_count].iter().for_each(|count| make_event_count(count));
        Rc::new(world)
    }

    fn read(&self, end: u64) {
        self.shipped[..(end - BEGIN) as usize].iter().for_each(Place::read);
    }

    /// As `log::Shipper::wait` and the driver behind it: ships the wanted positions, until `end` is
    /// shipped.
    fn ship(&self, end: u64) {
        let words = &self.words;
        let mut from = BEGIN;
        while from < end {
            let rings = event_count::arm(&words.wanted_count, event_count::SLEEPER);
            let wanted = words.wanted().get();
            if wanted <= from {
                event_count::wait(&words.wanted_count, rings, Duration::MAX);
                continue;
            }
            let stretch = (from - BEGIN) as usize..(wanted - BEGIN) as usize;
            self.shipped[stretch].iter().for_each(Place::write);
            words.store(Lsn::new(wanted), Lsn::new(wanted));
            from = wanted;
        }
    }

    /// As `Log::wait_shipped`.
    fn wait(&self, end: u64) {
        let words = &self.words;
        while words.whole().get() < end {
            words.want(Lsn::new(end));
            let rings = event_count::arm(&words.shipped_count, event_count::SLEEPER);
            if words.whole().get() < end {
                event_count::wait(&words.shipped_count, rings, Duration::MAX);
            }
        }
        self.read(end);
        assert!(words.shipped() >= words.whole().min(Lsn::new(end)));
    }
}

fn ship_and_wait(waiters: u64) {
    let world = World::begin();
    let mut processes = vec![start(&world, move |world| world.ship(BEGIN + waiters))];
    processes.extend((1..=waiters).map(|end| start(&world, move |world| world.wait(BEGIN + end))));
    join(processes);
}

#[test]
fn what_is_said_to_be_shipped_is_and_nobody_sleeps_for_ever() {
    explore("ship: 1 waiter", Some(3), || ship_and_wait(1));
    explore("ship: 2 waiters", Some(2), || ship_and_wait(2));
    explore("ship: shipped, as people see it", None, || {
        let world = World::begin();
        let ship = start(&world, |world| {
            world.shipped[0].write();
            world.words.store(Lsn::new(BEGIN + 1), Lsn::new(BEGIN + 1));
        });
        join([ship, start(&world, |world| world.read(world.words.shipped().get()))]);
    });
}
