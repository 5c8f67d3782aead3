//! Things that a disk needs and a machine lacks.

use std::fmt;
use std::fs::OpenOptions;
use std::io;

use rustix::io::Errno;

/// Something that a machine lacks, in one line.
#[derive(Debug)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// `Missing`, if the machine does not allow or know something; otherwise a failure.
pub fn missing_if_forbidden(what: &str, error: io::Error) -> anyhow::Error {
    let text = format!("{what}: {error}");
    match Errno::from_io_error(&error) {
        Some(Errno::PERM | Errno::ACCESS | Errno::NODEV | Errno::NOSYS | Errno::NXIO) => {
            Missing(text).into()
        }
        _ => anyhow::Error::msg(text),
    }
}

/// Fails where a served disk cannot be had: root, FUSE and loop devices are needed.
pub fn look_for_needs() -> Result<(), Missing> {
    if !rustix::process::geteuid().is_root() {
        return Err(Missing("root is needed, to mount filesystems".to_owned()));
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(device)
            .map_err(|error| Missing(format!("{device} cannot be opened: {error}")))?;
    }
    Ok(())
}
