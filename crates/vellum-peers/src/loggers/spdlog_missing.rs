//! In place of spdlog, where it was not found when this was built: the reason.

use std::path::Path;

use vellum_bench::loggers::{Contender, Logger};
use vellum_bench::{Error, Result};

const REASON: &str = "its headers or a C++17 compiler were not found when this was built: install \
                      libspdlog-dev and g++, and build again";

pub(super) struct Spdlog {
    pub(super) is_async: bool,
}

impl Contender for Spdlog {
    fn name(&self) -> &str {
        if self.is_async { "spdlog-async" } else { "spdlog" }
    }

    fn missing(&self) -> Option<String> {
        Some(REASON.into())
    }

    fn open(&self, _dir: &Path, _bytes: usize) -> Result<Box<dyn Logger>> {
        Err(Error::failed(REASON))
    }
}
