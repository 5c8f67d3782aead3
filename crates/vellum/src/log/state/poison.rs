//! The behaviour of every room before and after a write or sync has failed.

use rustix::io::Errno;

use crate::log::state::core::Core;
use crate::log::state::wakeup;
use crate::shared::commit::{self, Failure, Operation};
use crate::{Error, Lsn, Result};

/// Refuses a log of which a write or sync has failed.
#[inline]
pub(crate) fn check(core: &Core) -> Result<()> {
    match commit::is_poisoned(&core.words().commits) {
        true => Err(error(core)),
        false => Ok(()),
    }
}

/// The error of all processes after a write or sync has failed.
#[cold]
pub(crate) fn error(core: &Core) -> Error {
    if core.region.is_lost() {
        return core.lost();
    }
    let failure = commit::failure(&core.words().commits);
    let Some(failure) = failure else { return core.nonsense("the poison is gone".into()) };
    let (operation, path) = match failure.operation {
        Operation::Write => ("write records to", core.segment_path(failure.segment)),
        Operation::Sync => ("sync", core.segment_path(failure.segment)),
        Operation::Name => ("sync the names in", core.files.dir.path().to_path_buf()),
        Operation::Beside => ("sync a file of", core.files.dir.path().to_path_buf()),
        Operation::Control => {
            ("store into the control file of", core.files.dir.path().to_path_buf())
        }
        Operation::Cut => ("finish truncating", core.files.dir.path().to_path_buf()),
        Operation::Stage => {
            let first = core.files.segment_of(failure.segment);
            let path = core.commits.stage.as_ref().map(|stage| stage.path(first));
            let path = path.unwrap_or_else(|| core.segment_path(first));
            ("keep records in the stage", path)
        }
    };
    let errno = Errno::from_raw_os_error(failure.errno);
    Error::poisoned(errno, operation, &path)
}

/// Poisons the log if `answer` says that a sync beside the commits has failed: the kernel reports
/// it to no other caller, and a commit may be about to promise records that the device may have
/// lost with it. A log without commits promises nothing, and continues.
pub(crate) fn heed_sync<T>(core: &Core, answer: Result<T>) -> Result<T> {
    let words = &core.words().commits;
    let Some(errno) = answer.as_ref().err().and_then(Error::failed_sync) else { return answer };
    if words.named_end() != 0 {
        let (errno, operation) = (errno.raw_os_error(), Operation::Beside);
        commit::poison_beside(words, Failure { errno, segment: Lsn::ZERO, operation });
        wakeup::notify_durable(core);
    }
    answer
}
