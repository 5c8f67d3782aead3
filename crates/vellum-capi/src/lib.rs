//! Vellum for C: the functions behind `include/vellum.h`.
//!
//! | module | what C sees of it |
//! |---|---|
//! | [`version`], [`status`], [`last_error`] | versions, the codes that functions return, what went wrong |
//! | [`options`], [`log`] | opening a log, its positions |
//! | [`append`], [`batch`], [`reservation`] | writing records |
//! | [`commit`], [`committer`], [`checkpoint`] | surviving a power cut; when a checkpoint is due |
//! | [`reader`], [`record`], [`gap`] | reading and following, what is missing |
//! | [`position`] | positions to store |
//! | [`backwards`] | reading from the newest record back |
//! | [`cursor`] | named positions |
//! | [`read_at`] | one record by its position, and the newest one |
//! | [`upkeep`], [`stat`], [`verify`] | looking after a log |
//! | [`bus_errors`] | storage that fails under a mapping |
//!
//! Below them are `boundary`, which every function goes through, so that no panic crosses it and
//! every error is kept for the thread, and `growing`, for structures that may get more fields.
//!
//! Handles are references and boxes in Rust (`Option<&vellum_log>` is a pointer that may be NULL),
//! so that ownership can be read from a function's type: `&` may be used by many threads at once,
//! `&mut` by one at a time, and a function that takes a `Box` ends it.
//!
//! Comments on public items are written for the header, which is made of them
//! (`VELLUM_BLESS=1 cargo test -p vellum-capi header`); the common part of all functions is in
//! `include/prelude.h`.

#![allow(non_camel_case_types, reason = "types and constants have the names they have in C")]
#![allow(clippy::missing_safety_doc, reason = "what C must see to is told in the header's prelude")]

#[cfg(panic = "abort")]
compile_error!("a panic must end at the border to C: compile Vellum with panic = \"unwind\"");

pub mod append;
pub mod backwards;
pub mod batch;
mod boundary;
pub mod bus_errors;
pub mod checkpoint;
pub mod commit;
pub mod committer;
pub mod cursor;
pub mod gap;
mod growing;
pub mod last_error;
pub mod log;
pub mod options;
pub mod position;
pub mod read_at;
pub mod reader;
pub mod record;
pub mod reservation;
pub mod stat;
pub mod status;
pub mod upkeep;
pub mod verify;
pub mod version;

/// The promises of the header about threads, checked by the compiler.
#[allow(dead_code, reason = "it only has to compile")]
mod threads {
    use vellum::stat::Stat;
    use vellum::{
        Backwards, Batch, CheckpointEvent, Committer, Completion, Cursor, Log, Reader, Reservation,
        SegmentKeeper,
    };

    /// Handles that C takes as const: any number of threads at once.
    const fn is_shared<T: Send + Sync>() {}
    /// Handles that it does not: one thread at a time, whichever.
    const fn moves<T: Send>() {}

    const PROMISES: () = {
        is_shared::<Log>();
        is_shared::<Committer>();
        is_shared::<CheckpointEvent>();
        is_shared::<Completion>();
        is_shared::<Stat>();
        is_shared::<Cursor>();
        moves::<Reader>();
        moves::<Backwards>();
        moves::<Batch<'static>>();
        moves::<Reservation<'static>>();
        moves::<SegmentKeeper>();
    };
}
