//! The examples as real processes that are killed: acknowledged changes are there afterwards, in
//! the directory itself and in a copy of it as another boot would find it.

mod map;
mod raft;

use std::fs;
use std::path::Path;

use crate::durable::{in_another_boot, stages};
use crate::support::{child::Role, until};

pub(crate) const ROLES: &[Role] = &[("map", map::worker), ("raft node", raft::node)];

/// Opens a store once its lock is free: a child that another test has forked has it until it
/// executes its program.
fn once_unlocked<T, E>(
    open: impl Fn() -> Result<T, E>,
    is_locked: impl Fn(&E) -> bool,
) -> Result<T, E> {
    until("the lock is free", || {
        let opened = open();
        (!opened.as_ref().is_err_and(&is_locked)).then_some(opened)
    })
}

/// Copies everything below `from`, whose log in `log` is then one of another boot.
fn as_after_power_cut(from: &Path, to: &Path) {
    copy(from, to);
    stages(&to.join("log")).iter().for_each(|stage| fs::remove_file(stage).unwrap());
    in_another_boot(&to.join("log"));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
