//! The answers of a system call that does not do its work: the errors that it can give.
//!
//! Only what the kernel documents, or is known to do, is in the table: an error that a call never
//! gives proves nothing.

use std::fmt;
use std::str::FromStr;

use libc::{EACCES, EDQUOT, EINTR, EIO, EMFILE, ENOMEM, ENOSPC, c_long};

use super::call::Call;

/// The errors that are tried, by name.
pub const ERRORS: [(i32, &str); 7] = [
    (EIO, "EIO"),
    (ENOSPC, "ENOSPC"),
    (EDQUOT, "EDQUOT"),
    (EINTR, "EINTR"),
    (ENOMEM, "ENOMEM"),
    (EMFILE, "EMFILE"),
    (EACCES, "EACCES"),
];

/// The answer of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// This error.
    Error(i32),
    /// So many bytes or pieces, fewer than it was asked for.
    Short(u64),
}

/// An answer that is put in the place of the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Injection {
    /// System calls that the operation makes before.
    pub calls: u64,
    /// The answer of the next one.
    pub answer: Answer,
    /// Whether every later call that can give this error gives it too, until the operation ends.
    pub is_lasting: bool,
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Injection { calls, answer, is_lasting } = self;
        match answer {
            Answer::Error(errno) => write!(f, "{calls}:{}", error_name(*errno))?,
            Answer::Short(count) => write!(f, "{calls}:short{count}")?,
        }
        f.write_str(if *is_lasting { "+" } else { "" })
    }
}

impl FromStr for Injection {
    type Err = String;

    fn from_str(text: &str) -> Result<Injection, String> {
        let fault =
            || format!("{text:?} is no place; it is CALLS:ERROR, CALLS:ERROR+ or CALLS:shortCOUNT");
        let (calls, answer) = text.split_once(':').ok_or_else(fault)?;
        let calls = calls.parse().map_err(|_| fault())?;
        let is_lasting = answer.ends_with('+');
        let answer = answer.trim_end_matches('+');
        let answer = match answer.strip_prefix("short") {
            Some(count) => Answer::Short(count.parse().map_err(|_| fault())?),
            None => Answer::Error(error_of(answer).ok_or_else(fault)?),
        };
        Ok(Injection { calls, answer, is_lasting })
    }
}

/// The name of an error number that is tried.
pub fn error_name(errno: i32) -> &'static str {
    ERRORS.iter().find(|(number, _)| *number == errno).map_or("an error", |(_, name)| name)
}

/// The error number with this name.
pub fn error_of(name: &str) -> Option<i32> {
    ERRORS.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
}

/// One kind of call.
struct Kind {
    number: c_long,
    name: &'static str,
    errors: &'static [i32],
}

const fn kind(number: c_long, name: &'static str, errors: &'static [i32]) -> Kind {
    Kind { number, name, errors }
}

/// Errors of whatever opens a file; one that may create it needs space, too.
const OPENS: &[i32] = &[EMFILE, ENOMEM, EACCES, EINTR, EIO];
const CREATES: &[i32] = &[EMFILE, ENOMEM, EACCES, EINTR, EIO, ENOSPC, EDQUOT];
/// Of whatever changes names.
const NAMES: &[i32] = &[EACCES, ENOMEM, EIO, ENOSPC, EDQUOT];
const REMOVES: &[i32] = &[EACCES, ENOMEM, EIO];
const LOOKS: &[i32] = &[EACCES, ENOMEM, EIO];
const WRITES: &[i32] = &[EIO, ENOSPC, EDQUOT, EINTR];
const READS: &[i32] = &[EIO, EINTR];
const SYNCS: &[i32] = &[EIO, ENOSPC, EDQUOT];
const OWNS: &[i32] = &[EACCES, EIO];

