//! The codes that functions return.

use std::ffi::{CStr, c_char, c_int};

/// The return value of a function: 0, or the reason of its failure.
///
/// The numbers are stable. Others may be added: treat a number that is not known as VELLUM_IO.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum vellum_status {
    /// It is done.
    VELLUM_OK = 0,
    /// The operating system refused, for a reason without a code of its own.
    VELLUM_IO = 1,
    /// The disk, the quota or the file-size limit is exhausted. Nothing was reserved.
    VELLUM_NO_SPACE = 2,
    /// There is no log at this path.
    VELLUM_NOT_FOUND = 3,
    /// There is a log or a file at this path, and a new one was asked for.
    VELLUM_ALREADY_EXISTS = 4,
    /// The permissions of the log do not allow this.
    VELLUM_PERMISSION_DENIED = 5,
    /// The log was opened for reading only.
    VELLUM_READ_ONLY = 6,
    /// The filesystem, the kernel or the log's layout cannot do this.
    VELLUM_UNSUPPORTED = 7,
    /// An option is out of range, or contradicts what is stored with the log.
    VELLUM_INVALID_OPTION = 8,
    /// The record or batch is longer than 4 GiB - 1.
    VELLUM_RECORD_TOO_LARGE = 9,
    /// 1024 processes are attached, and there is no room for more.
    VELLUM_TOO_MANY_PARTICIPANTS = 10,
    /// The position has been trimmed away: continue at vellum_begin.
    VELLUM_TRIMMED = 11,
    /// The position is beyond the end, or is not the start of a record.
    VELLUM_OUT_OF_RANGE = 12,
    /// The log holds bytes that no crash explains: vellum_repair saves the rest.
    VELLUM_CORRUPT = 13,
    /// Not a log, or a log of another format version.
    VELLUM_INCOMPATIBLE = 14,
    /// The positions of the log, 16 PiB, are used up.
    VELLUM_EXHAUSTED = 15,
    /// The reservation was incomplete, or is another process's; the space is passed over.
    VELLUM_ABANDONED = 16,
    /// The log is in use in a way that excludes this.
    VELLUM_BUSY = 17,
    /// A write or sync failed before: nothing more can be made durable until every process has
    /// closed the log and one has opened it again.
    VELLUM_POISONED = 18,
    /// Another process held what the call needs for longer than the call was to wait: the message
    /// names it. The call has changed nothing.
    VELLUM_TIMED_OUT = 19,
    /// The log's directory was removed or moved while the log was open, or its files were. The
    /// earlier records are where the directory went: vellum_reopen continues in a new log.
    VELLUM_REMOVED = 20,
    /// A vellum_position was taken before a power cut or a truncation took back what was there.
    /// vellum_last_error_lsn is from where on the log may differ, or 0 where that is not known.
    VELLUM_REWOUND = 21,
    /// A vellum_position is of another log.
    VELLUM_OTHER_LOG = 22,
    /// No process ships the log, so nothing can be waited for. Committed records are committed.
    VELLUM_NO_SHIPPER = 23,
    /// Another machine, or another copy of the log, has taken over the store that this log is
    /// shipped to. Committed records are committed here, and are not shipped.
    VELLUM_FENCED = 24,
    /// Another handle has the log open for writing, in this process or another, and one of the two
    /// wants to be the only one (VELLUM_EXCLUSIVE, VELLUM_KIND_WAL). The text names its process.
    VELLUM_IN_USE = 25,
    /// No error: there is nothing more, or nothing more yet.
    VELLUM_END = 100,
    /// No error: it is on its way.
    VELLUM_PENDING = 101,
    /// A pointer is NULL that must not be, or a number or a struct_size makes no sense.
    VELLUM_INVALID_ARGUMENT = 110,
    /// A defect of the library, caught at its border. Close the log; please report it.
    VELLUM_PANIC = 111,
}

/// The meaning of a code, in a few words: "no space left".
///
/// The text is static, in English. vellum_last_error_message says more about the last failure.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_strerror(status: c_int) -> *const c_char {
    meaning(status).0.as_ptr()
}

