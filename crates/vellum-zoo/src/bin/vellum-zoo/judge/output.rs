//! The file for JSON.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use rustix::fs::OFlags;
use serde_json::Value;
use vellum_command::files;

/// Writes to the file for JSON, if there is to be one.
pub(super) fn written(path: Option<&Path>, told: &Value) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let cannot = || format!("cannot write {}", path.display());
    let flags = OFlags::WRONLY | OFlags::CREATE;
    let mut file = files::opened(path, flags).with_context(cannot)?;
    file.set_len(0).with_context(cannot)?;
    writeln!(file, "{told:#}").with_context(cannot)
}
