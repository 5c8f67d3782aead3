//! Commits that can be polled for.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use vellum::{Committer, Completion, Lsn};

use crate::boundary::{guard, guard_or, required};
use crate::log::vellum_log;
use crate::status::vellum_status::{VELLUM_OK, VELLUM_PENDING};

/// A thread that commits for callers that must not wait. For appends of this process to a staged
/// log it also makes the next file, and commits when half a segment is not durable.
///
/// From vellum_committer_start, until vellum_committer_stop. Any number of threads may use it at
/// once; in a forked child there is no such thread.
pub struct vellum_committer {
    committer: Committer,
}

/// A commit that is on its way, with a file descriptor to poll.
///
/// From vellum_committer_submit, until vellum_completion_close. Any number of threads may use it at
/// once.
pub struct vellum_completion {
    completion: Completion,
}

/// Starts a thread that commits; it has the signal mask of the calling thread.
///
/// Errors: VELLUM_READ_ONLY, and VELLUM_IO where no thread can be started.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_committer_start(
    log: Option<&vellum_log>,
    committer: Option<&mut MaybeUninit<*mut vellum_committer>>,
) -> c_int {
    guard(|| {
        let log = required(log, "log")?;
        let place = required(committer, "committer")?;
        let committer = log.log.committer()?;
        place.write(Box::into_raw(Box::new(vellum_committer { committer })));
        Ok(VELLUM_OK)
    })
}

/// Asks for the record at `lsn`, and everything before it, to be made durable; returns at once.
/// `completion` may be NULL where vellum_committer_fd reports all.
///
/// Errors: VELLUM_OUT_OF_RANGE for a position beyond the end; VELLUM_UNSUPPORTED in a child forked
/// after the committer was started.
///
/// Cost: a hundred bytes of memory, and waking the thread if it sleeps.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_committer_submit(
    committer: Option<&vellum_committer>,
    lsn: u64,
    completion: Option<&mut MaybeUninit<*mut vellum_completion>>,
) -> c_int {
    guard(|| {
        let committer = required(committer, "committer")?;
        let submitted = committer.committer.submit(Lsn::new(lsn))?;
        if let Some(place) = completion {
            let completion = vellum_completion { completion: submitted };
            place.write(Box::into_raw(Box::new(completion)));
        }
        Ok(VELLUM_OK)
    })
}

/// One file descriptor for all that is submitted: it becomes readable (POLLIN) when the durable end
/// may have moved, or a commit failed, and stays so until vellum_committer_take. -1 for NULL, where
/// no file descriptor is left, and in a child forked after the committer was started. It is made,
/// readable, at the first call.
///
/// Borrowed until vellum_committer_stop: do not close it, nothing needs to be read from it.
///
/// Cost: a system call for each commit that finds it not readable.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_committer_fd(committer: Option<&vellum_committer>) -> c_int {
    guard_or(-1, || Ok(required(committer, "committer")?.committer.descriptor()?.as_raw_fd()))
}

/// Makes the descriptor unreadable; `*durable` is the end of the durable records: each record
/// before it is durable. `durable` may be NULL.
///
/// Errors: that of a commit of this committer that failed since the last call, as of vellum_commit;
/// `*durable` is then as it was. The log may continue after it: call again.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_committer_take(
    committer: Option<&vellum_committer>,
    durable: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    guard(|| {
        let end = required(committer, "committer")?.committer.take()?;
        if let Some(place) = durable {
            place.write(end.get());
        }
        Ok(VELLUM_OK)
    })
}

/// Waits until what was submitted is done, and ends the thread; NULL is fine.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_committer_stop(committer: Option<Box<vellum_committer>>) {
    guard_or((), || {
        drop(committer);
        Ok(())
    });
}

/// A file descriptor that becomes readable (POLLIN), and stays so, when the commit is done or
/// failed. -1 for NULL, and where no file descriptor is left: it is made at the first call.
///
/// Borrowed until vellum_completion_close: do not close it, nothing needs to be read from it.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_completion_fd(completion: Option<&vellum_completion>) -> c_int {
    guard_or(-1, || Ok(required(completion, "completion")?.completion.descriptor()?.as_raw_fd()))
}

/// Its result: VELLUM_OK when the record is durable, VELLUM_PENDING while it is on its way,
/// VELLUM_POISONED when it never will be.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_completion_outcome(completion: Option<&vellum_completion>) -> c_int {
    guard(|| match required(completion, "completion")?.completion.outcome() {
        None => Ok(VELLUM_PENDING),
        Some(outcome) => Ok(outcome.map(|()| VELLUM_OK)?),
    })
}

/// Forgets a commit, which continues; NULL is fine. Closes its file descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn vellum_completion_close(completion: Option<Box<vellum_completion>>) {
    guard_or((), || {
        drop(completion);
        Ok(())
    });
}