/// The meaning of a code, and the errno that fits it.
pub(crate) fn meaning(status: c_int) -> (&'static CStr, c_int) {
    match status {
        0 => (c"no error", 0),
        1 => (c"the operating system refused", libc::EIO),
        2 => (c"no space left", libc::ENOSPC),
        3 => (c"no such log", libc::ENOENT),
        4 => (c"exists already", libc::EEXIST),
        5 => (c"permission denied", libc::EACCES),
        6 => (c"opened for reading only", libc::EROFS),
        7 => (c"not supported here", libc::EOPNOTSUPP),
        8 => (c"invalid option", libc::EINVAL),
        9 => (c"record too large", libc::EMSGSIZE),
        10 => (c"too many processes", libc::EUSERS),
        11 => (c"position trimmed away", libc::ENODATA),
        12 => (c"position out of range", libc::ERANGE),
        13 => (c"damaged log", libc::EBADMSG),
        14 => (c"not a log of this version", libc::EPROTONOSUPPORT),
        15 => (c"positions used up", libc::EOVERFLOW),
        16 => (c"reservation abandoned", libc::ECANCELED),
        17 => (c"log in use", libc::EBUSY),
        18 => (c"poisoned by a failed write", libc::EIO),
        19 => (c"gave up waiting for another process", libc::ETIMEDOUT),
        20 => (c"log removed or moved", libc::ESTALE),
        21 => (c"position taken back", libc::ESTALE),
        22 => (c"position of another log", libc::EXDEV),
        23 => (c"no process ships the log", libc::ENOTCONN),
        24 => (c"shipping taken over by another", libc::ESHUTDOWN),
        25 => (c"open for writing elsewhere", libc::EBUSY),
        100 => (c"nothing more", 0),
        101 => (c"on its way", libc::EINPROGRESS),
        110 => (c"invalid argument", libc::EINVAL),
        111 => (c"defect of the library", libc::ENOTRECOVERABLE),
        _ => (c"unknown code", libc::EIO),
    }
}

#[cfg(test)]
mod tests {
    use vellum::ErrorKind;

    use super::vellum_status::*;
    use super::*;

    #[test]
    fn codes_are_the_numbers_of_the_kinds() {
        let pairs = [
            (VELLUM_IO, ErrorKind::Io),
            (VELLUM_NO_SPACE, ErrorKind::NoSpace),
            (VELLUM_NOT_FOUND, ErrorKind::NotFound),
            (VELLUM_ALREADY_EXISTS, ErrorKind::AlreadyExists),
            (VELLUM_PERMISSION_DENIED, ErrorKind::PermissionDenied),
            (VELLUM_READ_ONLY, ErrorKind::ReadOnly),
            (VELLUM_UNSUPPORTED, ErrorKind::Unsupported),
            (VELLUM_INVALID_OPTION, ErrorKind::InvalidOption),
            (VELLUM_RECORD_TOO_LARGE, ErrorKind::RecordTooLarge),
            (VELLUM_TOO_MANY_PARTICIPANTS, ErrorKind::TooManyParticipants),
            (VELLUM_TRIMMED, ErrorKind::Trimmed),
            (VELLUM_OUT_OF_RANGE, ErrorKind::OutOfRange),
            (VELLUM_CORRUPT, ErrorKind::Corrupt),
            (VELLUM_INCOMPATIBLE, ErrorKind::Incompatible),
            (VELLUM_EXHAUSTED, ErrorKind::Exhausted),
            (VELLUM_ABANDONED, ErrorKind::Abandoned),
            (VELLUM_BUSY, ErrorKind::Busy),
            (VELLUM_POISONED, ErrorKind::Poisoned),
            (VELLUM_TIMED_OUT, ErrorKind::TimedOut),
            (VELLUM_REMOVED, ErrorKind::Removed),
            (VELLUM_REWOUND, ErrorKind::Rewound),
            (VELLUM_OTHER_LOG, ErrorKind::OtherLog),
            (VELLUM_NO_SHIPPER, ErrorKind::NoShipper),
            (VELLUM_FENCED, ErrorKind::Fenced),
            (VELLUM_IN_USE, ErrorKind::InUse),
        ];
        for (status, kind) in pairs {
            assert_eq!(status as u32, kind as u32, "{status:?}");
            assert_ne!(meaning(status as c_int).0, c"unknown code", "{status:?}");
        }
    }

    #[test]
    fn a_code_of_a_later_version_has_a_text() {
        assert_eq!(meaning(99).0, c"unknown code");
        assert_eq!(meaning(-1).0, c"unknown code");
    }
}
