//! Structures that may get more fields without programs being compiled anew.
//!
//! The first field is the structure's size as the caller's header has it. The library reads and
//! writes no more than both know.

use std::ptr;

use crate::boundary::{Failure, Outcome, null};

/// More than any structure will ever have; a caller with a larger one forgot to set the size.
const SIZE_MAX: usize = 4096;

/// A structure that may get more fields at its end.
///
/// # Safety
///
/// It is `repr(C)`, its first field is `struct_size: usize`, it is made of numbers and raw
/// pointers, and has no padding.
pub(crate) unsafe trait Growing: Copy {}

/// The structure of the caller; fields that it does not know are as in `defaults`.
///
/// # Safety
///
/// `from` is NULL, or there are as many bytes as its `struct_size` says.
pub(crate) unsafe fn read<T: Growing>(from: *const T, defaults: T) -> Outcome<T> {
    if from.is_null() {
        return Ok(defaults);
    }
    // SAFETY: the size is the first field.
    let size = checked(unsafe { from.cast::<usize>().read() })?;
    let known = size.min(size_of::<T>());
    let mut value = defaults;
    // SAFETY: both have so many bytes, and whatever they are they make a `T`.
    unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut value).cast(), known) };
    // SAFETY: so many bytes are behind the known fields.
    let unknown = unsafe { std::slice::from_raw_parts(from.cast::<u8>().add(known), size - known) };
    if unknown.iter().any(|byte| *byte != 0) {
        return Err(Failure::argument(&format!(
            "a field behind byte {known} of the structure is set, which this version of Vellum \
             does not know; install the version of the program's header"
        )));
    }
    Ok(value)
}

/// Where the caller wants a structure, if it does.
pub(crate) struct Place<T> {
    at: *mut T,
    size: usize,
}

impl<T: Growing> Place<T> {
    /// A place for a structure whose `struct_size` the caller has set; NULL is nowhere.
    ///
    /// # Safety
    ///
    /// `at` is NULL, or as many bytes as its `struct_size` says can be written, as long as the
    /// place is in use.
    pub(crate) unsafe fn new(at: *mut T) -> Outcome<Place<T>> {
        if at.is_null() {
            return Ok(Place { at, size: 0 });
        }
        // SAFETY: the size is the first field.
        let size = checked(unsafe { at.cast::<usize>().read() })?;
        Ok(Place { at, size })
    }

    /// The same where NULL makes no sense.
    ///
    /// # Safety
    ///
    /// As for [`Place::new`].
    pub(crate) unsafe fn required(at: *mut T, name: &str) -> Outcome<Place<T>> {
        if at.is_null() {
            return Err(null(name));
        }
        // SAFETY: the caller's promise.
        unsafe { Place::new(at) }
    }

    /// A place of `size` bytes that have never been written.
    ///
    /// # Safety
    ///
    /// `at` is NULL, or `size` bytes can be written, as long as the place is in use.
    pub(crate) unsafe fn raw(at: *mut T, size: usize, name: &str) -> Outcome<Place<T>> {
        if at.is_null() {
            return Err(null(name));
        }
        Ok(Place { at, size: checked(size)? })
    }

    /// Writes the fields that both sides know, and zeros to those that only the caller knows.
    pub(crate) fn put(self, value: &T) {
        if self.at.is_null() {
            return;
        }
        let known = self.size.min(size_of::<T>());
        let at = self.at.cast::<u8>();
        // SAFETY: `size` bytes can be written there, and `known` be read.
        unsafe {
            ptr::copy_nonoverlapping(ptr::from_ref(value).cast::<u8>(), at, known);
            ptr::write_bytes(at.add(known), 0, self.size - known);
            self.at.cast::<usize>().write(self.size);
        }
    }
}

/// Refuses sizes that no version of a structure has: all are made of words.
fn checked(size: usize) -> Outcome<usize> {
    let word = size_of::<usize>();
    if (word..=SIZE_MAX).contains(&size) && size.is_multiple_of(word) {
        return Ok(size);
    }
    Err(Failure::argument(&format!(
        "struct_size is {size}, which no version of the structure has; set it to the structure's \
         sizeof (options: vellum_options_init)"
    )))
}
