//! The running log as reading sees it.

use std::path::PathBuf;

use crate::Lsn;
use crate::files::Files;
use crate::files::view::View;
use crate::log::layout::text::policy;
use crate::log::state::core::{Core, kept_files};
use crate::segment::kept::KeptFiles;
use crate::shared::tail_word;

impl View for Core {
    fn files(&self) -> &Files {
        &self.files
    }

    fn begin(&self) -> Lsn {
        self.words().begin()
    }

    fn tail(&self) -> Lsn {
        tail_word::tail(self.words())
    }

    fn staged_from(&self) -> Option<Lsn> {
        self.stage_begin()
    }

    fn newest(&self) -> Option<(Lsn, PathBuf)> {
        self.newest_path()
    }

    fn text_len_max(&self) -> Option<u64> {
        policy::of(self).rotate_bytes.filter(|_| self.files.geometry.layout.rotates())
    }

    fn kept_files(&self) -> Option<&KeptFiles> {
        kept_files(self)
    }
}
