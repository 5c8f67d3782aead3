//! The shape of a log, which is kept with the shipped bytes, so that the log can be restored.

use crate::log::layout::text::policy;
use crate::log::state::core::Core;
use crate::log::state::identity;
use crate::restore::shape::LogShape;
use crate::shared::commit;
use crate::{Error, ErrorKind, Result};

pub(crate) fn of(core: &Core) -> Result<LogShape> {
    let Some(identity) = identity::current(core) else {
        let message = "the log has no id yet, because an earlier version made it; open it once for \
                       writing";
        return Err(Error::new(ErrorKind::Unsupported, message).at_path(&core.files.dir));
    };
    let stable_end = commit::durable(&core.words().commits);
    Ok(LogShape::new(&core.files.geometry, policy::of(core), identity, stable_end))
}
