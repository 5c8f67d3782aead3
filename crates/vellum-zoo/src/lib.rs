//! Disks to test against: block devices over a file of this process, sound ones and faulty ones.
//!
//! ```text
//!   filesystem → loop device → file on FUSE → thread of this process → Served
//!               (direct I/O, so every write and flush comes through)
//! ```
//!
//! An [`Animal`] says what a disk does, and makes a [`Disk`]; [`BlockDevice`] shows it to the
//! kernel. A disk of another kind can be shown as well: it must be [`Served`].
//!
//! ```text
//!   animal      which disk it is: the table               disk        the disk of an animal
//!   pace        when an answer may go                     store       medium and cache
//!   device      the file on FUSE and the loop device      server      the thread that answers
//!   fuse        the kernel's protocol                     later       answers that must wait
//!   filesystem  what can lie on a device                  served      what a disk is to them
//!   sys         all of the unsafe code                    missing     what a machine lacks
//! ```

pub mod animal;
pub mod device;
pub mod disk;
pub mod filesystem;
mod fuse;
mod later;
mod missing;
mod pace;
mod served;
mod server;
mod store;
mod sys;

pub use animal::{Animal, Times};
pub use device::{BlockDevice, Shape, unmount_patiently};
pub use disk::{Disk, Figures, Tally};
pub use missing::{Missing, look_for_needs, missing_if_forbidden};
pub use served::{Request, Served};
pub use store::Cut;

/// The programs of the page compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Page;
