//! A loop device over a file.
//!
//! # Safety
//!
//! Each request hands the kernel what it wants: nothing, or one structure of its layout.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{Duration, Instant};

use libc::c_int;
use rustix::fs::OFlags;

use crate::file;

const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4c82;
const LOOP_CONFIGURE: libc::c_ulong = 0x4c0a;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4c05;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// For so long others may take each device that is free.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// How a loop device shows a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoopShape {
    /// Bytes of a logical block; with 0 the kernel chooses.
    pub block_len: u32,
    /// Whether the pages of the file are left out of the page cache.
    pub is_direct: bool,
}

/// Puts `file` behind a loop device that is free, and returns that with its number. `open` opens
/// the device of a number. The device releases the file when it is neither open nor mounted any
/// more.
pub fn attach_loop(
    file: &File,
    shape: LoopShape,
    open: impl Fn(u32) -> io::Result<File>,
) -> io::Result<(File, u32)> {
    let control = File::from(file::open(Path::new("/dev/loop-control"), OFlags::RDWR, 0)?);
    let deadline = Instant::now() + BUSY_MAX;
    loop {
        let number = free_loop_device(&control)?;
        let device = open(number)?;
        match configure_loop_device(&device, file, shape.block_len, shape.is_direct) {
            Ok(()) => return Ok((device, number)),
            // Another process has taken it.
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {}
            Err(error) => return Err(error),
        }
    }
}

/// The number of a loop device that was free a moment ago.
fn free_loop_device(control: &File) -> io::Result<u32> {
    // SAFETY: this request takes no argument.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

/// `struct loop_info64` of the kernel; the fields that are not read here are bytes.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo {
    identity: [u8; 52],
    flags: u32,
    names_and_keys: [u8; 176],
}

/// `struct loop_config` of the kernel.
#[repr(C)]
struct LoopConfig {
    descriptor: u32,
    block_len: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<LoopInfo>() == 232 && size_of::<LoopConfig>() == 304);

const NO_LOOP_INFO: LoopInfo = LoopInfo { identity: [0; 52], flags: 0, names_and_keys: [0; 176] };

/// Puts a file behind a loop device; the device releases it when it is closed for the last time.
/// Fails if it is to be past the page cache and the file allows no direct I/O.
fn configure_loop_device(
    device: &File,
    file: &File,
    block_len: u32,
    is_direct: bool,
) -> io::Result<()> {
    let flags = LO_FLAGS_AUTOCLEAR | if is_direct { LO_FLAGS_DIRECT_IO } else { 0 };
    let config = LoopConfig {
        descriptor: file.as_raw_fd() as u32,
        block_len,
        info: LoopInfo { flags, ..NO_LOOP_INFO },
        reserved: [0; 8],
    };
    // SAFETY: the kernel reads one `struct loop_config`, which this is.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) })?;
    let mut info = NO_LOOP_INFO;
    // SAFETY: the kernel writes one `struct loop_info64`, which this is.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) })?;
    match info.flags & LO_FLAGS_DIRECT_IO {
        0 if is_direct => Err(io::Error::other("the loop device does not do direct I/O")),
        _ => Ok(()),
    }
}

fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
