//! State that one thread of a process uses at a time.

use std::rc::Rc;

use super::{Place, explore, join, start};
use crate::shared::exclusive::{self, Exclusive};

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

#[test]
fn the_owner_and_who_else_wants_it_never_have_it_at_once() {
    // Either barrier of the owner is a fence here.
    for (others, turns) in [(1, 2), (2, 1)] {
        let name = format!("exclusive: its owner, {turns} turns, and {others} others");
        explore(&name, None, move || {
            let cells = Rc::new([Exclusive::new(Place::default())]);
            let owner = move |cells: &[Exclusive<Place>; 1]| {
                for _ in 0..turns {
                    if let Some(place) = cells[0].take_own_in_model(false) {
                        place.write();
                    }
                }
            };
            let other = |cells: &[Exclusive<Place>; 1]| {
                for place in exclusive::take_idle(cells).into_iter().flatten() {
                    place.write();
                }
            };
            let mut all = vec![start(&cells, owner)];
            all.extend((0..others).map(|_| start(&cells, other)));
            join(all);
        });
    }
}