const KINDS: &[Kind] = &[
    kind(libc::SYS_openat, "openat", OPENS),
    kind(libc::SYS_close, "close", &[EIO, EINTR]),
    kind(libc::SYS_write, "write", WRITES),
    kind(libc::SYS_writev, "writev", WRITES),
    kind(libc::SYS_pwrite64, "pwrite64", WRITES),
    kind(libc::SYS_pwritev, "pwritev", WRITES),
    kind(libc::SYS_pwritev2, "pwritev2", WRITES),
    kind(libc::SYS_read, "read", READS),
    kind(libc::SYS_readv, "readv", READS),
    kind(libc::SYS_pread64, "pread64", READS),
    kind(libc::SYS_preadv, "preadv", READS),
    kind(libc::SYS_fsync, "fsync", SYNCS),
    kind(libc::SYS_fdatasync, "fdatasync", SYNCS),
    kind(libc::SYS_sync_file_range, "sync_file_range", SYNCS),
    kind(libc::SYS_ftruncate, "ftruncate", WRITES),
    kind(libc::SYS_fallocate, "fallocate", WRITES),
    kind(libc::SYS_mmap, "mmap", &[ENOMEM]),
    kind(libc::SYS_mremap, "mremap", &[ENOMEM]),
    kind(libc::SYS_madvise, "madvise", &[ENOMEM]),
    kind(libc::SYS_mkdirat, "mkdirat", NAMES),
    kind(libc::SYS_renameat, "renameat", NAMES),
    kind(libc::SYS_renameat2, "renameat2", NAMES),
    kind(libc::SYS_linkat, "linkat", NAMES),
    kind(libc::SYS_symlinkat, "symlinkat", NAMES),
    kind(libc::SYS_unlinkat, "unlinkat", REMOVES),
    kind(libc::SYS_newfstatat, "newfstatat", LOOKS),
    kind(libc::SYS_statx, "statx", LOOKS),
    kind(libc::SYS_fstat, "fstat", &[ENOMEM, EIO]),
    kind(libc::SYS_statfs, "statfs", &[EACCES, ENOMEM, EIO, EINTR]),
    kind(libc::SYS_fstatfs, "fstatfs", &[ENOMEM, EIO, EINTR]),
    kind(libc::SYS_getdents64, "getdents64", &[EIO, ENOMEM]),
    kind(libc::SYS_readlinkat, "readlinkat", LOOKS),
    kind(libc::SYS_fchmod, "fchmod", OWNS),
    kind(libc::SYS_fchmodat, "fchmodat", OWNS),
    kind(libc::SYS_fchown, "fchown", OWNS),
    kind(libc::SYS_fchownat, "fchownat", OWNS),
    kind(libc::SYS_fcntl, "fcntl", &[EINTR, ENOMEM]),
    kind(libc::SYS_flock, "flock", &[EINTR, ENOMEM]),
    kind(libc::SYS_futex, "futex", &[EINTR]),
    kind(libc::SYS_ioctl, "ioctl", &[EIO, ENOMEM]),
];

/// Calls that take no directory; newer machines do not have them.
#[cfg(target_arch = "x86_64")]
const OLD_KINDS: &[Kind] = &[
    kind(libc::SYS_open, "open", OPENS),
    kind(libc::SYS_mkdir, "mkdir", NAMES),
    kind(libc::SYS_rename, "rename", NAMES),
    kind(libc::SYS_link, "link", NAMES),
    kind(libc::SYS_symlink, "symlink", NAMES),
    kind(libc::SYS_unlink, "unlink", REMOVES),
    kind(libc::SYS_rmdir, "rmdir", REMOVES),
    kind(libc::SYS_stat, "stat", LOOKS),
    kind(libc::SYS_lstat, "lstat", LOOKS),
    kind(libc::SYS_readlink, "readlink", LOOKS),
    kind(libc::SYS_chmod, "chmod", OWNS),
    kind(libc::SYS_chown, "chown", OWNS),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_KINDS: &[Kind] = &[];

fn kind_of(number: i64) -> Option<&'static Kind> {
    KINDS.iter().chain(OLD_KINDS).find(|kind| kind.number == number)
}

/// The name of a call of which some answer is known.
pub fn name_of(number: i64) -> Option<&'static str> {
    kind_of(number).map(|kind| kind.name)
}

/// Which argument of a call is the path that it is about, if one is.
pub fn path_argument(number: i64) -> Option<usize> {
    match number {
        // Newer machines have only those that take a directory.
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open
        | libc::SYS_stat
        | libc::SYS_lstat
        | libc::SYS_mkdir
        | libc::SYS_rename
        | libc::SYS_unlink
        | libc::SYS_readlink
        | libc::SYS_chmod
        | libc::SYS_chown => Some(0),
        libc::SYS_statfs => Some(0),
        libc::SYS_openat
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_mkdirat
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_unlinkat
        | libc::SYS_readlinkat
        | libc::SYS_fchmodat
        | libc::SYS_fchownat => Some(1),
        libc::SYS_symlinkat => Some(2),
        _ => None,
    }
}

