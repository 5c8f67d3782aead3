//! Disks to test against: block devices over a file of this process.
//!
//! ```text
//!   filesystem → loop device → file on FUSE → thread of this process → Served
//!               (direct I/O, so every write and flush comes through)
//! ```
//!
//! ```text
//!   device      the file on FUSE and the loop device      server      the thread that answers
//!   fuse        the kernel's protocol                     later       answers that must wait
//!   filesystem  what can lie on a device                  served      what a disk is to them
//!   missing     what a machine lacks                      sys         all of the unsafe code
//! ```

pub mod device;
pub mod filesystem;
mod fuse;
mod later;
mod missing;
mod served;
mod server;
mod sys;

pub use device::{BlockDevice, Shape, unmount_patiently};
pub use missing::{Missing, look_for_needs, missing_if_forbidden};
pub use served::{Request, Served};
