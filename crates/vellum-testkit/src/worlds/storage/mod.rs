//! Logs on storage that is full or fails: each kind of log, on each kind of filesystem.
//!
//! ```text
//!   table    the troubles, what each promises, and where it can be had
//!   disk     filesystems: made, filled, enlarged, shut down, and mounted again
//!   trial    one kind of log, on one disk, in one trouble
//!   cast     the processes of a trial: started, heard, told to go on, and how they ended
//!   writer   what those do that append            reader   what the one does that follows
//!   check    what must be there afterwards        cli      the command line
//! ```

mod cast;
mod check;
pub(super) mod cli;
mod disk;
mod reader;
mod table;
mod trial;
mod writer;

pub(super) use reader::ReaderArgs;
pub(super) use writer::WriterArgs;
