//! Options of text logs: files that come and go.

use std::time::Duration;

use clap::Args;
use vellum::{Compression, OnFull};

use super::values;

/// When a text log continues in a new file, and which files it keeps; `None` leaves it to the log.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options for the files of a text log, stored with it")]
pub(crate) struct PolicyArgs {
    /// Continue in a new file when one would get longer than this, as 10M; 0 for never
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) rotate_bytes: Option<u64>,
    /// Continue in a new file this often, as 1h or daily, at the hour or at midnight UTC; 0 for
    /// never
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) rotate_every: Option<Duration>,
    /// Move those moments by this, as 22h for midnight two hours east of Greenwich
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) rotate_offset: Option<Duration>,
    /// Remove the oldest files when all take more than this together; 0 for never. For framed logs
    /// too: whole segments, and nothing from the checkpoint on
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    pub(crate) retain_bytes: Option<u64>,
    /// Remove files whose last record is older than this, as 30d; 0 for never. For framed logs too
    #[arg(long, value_name = "SPAN", value_parser = values::span)]
    pub(crate) retain_age: Option<Duration>,
    /// Keep so many files beside the current one, or all
    #[arg(long, value_name = "COUNT", value_parser = values::files)]
    pub(crate) retain_files: Option<u64>,
    /// Compress files when the log has gone on in a new one: zstd where nothing else is said
    #[arg(long, value_name = "zstd|gzip|no", value_parser = values::compression())]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "zstd")]
    pub(crate) compress: Option<Compression>,
    /// What to do with a record when the disk is full: stop, wait for space, or drop it and have
    /// the log say so later (this process alone, not stored) [default: error]
    #[arg(long, value_name = "WHAT", value_parser = values::on_full())]
    pub(crate) on_full: Option<OnFull>,
    /// Give up after waiting so long, as 5s, for a process that is stopped or does not get on, and
    /// name it (this process alone, not stored) [default: wait for as long as it lives]
    #[arg(long, value_name = "SPAN", value_parser = values::millis)]
    pub(crate) timeout: Option<Duration>,
    /// Fail if another process has the log open for writing, and keep others from opening it (this
    /// process alone, not stored)
    #[arg(long)]
    pub(crate) exclusive: bool,
}

impl PolicyArgs {
    /// Whether there is an option among them that only text logs have.
    pub(crate) fn is_for_text(&self) -> bool {
        self.rotate_bytes.is_some()
            || self.rotate_every.is_some()
            || self.rotate_offset.is_some()
            || self.retain_files.is_some()
            || self.compress.is_some()
            || self.on_full == Some(OnFull::Drop)
    }
}
