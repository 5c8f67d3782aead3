//! The counterexamples of the first design, step by step: with the rule broken something is lost;
//! as it is, nothing is.

use super::explore::{Allowed, fault};
use super::scenarios::{claimant, differing, owner, small};
use super::steps::Step;
use super::world::{Budget, World};
use crate::decide::rules::{Broken, breaking};

const CLONED: Allowed = Allowed { fenced: true, diverged: true };
/// More requests than an actor makes in one trace.
const MANY: usize = 50;

/// Takes the step whose name begins so. `a...` does all that `a` has asked for, until it asks no
/// more. `?name` is a step that only the broken rule makes possible.
fn go(world: &mut World, name: &str) -> Option<String> {
    if let Some(letter) = name.strip_suffix("...") {
        let mut asked = (0..MANY).map_while(|_| take(world, &format!("{letter}: ")));
        return asked.find_map(|fault| fault);
    }
    match (take(world, name.trim_start_matches('?')), name.starts_with('?')) {
        (Some(fault), _) => fault,
        (None, true) => None,
        (None, false) => panic!("nobody can do: {name}"),
    }
}

/// Takes a step, if there is one of this name, and reports the fault behind it.
fn take(world: &mut World, name: &str) -> Option<Option<String>> {
    let step = world.steps(true).into_iter().find(|step| step.name.starts_with(name));
    let Step { mut next, .. } = step?;
    let fault = fault(&mut next, world, CLONED, true);
    *world = next;
    Some(fault)
}

fn follow(world: &World, broken: Option<Broken>, trace: &[&str]) -> Option<String> {
    breaking(broken, || {
        let mut world = world.clone();
        trace.iter().find_map(|name| go(&mut world, name))
    })
}

/// The trace is harmless, unless the rule is broken.
fn needs(rule: Broken, world: &World, trace: &[&str]) {
    assert_eq!(follow(world, None, trace), None);
    let fault = follow(world, Some(rule), trace);
    assert!(fault.is_some(), "{rule:?} was not seen");
}

fn world(actors: Vec<super::actor::Actor>, left: Budget) -> World {
    World::new(actors, left)
}

/// 1: a restart finds a request of its own that landed late, behind its position.
#[test]
fn a_stray_is_no_evidence() {
    let left = Budget { crashes: 1, floats: 2, ..small() };
    let trace = [
        "a starts",
        "a...",
        "a ships 0..1",
        "a ships 1..2",
        "a dies, its requests go on",
        "old request 1 lands",
        "a starts",
        "a...",
    ];
    needs(Broken::StrayIsEvidence, &world(vec![owner(b'a', 2)], left), &trace);
}

/// 2: a slow claimant seals where a chunk was that has been merged and deleted.
#[test]
fn a_seal_in_the_past_wins_nothing() {
    let left = Budget { claims: 2, merges: 1, flight: 1, ..small() };
    let trace = [
        "a starts",
        "a...",
        "b takes over",
        "b: Look(Closed",
        "b: List",
        "b: Look(Link",
        "b: Look(Closed",
        "a ships 0..2",
        "a...",
        "a saves",
        "a merges 0..2",
        "a begins a generation",
        "a...",
        "a closes",
        "0: From(0)",
        "g00000000/t/0000000000000000",
        "b...",
    ];
    needs(Broken::NoCheckAfterClaim, &world(vec![owner(b'a', 2), claimant(b'b')], left), &trace);
}

/// 3: a restore has listed no merged object, and finds the chunk gone.
#[test]
fn an_absent_chunk_is_not_always_the_end() {
    let left = Budget { claims: 1, merges: 1, restores: 1, flight: 1, ..small() };
    let trace = [
        "a starts",
        "a...",
        "a ships 0..2",
        "a...",
        "a saves",
        "a restore begins",
        "restorer: Look(Closed",
        "restorer: List",
        "a merges 0..2",
        "a begins a generation",
        "a...",
        "a closes",
        "0: From(0)",
        "g00000000/t/0000000000000000",
        "restorer...",
    ];
    needs(Broken::ReaderTrustsAbsence, &world(vec![owner(b'a', 2)], left), &trace);
}

/// 4: a copy's request lands where a chunk was, and its next try finds it there.
#[test]
fn what_is_adopted_is_checked_too() {
    let left = Budget { claims: 1, merges: 1, floats: 1, flight: 1, ..small() };
    let trace = [
        "a starts",
        "a...",
        "b starts",
        "b...",
        "b ships 0..2",
        "b tries",
        "a ships 0..2",
        "a...",
        "a saves",
        "a merges 0..2",
        "a begins a generation",
        "a...",
        "a closes",
        "0: From(0)",
        "g00000000/t/0000000000000000",
        "old request 0 lands",
        "b...",
    ];
    needs(Broken::NoCheckAfterAdopt, &world(vec![differing(b'a'), differing(b'b')], left), &trace);
}

