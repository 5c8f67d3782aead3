//! Words of memory that every participant shares, and the protocol over them.
//!
//! `docs/protocol.md` has a row for each word: its writers, their order, and the steps of the
//! survivors if a writer dies there. The code here is written over [`primitive`], so that two model
//! checkers run the very same functions: `model` with every order of steps and death at any of
//! them, `weak` with the weak memory of C11.
//!
//! # Safety
//!
//! The room of this crate with `unsafe` code, in two modules: [`region`] turns a mapping into
//! [`words::Words`], and [`exclusive`] lends a value to one thread at a time.

pub(crate) mod commit;
pub(crate) mod ends;
pub(crate) mod event_count;
#[allow(unsafe_code)]
pub(crate) mod exclusive;
pub(crate) mod files;
pub(crate) mod full;
pub(crate) mod lock;
mod lost;
#[cfg(all(test, shuttle))]
mod model;
#[cfg(shuttle)]
pub(crate) mod model_atomics;
pub(crate) mod notice;
pub(crate) mod participants;
pub(crate) mod primitive;
#[allow(unsafe_code)]
pub(crate) mod region;
pub(crate) mod ship;
mod space;
pub(crate) mod tail_word;
#[cfg(all(loom, test))]
mod weak;
#[cfg(all(loom, test))]
pub(crate) mod weak_atomics;
pub(crate) mod words;
