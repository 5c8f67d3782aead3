//! The process that the words of a place name.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use super::{explore, join, start};
use crate::shared::participants::{self, Claim};
use crate::shared::words::Words;
use crate::sys::process::Incarnation;

#[test]
fn who_sees_that_a_place_is_taken_sees_by_whom() {
    explore("participants: 1 attaches, 1 looks", None, || {
        let words = Rc::new(Words::default());
        // Another one has been there before, so the count shows nothing.
        words.counts.participants_used.poke(1);
        let place = &words.participants[0];
        let of_it =
            [&place.generation, &place.pid, &place.start_ticks, &place.namespace, &place.claim];
        of_it.iter().for_each(|word| word.poke(0));
        let attach = start(&words, |words: &Words| {
            // The kernel's lock has no part in this: no other process wants the place.
            let file: OwnedFd = tempfile::tempfile().expect("a file").into();
            participants::attach(words, &file, Claim::default()).expect("a lock").expect("a place");
        });
        let look = start(&words, |words: &Words| {
            for (owner, place) in participants::attached(words) {
                assert!(participants::place_of(words, owner).is_some(), "nobody has left");
                let who = participants::incarnation(place);
                assert_eq!(who, Incarnation::current(), "somebody else");
            }
        });
        join([attach, look]);
    });
}
