//! `write` on a file opened with `O_APPEND`: the way that the others are compared with.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crate::error::{Context, Result};
use crate::setting::Setting;
use crate::ways::plain::{PlainFile, open_append, whole};
use crate::ways::{Appender, Prepared, Way};

pub(crate) struct Write;

impl Way for Write {
    fn prepare(&self, dir: &Path, setting: &Setting) -> Result<Box<dyn Prepared>> {
        PlainFile::create(dir, setting, |path, _bytes| {
            Ok(Box::new(WriteAppender { file: open_append(path)? }))
        })
    }
}

struct WriteAppender {
    file: File,
}

impl Appender for WriteAppender {
    #[inline]
    fn append(&mut self, record: &[u8]) -> Result<()> {
        loop {
            // One call to `write(2)`, unbuffered.
            match self.file.write(record) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return whole("write", result.context(|| "write")?, record.len()),
            }
        }
    }
}
