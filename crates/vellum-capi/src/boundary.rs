//! The border to C: the code that every function goes through, and the arguments that come as
//! pointers.

use std::any::Any;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use crate::last_error::LastError;
use crate::status::vellum_status::{self, VELLUM_INVALID_ARGUMENT, VELLUM_OK, VELLUM_PANIC};

/// Why a function did not do what it was asked. Boxed, so that results stay in registers.
pub(crate) struct Failure(Box<LastError>);

/// The outcome of a function: a code that is no failure, or a failure.
pub(crate) type Outcome<T = vellum_status> = Result<T, Failure>;

impl Failure {
    /// A failure of which all is said.
    #[cold]
    pub(crate) fn of(error: LastError) -> Failure {
        Failure(Box::new(error))
    }

    /// The caller's mistake.
    #[cold]
    pub(crate) fn argument(message: &str) -> Failure {
        Failure::of(LastError::new(VELLUM_INVALID_ARGUMENT, message))
    }
}

impl From<vellum::Error> for Failure {
    #[cold]
    fn from(error: vellum::Error) -> Failure {
        Failure::of(LastError::of(&error))
    }
}

/// Does the work of a function that returns a code. No panic gets past it, and failures are kept.
#[inline]
pub(crate) fn guard(work: impl FnOnce() -> Outcome) -> c_int {
    let _whole = Whole::begin();
    // A caller that gets VELLUM_PANIC has to close the log, and not to use objects that the panic
    // left.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(status)) => status as c_int,
        Ok(Err(failure)) => failure.0.keep(),
        Err(panic) => panicked(panic),
    }
}

/// A call that `pthread_cancel` does not end in the middle: the C library would unwind through
/// Rust, which ends the process, and the locks of the call would stay held.
struct Whole(c_int);

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

impl Whole {
    #[inline]
    fn begin() -> Whole {
        const DISABLE: c_int = 1;
        let mut before = 0;
        // SAFETY: it changes this thread alone, and writes the state of before.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Whole(before)
    }
}

impl Drop for Whole {
    #[inline]
    fn drop(&mut self) {
        let mut disabled = 0;
        // SAFETY: as above. The call is no point of cancellation, so a thread does not end here;
        // docs/c.md excludes threads that may be cancelled at any moment.
        unsafe { pthread_setcancelstate(self.0, &raw mut disabled) };
    }
}

/// The same for a function that returns something else, and `nothing` where it fails.
#[inline]
pub(crate) fn guard_or<T>(nothing: T, work: impl FnOnce() -> Outcome<T>) -> T {
    let mut answer = nothing;
    guard(|| {
        answer = work()?;
        Ok(VELLUM_OK)
    });
    answer
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> c_int {
    let reason = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(reason), _) => reason,
        (_, Some(reason)) => reason.as_str(),
        _ => "",
    };
    let code = LastError::new(VELLUM_PANIC, &format!("a defect of Vellum: {reason}")).keep();
    // Its effect when dropped is unknown.
    std::mem::forget(panic);
    code
}

/// A pointer that must not be NULL.
#[inline]
pub(crate) fn required<T>(pointer: Option<T>, name: &str) -> Outcome<T> {
    match pointer {
        Some(target) => Ok(target),
        None => Err(null(name)),
    }
}

/// The failure where `name` is NULL.
#[cold]
pub(crate) fn null(name: &str) -> Failure {
    Failure::argument(&format!("`{name}` is NULL"))
}

/// Writes to where the caller wants the answer, if it does.
#[inline]
pub(crate) fn give<T>(to: Option<&mut MaybeUninit<T>>, value: T) {
    if let Some(to) = to {
        to.write(value);
    }
}

/// How long to wait: negative is for ever.
pub(crate) fn timeout(nanos: i64) -> Option<Duration> {
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

/// The caller's bytes.
///
/// # Safety
///
/// There are `len` bytes at `data`, and no thread changes them while the slice is in use.
#[inline]
pub(crate) unsafe fn bytes<'a>(data: *const c_void, len: usize) -> Outcome<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(null("data"));
    }
    if len > isize::MAX as usize {
        return Err(Failure::argument(&format!("a length of {len} bytes is negative, or absurd")));
    }
    // SAFETY: not NULL, of a length that a slice may have; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), len) })
}

/// The caller's room for an answer.
///
/// # Safety
///
/// There is room for `len` bytes at `data`, and no other code uses it while the slice is in use.
pub(crate) unsafe fn bytes_mut<'a>(
    data: *mut c_void,
    len: usize,
) -> Outcome<&'a mut [MaybeUninit<u8>]> {
    if len == 0 {
        return Ok(&mut []);
    }
    if data.is_null() {
        return Err(null("buffer"));
    }
    if len > isize::MAX as usize {
        return Err(Failure::argument(&format!("a length of {len} bytes is negative, or absurd")));
    }
    // SAFETY: not NULL, of a length that a slice may have; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), len) })
}

/// The caller's path.
///
/// # Safety
///
/// `path` is NULL or ends with a NUL, and no thread changes it while it is in use.
pub(crate) unsafe fn path<'a>(path: *const c_char, name: &str) -> Outcome<&'a Path> {
    if path.is_null() {
        return Err(null(name));
    }
    // SAFETY: not NULL; the rest is the caller's promise.
    let path = unsafe { CStr::from_ptr(path) };
    Ok(Path::new(OsStr::from_bytes(path.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_error::{vellum_last_error_code, vellum_last_error_message};

    fn last_message() -> String {
        // SAFETY: the message ends with a NUL, and nothing fails meanwhile.
        let message = unsafe { CStr::from_ptr(vellum_last_error_message()) };
        message.to_str().unwrap().to_string()
    }

    #[test]
    fn a_panic_becomes_a_code_with_its_reason() {
        assert_eq!(guard(|| panic!("slot {} is gone", 7)), VELLUM_PANIC as c_int);
        assert_eq!(last_message(), "a defect of Vellum: slot 7 is gone");
        assert_eq!(guard(|| std::panic::panic_any(7)), VELLUM_PANIC as c_int);
        assert_eq!(guard_or(3, || panic!("no")), 3);
        assert_eq!(vellum_last_error_code(), VELLUM_PANIC as c_int);
    }

    #[test]
    fn success_leaves_the_last_error_alone() {
        guard(|| Err(Failure::argument("too late")));
        assert_eq!(guard(|| Ok(VELLUM_OK)), 0);
        assert_eq!(last_message(), "too late");
        let of_another_thread = std::thread::spawn(last_message).join().unwrap();
        assert_eq!(of_another_thread, "");
    }
}
