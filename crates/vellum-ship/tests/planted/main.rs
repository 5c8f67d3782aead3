//! Things that another user has put where a file of a log, an object of a store or a file of a
//! restore belongs. Each kind of thing is put at each name, for each command line: the command
//! ends, names the refused thing, and touches nothing outside.

mod command;
mod log;
mod restore;
mod store;
mod thing;
