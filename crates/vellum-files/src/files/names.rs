//! Names of the files of a log, beside its segments.

/// The mapped file through which participants meet.
pub const CONTROL_NAME: &str = "control";
/// The geometry of the log, apart from the control file so that the control file can be rebuilt.
pub const GEOMETRY_NAME: &str = "geometry";
/// The file on whose bytes participants hold locks.
pub const LOCK_NAME: &str = "lock";
/// The link to the newest file of a text log.
pub const CURRENT_NAME: &str = "current";
/// The name of that link before it is moved.
pub const UNFINISHED_CURRENT_NAME: &str = "current.new";
/// The file in which a closed text file is compressed before it gets its name.
pub const UNFINISHED_COMPRESSED_NAME: &str = "compressed.new";
/// The name under which the control file and the geometry file are written.
pub const UNFINISHED_CONTROL_NAME: &str = "control.new";
/// The file of the named cursors.
pub const CURSORS_NAME: &str = "cursors";
/// Its name before it is whole.
pub const UNFINISHED_CURSORS_NAME: &str = "cursors.new";
/// How commit groups get to the device.
pub const COMMIT_PATH_NAME: &str = "commit-path";
/// Its name before it is whole.
pub const UNFINISHED_COMMIT_PATH_NAME: &str = "commit-path.new";
/// The state that the process that ships the log needs after a crash.
pub const SHIP_NAME: &str = "ship";
/// Its name before it is whole.
pub const UNFINISHED_SHIP_NAME: &str = "ship.new";
/// The figures of the process that ships the log.
pub const SHIP_FIGURES_NAME: &str = "ship-figures";
/// The note that a log is being restored in this directory.
pub const RESTORING_NAME: &str = "restoring";
/// The directory that a fresh volume has at its root; it belongs to no log.
pub const LOST_AND_FOUND_NAME: &str = "lost+found";

/// No file that is read whole is longer.
pub const SMALL_LEN_MAX: usize = 64 << 10;
