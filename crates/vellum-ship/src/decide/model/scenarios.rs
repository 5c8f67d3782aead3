//! The scenarios, and the broken rules that they must find.

use super::explore::{Allowed, Found, explore, wander};
use super::world::{Actor, Budget, ORIGIN, World};
use crate::decide::Saved;
use crate::decide::rules::Broken;

const ALONE: Allowed = Allowed { fenced: false, diverged: false };
const CONTESTED: Allowed = Allowed { fenced: true, diverged: false };
const CLONED: Allowed = Allowed { fenced: true, diverged: true };

fn owner(letter: u8, shared: usize) -> Actor {
    let saved = Saved { generation: 0, nonce: 1, point: ORIGIN, flights: Vec::new() };
    let log = vec![b'='; shared];
    Actor { durable: shared as u64, log, ..Actor::new(letter, Some(saved)) }
}

fn claimant(letter: u8) -> Actor {
    Actor::new(letter, None)
}

fn alone() -> (World, Allowed) {
    let left = Budget { cells: 3, flight: 2, crashes: 2, floats: 2, merges: 1, ..small() };
    (World::new(vec![owner(b'a', 0)], left), ALONE)
}

fn small() -> Budget {
    Budget { cells: 2, flight: 2, ..Budget::default() }
}

fn taken_over() -> (World, Allowed) {
    let left =
        Budget { cells: 2, claims: 1, floats: 1, crashes: 1, merges: 1, restores: 1, ..small() };
    (World::new(vec![owner(b'a', 1), claimant(b'b')], left), CONTESTED)
}

/// The owner begins a generation itself and deletes in the one before, while its old requests land.
fn renewed() -> (World, Allowed) {
    let left = Budget {
        claims: 1,
        floats: 1,
        crashes: 1,
        merges: 1,
        retains: 1,
        restores: 1,
        cells: 3,
        flight: 1,
        ..small()
    };
    (World::new(vec![owner(b'a', 2)], left), ALONE)
}

fn cloned() -> (World, Allowed) {
    let left = Budget { floats: 1, crashes: 1, merges: 1, ..small() };
    (World::new(vec![owner(b'a', 1), owner(b'b', 1)], left), CLONED)
}

/// A copy that sleeps until what it would create was deleted. The second cells differ.
fn zombie() -> (World, Allowed) {
    let left = Budget { claims: 1, merges: 1, retains: 0, restores: 0, flight: 1, ..small() };
    (World::new(vec![differing(b'a'), differing(b'b')], left), CLONED)
}

/// Two copies whose objects stand beside each other's chain.
fn strays() -> (World, Allowed) {
    let left = Budget { floats: 1, crashes: 1, ..small() };
    (World::new(vec![differing(b'a'), differing(b'b')], left), CLONED)
}

fn differing(letter: u8) -> Actor {
    Actor { log: vec![b'=', letter], durable: 2, ..owner(letter, 0) }
}

fn slow_claimant() -> (World, Allowed) {
    let left = Budget { claims: 2, merges: 1, flight: 1, ..small() };
    (World::new(vec![owner(b'a', 2), claimant(b'b')], left), CONTESTED)
}

fn truncated() -> (World, Allowed) {
    let left =
        Budget { forks: 1, floats: 1, crashes: 1, restores: 1, cells: 3, flight: 1, ..small() };
    (World::new(vec![owner(b'a', 1)], left), ALONE)
}

fn power_cut() -> (World, Allowed) {
    let left = Budget { cells: 3, power_cuts: 1, floats: 1, crashes: 1, ..small() };
    (World::new(vec![owner(b'a', 0)], left), ALONE)
}

fn gaps() -> (World, Allowed) {
    let left = Budget { cells: 3, overruns: 2, crashes: 1, floats: 1, ..small() };
    (World::new(vec![owner(b'a', 2)], left), ALONE)
}

fn gaps_of_a_clone() -> (World, Allowed) {
    let left = Budget { cells: 2, overruns: 1, crashes: 1, flight: 1, ..small() };
    (World::new(vec![owner(b'a', 0), owner(b'b', 0)], left), CLONED)
}

