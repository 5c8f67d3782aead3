//! What one thread of a process uses at a time.

use std::rc::Rc;

use super::{Place, explore, join, start};
use crate::shared::exclusive::Exclusive;

#[test]
fn who_has_it_sees_what_was_done_before() {
    explore("exclusive: 2 × 2 turns", None, || {
        let cell = Rc::new(Exclusive::new(Place::default()));
        let turns = |cell: &Exclusive<Place>| {
            for _ in 0..2 {
                if let Some(place) = cell.try_take() {
                    place.write();
                }
            }
        };
        join([start(&cell, turns), start(&cell, turns)]);
    });
}
