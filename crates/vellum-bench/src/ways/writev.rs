//! `writev` on a file opened with `O_APPEND`: each record in two parts, head and rest, as a
//! program does that has the two in different places. A record of one byte is one part.

use std::fs::File;
use std::io::{ErrorKind, IoSlice, Write as _};
use std::path::Path;

use crate::error::{Context, Result};
use crate::setting::Setting;
use crate::ways::plain::{PlainFile, open_append, whole};
use crate::ways::{Appender, Prepared, Way};

/// The first part is this long, or half of a record that is not twice as long.
const HEAD_BYTES: usize = 16;

pub(crate) struct Writev;

impl Way for Writev {
    fn prepare(&self, dir: &Path, setting: &Setting) -> Result<Box<dyn Prepared>> {
        PlainFile::create(dir, setting, |path, _bytes| {
            Ok(Box::new(WritevAppender { file: open_append(path)? }))
        })
    }
}

struct WritevAppender {
    file: File,
}

impl Appender for WritevAppender {
    #[inline]
    fn append(&mut self, record: &[u8]) -> Result<()> {
        let (head, rest) = record.split_at(HEAD_BYTES.min(record.len() / 2));
        let parts = [IoSlice::new(head), IoSlice::new(rest)];
        let parts = if head.is_empty() { &parts[1..] } else { &parts[..] };
        loop {
            match self.file.write_vectored(parts) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return whole("writev", result.context(|| "writev")?, record.len()),
            }
        }
    }
}
