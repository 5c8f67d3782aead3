//! Making records survive a power cut.

use crate::error::OsResult;
use crate::log::core::Core;
use crate::shared::cursor;
use crate::{Lsn, Result, sys};

pub(crate) fn commit(core: &Core, lsn: Lsn) -> Result<()> {
    let _ = lsn;
    sync(core).map(|_| ())
}

pub(crate) fn sync(core: &Core) -> Result<Lsn> {
    let published = cursor::published(core.words());
    for first in crate::segment::list(&core.dir)? {
        let path = crate::format::segment::path(&core.dir, first);
        let fd = sys::file::open(&path, rustix::fs::OFlags::RDWR, 0).or_os("open", &path)?;
        rustix::fs::fdatasync(&fd).or_os("sync", &path)?;
    }
    Ok(published)
}
