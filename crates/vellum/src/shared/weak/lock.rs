//! The lock that outlives its holder's death.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use super::{
    Everyone, Kernel, Place, explore, for_each_death, join, make_watched_lock, owner, start,
};
use crate::shared::lock::{self, Outcome, Timeout};
use crate::shared::primitive::AtomicU32;
use crate::shared::words::{Alone, WatchedLockWords};

struct World {
    lock: Alone<WatchedLockWords>,
    /// The work under the lock.
    work: Place,
    /// 1 once a holder has done what others want the lock for.
    is_done: AtomicU32,
    kernel: Kernel,
}

impl World {
    fn begin() -> Rc<World> {
        let lock = Alone::default();
        make_watched_lock(&lock);
        let is_done = AtomicU32::new(0);
        Rc::new(World { lock, work: Place::default(), is_done, kernel: Kernel::begin() })
    }

    fn turn(&self, number: usize) {
        let held = lock::acquire(&self.lock, owner(number), &Everyone);
        self.work.write();
        drop(held);
    }
}

fn take_turns(count: usize, turns: usize) {
    let world = World::begin();
    let turns = |number| move |world: &World| (0..turns).for_each(|_| world.turn(number));
    join((1..=count).map(|number| start(&world, turns(number))).collect::<Vec<_>>());
}

#[test]
fn the_lock_excludes_and_a_release_wakes_who_waits() {
    explore("lock: 2 × 1 turn", None, || take_turns(2, 1));
    explore("lock: 2 × 2 turns", Some(3), || take_turns(2, 2));
    explore("lock: 3 × 1 turn", Some(2), || take_turns(3, 1));
}

#[test]
fn who_finds_the_work_done_sees_it() {
    explore("lock: 1 does what the other waits for", Some(3), || {
        let world = World::begin();
        let holder = start(&world, |world: &World| {
            let held = lock::acquire(&world.lock, owner(1), &Everyone);
            world.work.write();
            world.is_done.store(1, Ordering::Release);
            held.wake_waiters();
        });
        let waiter = start(&world, |world: &World| {
            let is_done = || world.is_done.load(Ordering::Acquire) != 0;
            let me = owner(2);
            match lock::acquire_unless(&world.lock, me, &Everyone, Timeout::Never, is_done) {
                Outcome::Held(_held) => world.work.write(),
                Outcome::Needless => world.work.read(),
                Outcome::TimedOut => unreachable!("it waits as long as it takes"),
            }
        });
        join([holder, waiter]);
    });
}

#[test]
fn who_takes_over_from_the_dead_sees_what_they_did() {
    for_each_death("lock: 1 dies, 1 takes over", Some(3), |steps| {
        let world = World::begin();
        let turn = |number| {
            move |world: &World| {
                let held = lock::acquire(&world.lock, owner(number), &world.kernel);
                world.work.write();
                drop(held);
            }
        };
        let live = |number, steps| {
            let body = turn(number);
            start(&world, move |world: &World| world.kernel.live(number, steps, || body(world)))
        };
        let processes = [live(0, steps), live(1, u64::MAX)];
        join(processes)[0]
    });
}
