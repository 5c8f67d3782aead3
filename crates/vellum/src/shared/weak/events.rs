//! The event count: a reader that checks for news before it sleeps misses none.

use std::rc::Rc;
use std::time::Duration;

use super::{Place, explore, join, make_event_count, start};
use crate::shared::event_count;
use crate::shared::primitive::{self, AtomicU32, Ordering};
use crate::shared::words::EventCountWords;

/// The awaited value, and the words of the waiter.
struct World {
    count: EventCountWords,
    /// News so far, as a published end is.
    news: AtomicU32,
    read: [Place; 2],
    /// Takes the place of the watch of the control file, which the writer opens for a poller.
    watch: AtomicU32,
}

impl World {
    fn begin() -> Rc<World> {
        let count = EventCountWords::default();
        make_event_count(&count);
        let [news, watch] = [0, 0].map(AtomicU32::new);
        Rc::new(World { count, news, read: Default::default(), watch })
    }

    /// As a writer, which is alone.
    fn write(&self, count: usize, is_registered: bool) {
        for place in &self.read[..count] {
            place.write();
            self.news.fetch_add(1, Ordering::Release);
            if event_count::notify(&self.count, is_registered) {
                self.watch.fetch_add(1, Ordering::AcqRel);
                primitive::wake_all(&self.watch);
            }
        }
    }

    fn look(&self) -> u32 {
        let news = self.news.load(Ordering::Acquire);
        self.read[..news as usize].iter().for_each(Place::read);
        news
    }

    /// As `log::Reader::follow`, whose writers pass barriers, or as a waiter for `durable`, whose
    /// writers have their own.
    fn follow(&self, end: u32, is_registered: bool) {
        let mut seen = self.look();
        while seen < end {
            let rings = match is_registered {
                true => event_count::prepare_wait(&self.count).0,
                false => event_count::arm(&self.count, event_count::SLEEPER),
            };
            let news = self.look();
            if news == seen {
                event_count::wait(&self.count, rings, Duration::MAX);
            }
            seen = news;
        }
    }

    /// As `log::PollableReader::next`.
    fn poll(&self, end: u32) {
        let mut seen = self.look();
        while seen < end {
            let opened = self.watch.load(Ordering::Acquire);
            event_count::prepare_poll(&self.count);
            let news = self.look();
            if news == seen {
                primitive::wait(&self.watch, opened, Duration::MAX);
            }
            seen = news;
        }
    }
}

#[test]
fn nobody_sleeps_through_news() {
    for is_registered in [true, false] {
        let of = if is_registered { "registered" } else { "with a barrier of its own" };
        let follow =
            move |writes: usize, followers: usize| {
                let world = World::begin();
                let mut processes =
                    vec![start(&world, move |world| world.write(writes, is_registered))];
                processes.extend((0..followers).map(|_| {
                    start(&world, move |world| world.follow(writes as u32, is_registered))
                }));
                join(processes);
            };
        explore(&format!("events: a writer {of} × 1, follower"), None, move || follow(1, 1));
        explore(&format!("events: a writer {of} × 2, follower"), Some(3), move || follow(2, 1));
        explore(&format!("events: a writer {of} × 1, 2 followers"), Some(2), move || follow(1, 2));
    }
}

#[test]
fn who_polls_is_woken_beside_who_sleeps() {
    explore("events: a writer × 1, poller", None, || {
        let world = World::begin();
        let write = start(&world, |world| world.write(1, true));
        join([write, start(&world, |world| world.poll(1))]);
    });
    explore("events: a writer × 1, poller and follower", Some(2), || {
        let world = World::begin();
        let write = start(&world, |world| world.write(1, true));
        let poll = start(&world, |world| world.poll(1));
        join([write, poll, start(&world, |world| world.follow(1, true))]);
    });
}
