//! The log as its users see it: through the public interface, in one process and in many.
//!
//! - `api`: everything the interface promises, in both layouts.
//! - `cursors`: named cursors, their holds, and their owners.
//! - `faults`: one test for each fault of the predecessor that applies here.
//! - `durable`: commits, and logs after a power cut.
//! - `damage`: bad input, scribbled words, flipped bytes, missing rights.
//! - `examples`: the examples for authors of databases, killed at any moment.
//! - `golden`: files that a released format wrote.
//! - `processes`: many processes that are killed, stopped, forked and replaced.
//! - `ship`: the interface for shipping a log and restoring it.
//! - `text`: the files of text logs, their names and their policy.
//!
//! Tests that need a second process run this binary again (`support::child`).

mod api;
mod cursors;
mod damage;
mod durable;
mod examples;
mod faults;
mod golden;
mod processes;
mod ship;
mod support;
mod text;

/// Where a second process of a test starts; an ordinary run passes over it.
#[test]
fn child_entry() {
    support::child::run_role(&[
        api::ROLES,
        cursors::ROLES,
        faults::ROLES,
        damage::ROLES,
        durable::ROLES,
        examples::ROLES,
        processes::ROLES,
        ship::ROLES,
        text::ROLES,
    ]);
}
