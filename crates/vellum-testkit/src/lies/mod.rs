//! `vellum-lies`: `vellum doctor --lies` on disks of the zoo whose power is cut.
//!
//! The medium of a disk shows the forgotten blocks: a promised block that is nowhere on it is gone,
//! even if a filesystem shows it. Each of those must be found, and nothing on an honest disk. The
//! check is run in another boot, and has to notice that itself.
//!
//! ```text
//!   trial   one disk, one run of the writer, one cut, one check
//!   cli     the command line, and what the trials came to
//! ```

pub mod cli;
pub mod trial;
