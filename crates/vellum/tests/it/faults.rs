//! One test for each fault of the predecessor (F1 to F29) that can occur in such a log at all.
//!
//! Not here: F16 (no way to ask for durability) waits for commits; F25, F27 and F28 (linking, data
//! races, false sharing) are settled by the language and the layout of the shared words; F2, F4 and
//! F5 have their campaigns in `processes`, F7 to F9 more tests in `api::trimming`.

mod creation;
mod failing;
mod forks;
mod full;
mod given_up;
mod limits;
mod low_descriptors;
mod mappings;
mod own_limits;
mod places;
mod reflink;
mod removal;
mod room;
mod space;

use crate::support::child::Role;

pub(crate) const ROLES: &[Role] = &[
    ("fill the disk", space::fill_the_disk),
    ("fail in a thread", space::fail_in_a_thread),
    ("use a full disk", space::use_a_full_disk),
    ("drop on a full disk", full::drop_on_a_full_disk),
    ("drop many", full::drop_many),
    ("append and drop for ever", full::append_and_drop_for_ever),
    ("wait for space", full::wait_for_space),
    ("wait and make room", room::wait_and_make_room),
    ("append under a size limit", limits::append_under_a_size_limit),
    ("append with little address space", limits::append_with_little_address_space),
    ("die half-way", limits::die_half_way),
    ("give up and live on", given_up::give_up_and_live_on),
    ("append and commit", given_up::append_and_commit),
    ("append without descriptors", own_limits::append_without_descriptors),
    ("commit without descriptors", own_limits::commit_without_descriptors),
    ("submit without descriptors", own_limits::submit_without_descriptors),
    ("event without descriptors", own_limits::event_without_descriptors),
    ("commit under a size limit", own_limits::commit_under_a_size_limit),
    ("do everything under a size limit", own_limits::do_everything_under_a_size_limit),
    ("commit as nobody", own_limits::commit_as_nobody),
    ("commit once", own_limits::commit_once),
    ("append until it fails", failing::append_until_it_fails),
    ("commit until it fails", failing::commit_until_it_fails),
    ("append for ever", failing::append_for_ever),
    ("lose the control file", failing::lose_the_control_file),
    ("handle the signal", failing::handle_the_signal),
    ("fault elsewhere", failing::fault_elsewhere),
    ("append and follow", removal::append_and_follow),
    ("append told", reflink::append_told),
    (
        "use everything without standard descriptors",
        low_descriptors::use_everything_without_standard_descriptors,
    ),
    ("go deep", places::go_deep),
    ("append with locked memory", mappings::append_with_locked_memory),
    ("create with locked memory", mappings::create_with_locked_memory),
    ("open and close", forks::open_and_close),
    ("execute another program", forks::execute_another_program),
    ("list descriptors", forks::list_descriptors),
    ("fork beside threads", forks::fork_beside_threads),
    ("fork beside the first opening", forks::fork_beside_the_first_opening),
    ("append under signals", forks::append_under_signals),
];
