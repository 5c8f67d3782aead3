//! Files that the user names: nothing is waited for, and nothing without end is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};

/// Of a file that is made.
const MODE: u32 = 0o666;

/// Opens a regular file, which may be reached by a link.
///
/// # Errors
///
/// It can't be opened, or is no regular file: a pipe would have to be waited for, and a device may
/// have no end.
pub fn opened(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::from_raw_mode(MODE)) {
        // A pipe that no program reads, or a socket.
        Err(rustix::io::Errno::NXIO) => return Err(not_regular()),
        file => file?,
    };
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file.into()),
        _ => Err(not_regular()),
    }
}

/// The whole text of a regular file of at most so many bytes.
///
/// # Errors
///
/// As [`opened`], or the file is longer.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    opened(path, OFlags::RDONLY)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(io::Error::other(format!("the file is longer than {bytes_max} bytes"))),
        false => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn not_regular() -> io::Error {
    io::Error::other("it is no regular file, and a pipe or a device is not used")
}
