//! Names of the files of a log, beside its segments.

/// The mapped file through which participants meet.
pub(crate) const CONTROL_NAME: &str = "control";
/// What the log is made of, kept apart from the control file so that that can be rebuilt.
pub(crate) const GEOMETRY_NAME: &str = "geometry";
/// The file on whose bytes participants hold locks.
pub(crate) const LOCK_NAME: &str = "lock";
/// The link to the newest file of a text log, and its name before it is moved.
pub(crate) const CURRENT_NAME: &str = "current";
pub(crate) const UNFINISHED_CURRENT_NAME: &str = "current.new";
/// The file in which a closed text file is compressed before it gets its name.
pub(crate) const UNFINISHED_COMPRESSED_NAME: &str = "compressed.new";
/// The name under which the control file and the geometry file are written.
pub(crate) const UNFINISHED_CONTROL_NAME: &str = "control.new";
/// The file of the named cursors, and its name before it is whole.
pub(crate) const CURSORS_NAME: &str = "cursors";
pub(crate) const UNFINISHED_CURSORS_NAME: &str = "cursors.new";
/// How commit groups get to the device, and its name before it is whole.
pub(crate) const COMMIT_PATH_NAME: &str = "commit-path";
pub(crate) const UNFINISHED_COMMIT_PATH_NAME: &str = "commit-path.new";
/// What the process that ships the log must know after a crash, and its name before it is whole.
pub(crate) const SHIP_NAME: &str = "ship";
pub(crate) const UNFINISHED_SHIP_NAME: &str = "ship.new";
/// The note that a log is being restored in this directory.
pub(crate) const RESTORING_NAME: &str = "restoring";
/// What stands at the root of a fresh volume, and is nobody's.
pub(crate) const LOST_AND_FOUND_NAME: &str = "lost+found";

/// No file that is read whole is longer.
pub(crate) const SMALL_LEN_MAX: usize = 64 << 10;
