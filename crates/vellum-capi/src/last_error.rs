//! The message of the last function that failed in this thread.
//!
//! It is written on failure only, so that success costs nothing.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use crate::status::{meaning, vellum_status};

thread_local! {
    static LAST: RefCell<Option<LastError>> = const { RefCell::new(None) };
}

/// A failure as C asks for it.
#[derive(Debug)]
pub(crate) struct LastError {
    code: c_int,
    message: CString,
    path: Option<CString>,
    lsn: u64,
    errno: c_int,
}

impl LastError {
    /// A failure of which nothing is known but what it is.
    pub(crate) fn new(status: vellum_status, message: &str) -> LastError {
        let (code, message) = (status as c_int, text(message.as_bytes()));
        LastError { code, message, path: None, lsn: 0, errno: 0 }
    }

    /// An error of the engine.
    pub(crate) fn of(error: &vellum::Error) -> LastError {
        LastError {
            code: error.kind() as c_int,
            message: text(error.to_string().as_bytes()),
            path: error.path().map(path_text),
            lsn: error.lsn().map_or(0, vellum::Lsn::get),
            errno: error.raw_os_error().unwrap_or(0),
        }
    }

    /// Keeps it for this thread; returns its code.
    pub(crate) fn keep(self) -> c_int {
        let code = self.code;
        // A thread that is ending keeps nothing, and no caller can ask for it.
        let _ = LAST.try_with(|last| *last.borrow_mut() = Some(self));
        code
    }
}

/// A path as C gets it.
pub(crate) fn path_text(path: &Path) -> CString {
    text(path.as_os_str().as_bytes())
}

/// Bytes as C gets them: up to the first NUL, which neither paths nor messages have.
pub(crate) fn text(bytes: &[u8]) -> CString {
    let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    CString::new(&bytes[..len]).unwrap_or_default()
}

fn ask<T>(nothing: T, question: impl FnOnce(&LastError) -> T) -> T {
    let answer = LAST.try_with(|last| last.borrow().as_ref().map(question));
    answer.ok().flatten().unwrap_or(nothing)
}

/// One sentence about the last function that failed in this thread: the operation, the file, and
/// the remedy. "" where none failed yet.
///
/// The text is borrowed until another function of this library fails in this thread, or the thread
/// ends. A function that succeeds leaves it alone: ask after a failure only.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_last_error_message() -> *const c_char {
    ask(c"".as_ptr(), |last| last.message.as_ptr())
}

/// The code that the last function that failed in this thread returned; VELLUM_OK where none did.
///
/// For functions that do not return a code, such as vellum_begin(NULL).
#[unsafe(no_mangle)]
pub extern "C" fn vellum_last_error_code() -> c_int {
    ask(vellum_status::VELLUM_OK as c_int, |last| last.code)
}

/// The file or directory that the last failure in this thread was about, or NULL.
///
/// Borrowed as vellum_last_error_message.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_last_error_path() -> *const c_char {
    ask(ptr::null(), |last| last.path.as_ref().map_or(ptr::null(), |path| path.as_ptr()))
}

/// The position that the last failure in this thread was about, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_last_error_lsn() -> u64 {
    ask(0, |last| last.lsn)
}

/// The errno with which the operating system caused the last failure in this thread, or 0.
///
/// The global errno means nothing after a function of this library.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_last_error_errno() -> c_int {
    ask(0, |last| last.errno)
}

/// The errno that fits a code, for a program that keeps one; 0 for VELLUM_OK and VELLUM_END.
///
/// That of the operating system where it caused this thread's last failure, and that had this code.
/// Otherwise it follows from the code alone: docs/c.md has the table.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_errno_of(status: c_int) -> c_int {
    match (vellum_last_error_code(), vellum_last_error_errno()) {
        (last, errno) if last == status && errno != 0 => errno,
        _ => meaning(status).1,
    }
}
