//! Which files are changed, and which tests are to notice.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// Files, and the tests that are run for them in this order until one fails.
pub(crate) struct Area {
    pub(crate) name: &'static str,
    /// Folders and files below the sources of the crates of the library.
    paths: &'static [&'static str],
    pub(crate) tests: &'static [Tests],
}

/// The crates of the library.
pub(crate) const CRATES: [&str; 2] = ["vellum", "vellum-files"];

/// Tests of the library that one command runs.
pub(crate) struct Tests {
    /// Whose they are.
    pub(crate) package: &'static str,
    /// The model checker that they are built for.
    pub(crate) checker: Option<&'static str>,
    /// The integration tests, or the unit tests.
    pub(crate) is_integration: bool,
    /// Parts of their names; all of them if there are none.
    pub(crate) names: &'static [&'static str],
}

const fn unit(names: &'static [&'static str]) -> Tests {
    Tests { package: "vellum", checker: None, is_integration: false, names }
}

/// The unit tests of the crate `vellum-files`.
const FILES: Tests =
    Tests { package: "vellum-files", checker: None, is_integration: false, names: &[] };

const fn integration(names: &'static [&'static str]) -> Tests {
    Tests { package: "vellum", checker: None, is_integration: true, names }
}

const fn model(checker: &'static str, names: &'static [&'static str]) -> Tests {
    Tests { package: "vellum", checker: Some(checker), is_integration: false, names }
}

const AREAS: &[Area] = &[
    Area {
        name: "shared",
        paths: &["shared"],
        tests: &[
            unit(&[]),
            model("loom", &["weak::"]),
            model("shuttle", &["model"]),
            integration(&["api::", "durable::"]),
        ],
    },
    Area {
        name: "format",
        paths: &["format"],
        tests: &[FILES, integration(&["golden::", "damage::", "cursors::"])],
    },
    Area {
        name: "segment",
        paths: &["segment"],
        tests: &[FILES, unit(&[]), integration(&["api::", "durable::"])],
    },
    Area {
        name: "recovery",
        paths: &[
            "files/recover/mod.rs",
            "files/recover/plan.rs",
            "files/recover/zero_tail.rs",
            "log/open/words_check.rs",
            "files/recover/framed.rs",
            "files/frames.rs",
            "files/recover/text.rs",
        ],
        tests: &[FILES, unit(&[]), integration(&["damage::", "durable::", "golden::", "text::"])],
    },
    Area {
        name: "commit",
        paths: &[
            "log/commit/group.rs",
            "log/commit/commit_path.rs",
            "log/commit/device.rs",
            "log/ready/stage.rs",
            "log/commit/durable.rs",
            "log/commit/record.rs",
        ],
        tests: &[unit(&[]), integration(&["api::", "durable::"])],
    },
];

/// Not changed: the models, the switch between them, and tests.
const LEFT_OUT: [&str; 5] = ["model", "weak", "primitive", "tests", "mod"];

pub(crate) fn chosen(names: &[String]) -> Result<Vec<&'static Area>> {
    if names.is_empty() {
        return Ok(AREAS.iter().collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        match AREAS.iter().find(|area| area.name == name) {
            Some(area) => chosen.push(area),
            None => bail!("no area is called {name:?}"),
        }
    }
    Ok(chosen)
}

impl Area {
    /// The files of the area in a copy of the repository.
    pub(crate) fn files(&self, copy: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let folders = CRATES.map(|name| copy.join("crates").join(name).join("src"));
        let paths =
            self.paths.iter().flat_map(|path| folders.iter().map(move |base| base.join(path)));
        for path in paths {
            match std::fs::read_dir(&path) {
                Ok(entries) => files.extend(entries.flatten().map(|entry| entry.path())),
                Err(_) if path.is_file() => files.push(path),
                Err(_) => {}
            }
        }
        files.retain(|file| {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            file.extension().is_some_and(|end| end == "rs")
                && !LEFT_OUT.iter().any(|part| stem.starts_with(part))
        });
        files.sort();
        files
    }
}
