//! Duties of every store, on each of them: memory, directories, and the servers that
//! `make ship-servers` installs.

mod answers;
mod bad;
mod contract;
mod faults;
mod files;
mod memory;
mod server;
mod servers;
mod speed;
