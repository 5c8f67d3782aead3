//! Many processes that are killed, stopped, forked and replaced while they append.

mod campaign;
mod creators;
mod deadlines;
mod holds;
mod inheritance;
mod liveness;
mod owning;
mod stopped;

use crate::support::child::Role;

pub(crate) const ROLES: &[Role] = &[
    ("hammer", campaign::hammer),
    ("hammer without advice", campaign::hammer_without_advice),
    ("create and append", creators::create_and_append),
    ("append a few", creators::append_a_few),
    ("lose the main thread", liveness::lose_the_main_thread),
    ("reserve with a forged start", liveness::reserve_with_a_forged_start),
    ("look through a veiled proc", liveness::look_through_a_veiled_proc),
    ("fork and leave", liveness::fork_and_leave),
    ("fork and look", liveness::fork_and_look),
    ("commit, fork and leave", inheritance::commit_fork_and_leave),
    ("truncate beside a child", inheritance::truncate_beside_a_child),
    ("fork beside openers", inheritance::fork_beside_openers),
    ("close all and append", inheritance::close_all_and_append),
    ("own every slot", liveness::own_every_slot),
    ("commit without end", holds::commit_without_end),
    ("stay in the gate", holds::stay_in_the_gate),
    ("own a log", owning::own_a_log),
    ("share a log", owning::share_a_log),
    ("own a log and fork", owning::own_a_log_and_fork),
    ("own a log beside a child", owning::own_a_log_beside_a_child),
    ("hold a reservation", stopped::hold_a_reservation),
    ("append on command", stopped::append_on_command),
];