/// 5: a retained part that begins with no merged object has no anchor.
#[test]
fn what_is_retained_begins_with_a_merged_object() {
    let left = Budget { claims: 1, retains: 1, flight: 1, ..small() };
    let trace = [
        "a starts",
        "a...",
        "a ships 0..1",
        "a...",
        "a ships 1..2",
        "a...",
        "a saves",
        "a begins a generation",
        "a...",
        "a closes",
        "?0: From(1)",
        "?g00000000/t/0000000000000000",
    ];
    needs(Broken::RetainAnywhere, &world(vec![owner(b'a', 2)], left), &trace);
}

/// 6: an owner judges a copy's stray, although its own longer chunk will be the chain.
#[test]
fn only_the_first_is_judged() {
    let left = Budget { crashes: 1, floats: 1, ..small() };
    let trace = [
        "a starts",
        "a...",
        "b starts",
        "b...",
        "a ships 0..2",
        "a dies, its requests go on",
        "a starts",
        "a...",
        "b ships 0..1",
        "b ships 1..2",
        "b: Create(Header { kind: Chunk, zstd: \
         false, generation: 0, log_id: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], start: 1",
        "a ships 0..1",
        "a ships 1..2",
        "a: Create(Header { kind: Chunk, zstd: false, generation: \
         0, log_id: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], start: 1",
        "?a: Look(Link",
        "old request 0 lands",
        "a...",
    ];
    needs(Broken::JudgeOutOfOrder, &world(vec![differing(b'a'), differing(b'b')], left), &trace);
}

/// 7: with an old state file, and merged objects behind it. Chunks of an open generation are not
/// deleted, so here the walk over chunks finds all of them.
#[test]
fn an_old_state_file_loses_nothing() {
    let left = Budget { crashes: 1, merges: 1, old_files: 1, flight: 1, cells: 3, ..small() };
    let world = world(vec![owner(b'a', 3)], left);
    let trace = [
        "a starts",
        "a...",
        "a ships 0..2",
        "a...",
        "a saves",
        "a merges 0..2",
        "a dies",
        "a gets an old",
        "a starts",
        "a...",
        "a ships 2..3",
        "a...",
    ];
    assert_eq!(follow(&world, None, &trace), None);
    assert_eq!(follow(&world, Some(Broken::NoResync), &trace), None);
}

/// 8: a reader that takes chunks first finds no way from one merged object to the next.
#[test]
fn merged_objects_come_first() {
    let left = Budget { claims: 1, merges: 2, flight: 1, ..small() };
    let trace = [
        "a starts",
        "a...",
        "a ships 0..2",
        "a...",
        "a ships 2..4",
        "a...",
        "a saves",
        "a merges 0..2",
        "a merges 2..4",
        "a begins a generation",
        "a...",
        "a closes",
        "0: From(0)",
        "g00000000/t/0000000000000002",
    ];
    needs(Broken::ChunksFirst, &world(vec![owner(b'a', 4)], left), &trace);
}

/// Two chunks in flight, of which the second lands alone; then the log is cut elsewhere.
#[test]
fn names_have_the_chain() {
    let left = Budget { crashes: 1, floats: 2, cells: 3, ..small() };
    let trace = [
        "a starts",
        "a...",
        "a ships 0..2",
        "a ships 2..3",
        "a dies, its requests go on",
        "old request 1 lands",
        "a starts",
        "a...",
        "a ships 0..1",
        "a...",
        "a ships 1..2",
        "a...",
        "a ships 2..3",
        "a...",
    ];
    needs(Broken::KeyWithoutChain, &world(vec![owner(b'a', 3)], left), &trace);
}

/// A chunk arrives after an actor that takes over has compared its log, and before its seal.
#[test]
fn what_was_not_compared_is_cut_off() {
    let left = Budget { claims: 1, flight: 1, ..small() };
    let trace = [
        "a starts",
        "a...",
        "a ships 0..1",
        "a...",
        "b restores",
        "b appends",
        "b takes over",
        "a ships 1..2",
        "a...",
        "b...",
    ];
    needs(Broken::ForkAnywhere, &world(vec![owner(b'a', 2), claimant(b'b')], left), &trace);
}

/// One that takes over dies; when it continues, another one has taken over.
#[test]
fn a_generation_that_was_not_compared_is_left_alone() {
    let left = Budget { claims: 2, crashes: 1, flight: 1, ..small() };
    let trace = [
        "b starts",
        "b...",
        "b ships 0..2",
        "b...",
        "b dies",
        "b takes over",
        "a takes over",
        "a...",
        "a ships 0..2",
        "a...",
        "b...",
    ];
    needs(Broken::TakeAnyGeneration, &world(vec![differing(b'a'), differing(b'b')], left), &trace);
}

/// A copy has shipped when the owner begins its next generation.
#[test]
fn a_generation_begins_only_behind_its_owners_bytes() {
    let left = Budget { claims: 1, flight: 1, ..small() };
    let trace = [
        "a starts",
        "a...",
        "b starts",
        "b...",
        "a ships 0..1",
        "a...",
        "a saves",
        "a begins a generation",
        "b ships 0..1",
        "b...",
        "b ships 1..2",
        "b...",
        "a...",
    ];
    needs(Broken::RotateAnywhere, &world(vec![differing(b'a'), differing(b'b')], left), &trace);
}
