//! Reading what was shipped, from real logs: restored, printed, verified; whole, damaged, and while
//! others merge and remove. Objects are made by hand here, so that reading is tested without the
//! shipper.

mod cli;
mod company;
mod faulty;
mod hand;
mod hostile;
mod large;
mod pieces;
mod records;
mod restoring;
#[path = "../stores/server.rs"]
mod server;

/// Where a second process begins that has a role.
#[test]
fn child_entry() {
    restoring::child_entry();
}