fn old_file() -> (World, Allowed) {
    let left = Budget { crashes: 1, merges: 1, old_files: 1, claims: 0, floats: 1, ..small() };
    (World::new(vec![owner(b'a', 2)], left), ALONE)
}

fn trimmed() -> (World, Allowed) {
    let left = Budget { cells: 3, crashes: 1, trims: 2, merges: 1, ..small() };
    (World::new(vec![owner(b'a', 2)], left), ALONE)
}

/// All at once, by chance.
fn everything() -> (World, Allowed) {
    let left = Budget {
        cells: 6,
        flight: 3,
        crashes: 3,
        floats: 3,
        claims: 3,
        forks: 1,
        overruns: 0,
        trims: 1,
        merges: 3,
        retains: 2,
        restores: 3,
        ..Budget::default()
    };
    (World::new(vec![owner(b'a', 2), owner(b'k', 2), claimant(b'b')], left), CLONED)
}

fn holds(scenario: fn() -> (World, Allowed)) {
    let (world, allowed) = scenario();
    let found = explore(&world, allowed, None);
    eprintln!("{} states, exhausted: {}", found.states, found.is_exhausted);
    assert!(found.fault.is_none(), "{}", found.fault.unwrap_or_default());
}

fn is_caught(broken: Broken, scenario: fn() -> (World, Allowed)) {
    let (world, allowed) = scenario();
    let found = explore(&world, allowed, Some(broken));
    let found = match found.fault {
        Some(_) => found,
        None => wander(&world, allowed, Some(broken), 3_000),
    };
    let Found { fault, states, .. } = found;
    eprintln!("{broken:?}: {}", fault.as_deref().unwrap_or("not found"));
    assert!(fault.is_some(), "{broken:?} was not found in {states} states");
}

macro_rules! scenarios {
    ($($scenario:ident),*) => { mod holds { $(#[test] fn $scenario() { super::holds(super::$scenario) })* } };
}

scenarios!(
    alone,
    taken_over,
    renewed,
    cloned,
    zombie,
    strays,
    slow_claimant,
    truncated,
    power_cut,
    gaps,
    gaps_of_a_clone,
    old_file,
    trimmed
);

#[test]
fn everything_at_once_by_chance() {
    let (world, allowed) = everything();
    let walks = super::explore::states_max() as u64 / 300;
    let found = wander(&world, allowed, None, walks);
    assert!(found.fault.is_none(), "{}", found.fault.unwrap_or_default());
}

macro_rules! caught {
    ($($name:ident: $broken:ident in $scenario:ident),* $(,)?) => {
        mod caught { $(#[test] fn $name() {
            super::is_caught(super::Broken::$broken, super::$scenario)
        })* }
    };
}

caught! {
    unconditional_put: UnconditionalPut in cloned,
    acknowledging_before_the_reply: AckBeforeReply in cloned,
    shipping_beyond_durable: ShipBeyondDurable in power_cut,
    deleting_seals: DeleteSeals in renewed,
    marker_after_deletion: MarkerAfterDelete in zombie,
    no_check_after_create: NoCheckAfterCreate in zombie,
    // Counterexample 4.
    no_check_after_adopt: NoCheckAfterAdopt in zombie,
    // Counterexample 2.
    no_check_after_claim: NoCheckAfterClaim in slow_claimant,
    nonce_decides: NonceDecides in cloned,
    // Counterexample 3.
    absence_trusted_by_readers: ReaderTrustsAbsence in renewed,
    // Counterexample 8.
    chunks_first: ChunksFirst in zombie,
    key_without_chain: KeyWithoutChain in strays,
    // Counterexample 6.
    judging_out_of_order: JudgeOutOfOrder in strays,
    // Counterexample 5.
    retaining_anywhere: RetainAnywhere in renewed,
    gaps_without_a_journal: NoJournal in gaps,
    gaps_adopting_what_is_not_seen: AdoptUnseen in gaps_of_a_clone,
    // Counterexample 7.
    restarting_without_resync: NoResync in old_file,
    letting_go_before_saving: HoldBeforeSave in trimmed,
}