/// The errors that this very call can give, of those that are tried.
pub fn errors_of(call: &Call) -> &'static [i32] {
    let Some(kind) = kind_of(call.number) else { return &[] };
    let [_, second, third, fourth, fifth, _] = call.arguments;
    let has = |flags: u64, flag: i32| flags & flag as u64 != 0;
    match call.number {
        libc::SYS_openat if has(third, libc::O_CREAT) => CREATES,
        // The allocator's own memory: without it a Rust program ends, in any module.
        libc::SYS_mmap if has(fourth, libc::MAP_ANONYMOUS) || fifth as i32 == -1 => &[],
        libc::SYS_mremap => &[],
        libc::SYS_fcntl if is_lock(second) => kind.errors,
        libc::SYS_fcntl if second == libc::F_DUPFD_CLOEXEC as u64 => &[EMFILE],
        libc::SYS_fcntl => &[],
        // Waking is no waiting.
        libc::SYS_futex if second & 0x7f == libc::FUTEX_WAKE as u64 => &[],
        _ => kind.errors,
    }
}

fn is_lock(command: u64) -> bool {
    [libc::F_SETLK, libc::F_SETLKW, libc::F_OFD_SETLK, libc::F_OFD_SETLKW]
        .contains(&(command as i32))
}

/// Whether an error is answered by a call that has done its work all the same.
pub fn is_carried_out(call: &Call) -> bool {
    call.number == libc::SYS_close
}

/// Everything that this call may answer instead: each error, and fewer bytes than it was asked for.
pub fn answers_of(call: &Call) -> Vec<Answer> {
    let mut answers: Vec<Answer> = errors_of(call).iter().copied().map(Answer::Error).collect();
    let reads_or_writes =
        [libc::SYS_write, libc::SYS_pwrite64, libc::SYS_pwritev, libc::SYS_read, libc::SYS_pread64];
    if reads_or_writes.contains(&call.number) {
        let len = call.arguments[2];
        let mut counts = vec![1, len / 2, len.saturating_sub(1), len / 2 / 512 * 512];
        counts.retain(|count| (1..len).contains(count) && (!call.is_direct || count % 512 == 0));
        counts.sort_unstable();
        counts.dedup();
        answers.extend(counts.into_iter().map(Answer::Short));
    }
    answers
}

/// Whether it is the log's own data that this call writes or syncs: the only failure that all
/// processes have to know of. In a commit each refusal of the device is about that, also that of a
/// query.
pub fn is_about_the_device(call: &Call, answer: Answer, commits: bool) -> bool {
    let Answer::Error(errno) = answer else { return false };
    if commits && errno == EIO {
        return true;
    }
    let is_write = WRITES == errors_of(call) || SYNCS == errors_of(call);
    let changes_size = [libc::SYS_ftruncate, libc::SYS_fallocate].contains(&call.number);
    is_write && !changes_size && [EIO, ENOSPC, EDQUOT].contains(&errno)
}

/// Whether the device has failed to bring something of a file to its medium.
pub fn is_failed_sync(call: &Call, answer: Answer) -> bool {
    let syncs = [libc::SYS_fsync, libc::SYS_fdatasync].contains(&call.number);
    syncs && answer == Answer::Error(EIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injections_are_read_as_they_are_shown() {
        for text in ["0:EIO", "12:EMFILE+", "3:short512"] {
            assert_eq!(text.parse::<Injection>().unwrap().to_string(), text);
        }
        for text in ["EIO", "1:EWHAT", "1:short", "x:EIO"] {
            assert!(text.parse::<Injection>().is_err(), "{text}");
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn only_calls_that_create_run_out_of_space_and_the_heap_is_left_alone() {
        let call = |number, arguments| Call { number, arguments, is_direct: false };
        let open = |flags: i32| call(libc::SYS_openat, [0, 0, flags as u64, 0, 0, 0]);
        assert!(!errors_of(&open(libc::O_RDWR)).contains(&ENOSPC));
        assert!(errors_of(&open(libc::O_CREAT)).contains(&ENOSPC));
        let heap = (libc::MAP_ANONYMOUS | libc::MAP_PRIVATE) as u64;
        assert!(errors_of(&call(libc::SYS_mmap, [0, 9, 0, heap, u64::MAX, 0])).is_empty());
        let write = call(libc::SYS_pwrite64, [3, 0, 4096, 0, 0, 0]);
        assert!(answers_of(&write).contains(&Answer::Short(2048)));
        assert!(answers_of(&write).contains(&Answer::Short(4095)));
        let direct = Call { is_direct: true, ..write.clone() };
        assert_eq!(answers_of(&direct).last(), Some(&Answer::Short(2048)));
        assert!(is_about_the_device(&write, Answer::Error(EIO), false));
        assert!(!is_about_the_device(&write, Answer::Error(EINTR), true));
        assert!(!is_about_the_device(&open(libc::O_CREAT), Answer::Error(EIO), false));
    }
}
