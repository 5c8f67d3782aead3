//! The files that records go to: making them ready, and storing into them.

pub(crate) mod file;
pub(crate) mod groups;
pub(crate) mod pace;
pub(crate) mod pieces;
pub(crate) mod prepare;
pub(crate) mod target;
pub(crate) mod window;
pub(crate) mod zeroed_file;

pub(crate) use vellum_files::segment::{
    SPARE_SUFFIX, STAGE_SUFFIX, UNFINISHED_NAME, kept, list, listing, names, open, packed, rights,
    stage, sync_names,
};
