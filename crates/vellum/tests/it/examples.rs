//! The examples as real processes that are killed: what they acknowledged is there afterwards, in
//! the directory itself and in a copy of it as another boot would find it.

mod map;
mod raft;

use std::fs;
use std::path::Path;

use crate::durable::in_another_boot;
use crate::support::child::Role;

pub(crate) const ROLES: &[Role] = &[("map", map::worker), ("raft node", raft::node)];

/// Copies everything below `from`, whose log in `log` is then one of another boot.
fn as_after_power_cut(from: &Path, to: &Path) {
    copy(from, to);
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
