//! In place of a logger in C++ that was not found when this was built: the reason.

use std::path::Path;

use vellum_bench::loggers::{Contender, Logger};
use vellum_bench::{Error, Result};

#[cfg(not(has_spdlog))]
pub(super) fn spdlog(is_async: bool) -> Box<dyn Contender> {
    let name = if is_async { "spdlog-async" } else { "spdlog" };
    Box::new(Missing { name, package: "libspdlog-dev" })
}

#[cfg(not(has_quill))]
pub(super) fn quill() -> Box<dyn Contender> {
    Box::new(Missing { name: "quill", package: "Quill, version 12" })
}

struct Missing {
    name: &'static str,
    package: &'static str,
}

impl Missing {
    fn reason(&self) -> String {
        format!(
            "its headers or a C++17 compiler were not found when this was built: install {} and \
             g++, and build again",
            self.package
        )
    }
}

impl Contender for Missing {
    fn name(&self) -> &str {
        self.name
    }

    fn missing(&self) -> Option<String> {
        Some(self.reason())
    }

    fn open(&self, _dir: &Path, _bytes: usize) -> Result<Box<dyn Logger>> {
        Err(Error::failed(self.reason()))
    }
}
