//! The way `vellum-framed` through the C interface: the additional cost of a call from C.
//!
//! The functions are those of `libvellum`, linked into this program. They are called by addresses
//! that the compiler does not know, so each call crosses the same border as in a C program, which
//! calls a shared library by an address too. This does not show that a shared library looks up its
//! thread-local slot by a call, as `libvellum.a` does not.
//!
//! # Safety
//!
//! The functions get arguments as the header demands: bytes of the length that is passed, and
//! places for answers.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

use vellum::internal::with_layout;
use vellum::{Create, Layout, Options};
use vellum_capi::append::vellum_append;
use vellum_capi::last_error::vellum_last_error_message;
use vellum_capi::log::vellum_log;

use crate::error::{Error, Result};
use crate::setting::Setting;
use crate::ways::vellum_framed::read_back;
use crate::ways::{Appender, Prepared, Way, vellum_log as log};

/// `vellum_append`, as C declares it.
type Append = unsafe extern "C" fn(
    Option<&vellum_log>,
    *const c_void,
    usize,
    Option<&mut MaybeUninit<u64>>,
) -> c_int;

pub(crate) struct VellumC {
    options: Options,
}

impl VellumC {
    pub(crate) fn new(options: &Options) -> VellumC {
        VellumC { options: options.clone() }
    }
}

impl Way for VellumC {
    fn disk_bytes(&self, setting: &Setting) -> u64 {
        log::disk_bytes(setting)
    }

    fn prepare(&self, dir: &Path, _setting: &Setting) -> Result<Box<dyn Prepared>> {
        let dir = dir.join("log");
        log::create(&self.options, Layout::Framed, &dir)?;
        Ok(Box::new(CLog { options: self.options.clone(), dir }))
    }
}

struct CLog {
    options: Options,
    dir: PathBuf,
}

impl Prepared for CLog {
    fn open(&self, _process: u32) -> Result<Box<dyn Appender>> {
        let options = with_layout(self.options.clone(), Layout::Framed).create(Create::Never);
        let opened = options.open(&self.dir).map_err(|error| log::failed(&error))?;
        let append = black_box(vellum_append as Append);
        Ok(Box::new(CAppender { log: vellum_log::from(opened), append }))
    }

    fn read_back(&self, visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        read_back(&self.options, &self.dir, visit)
    }
}

struct CAppender {
    log: vellum_log,
    append: Append,
}

impl Appender for CAppender {
    #[inline]
    fn append(&mut self, record: &[u8]) -> Result<()> {
        let mut lsn = MaybeUninit::uninit();
        let (data, len) = (record.as_ptr().cast(), record.len());
        // SAFETY: `len` bytes are at `data`.
        let status = unsafe { (self.append)(Some(&self.log), data, len, Some(&mut lsn)) };
        if status == 0 { Ok(()) } else { Err(last_error()) }
    }

    // As for `vellum-framed`: all have finished, so this is true at once unless something is wrong.
    fn wait_readable(&mut self) -> Result<()> {
        use vellum_capi::log::{vellum_published, vellum_tail};
        while vellum_published(Some(&self.log)) < vellum_tail(Some(&self.log)) {
            std::thread::yield_now();
        }
        Ok(())
    }
}

#[cold]
fn last_error() -> Error {
    // SAFETY: the text ends with a NUL, and nothing fails in this thread meanwhile.
    let message = unsafe { CStr::from_ptr(vellum_last_error_message()) };
    Error::failed(message.to_string_lossy().into_owned())
}
