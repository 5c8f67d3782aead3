//! Is each animal as bad as it says? Asked through its block device.

mod beside;
mod command;
mod figures;
mod judge;
mod overlap;
mod plants;
mod support;
