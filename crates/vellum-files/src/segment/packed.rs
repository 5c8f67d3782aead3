//! Compressed segments: packing the text of one, and unpacking it into memory to read it.

// A build that can do neither has the functions all the same.
#![cfg_attr(not(any(feature = "zstd", feature = "gzip")), allow(unused_variables, unused_imports))]

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;

use crate::error::OsResult;
use crate::format::segment::before_compression;
use crate::sys::descriptor::above_standard;
use crate::sys::file::Stream;
use crate::{Compression, Error, ErrorKind, Result};

/// The default of zstd itself.
#[cfg(feature = "zstd")]
const ZSTD_LEVEL: i32 = 3;
/// The result of zstd where it found no memory: `ZSTD_error_memory_allocation` in `zstd_errors.h`.
#[cfg(feature = "zstd")]
const OUT_OF_MEMORY: usize = 64_usize.wrapping_neg();

/// How the file at `path` is compressed, by its name.
pub(crate) fn compression_of(path: &Path) -> Compression {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    before_compression(name).1
}

/// Writes the compressed form of a file, with its original length.
pub fn pack(source: File, target: &OwnedFd, compression: Compression) -> io::Result<()> {
    match compression {
        #[cfg(feature = "zstd")]
        Compression::Zstd => pack_zstd(source, target),
        #[cfg(feature = "gzip")]
        Compression::Gzip => pack_gzip(source, target),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

#[cfg(feature = "zstd")]
fn pack_zstd(mut source: File, target: &OwnedFd) -> io::Result<()> {
    use zstd::stream::write::Encoder;
    use zstd::zstd_safe::{CCtx, CParameter};

    // A function that creates a context by itself panics where there is no memory for one.
    let mut context = CCtx::try_create().ok_or(Errno::NOMEM)?;
    let mut encoder = Encoder::with_context(Stream::new(target), &mut context);
    encoder.set_parameter(CParameter::CompressionLevel(ZSTD_LEVEL))?;
    encoder.set_pledged_src_size(Some(source.metadata()?.len()))?;
    encoder.include_contentsize(true)?;
    encoder.include_checksum(true)?;
    io::copy(&mut source, &mut encoder)?;
    encoder.finish()?;
    Ok(())
}

#[cfg(feature = "gzip")]
fn pack_gzip(mut source: File, target: &OwnedFd) -> io::Result<()> {
    let target = io::BufWriter::with_capacity(64 << 10, Stream::new(target));
    let mut encoder = flate2::write::GzEncoder::new(target, flate2::Compression::default());
    io::copy(&mut source, &mut encoder)?;
    encoder.finish()?.into_inner().map(drop).map_err(io::IntoInnerError::into_error)
}

/// The text of a compressed segment, in memory: no more than a segment holds.
pub fn unpack(
    fd: OwnedFd,
    path: &Path,
    compression: Compression,
    capacity: u64,
) -> Result<OwnedFd> {
    if !compression.is_built() {
        let message = format!(
            "the segment is compressed with {compression}, and this build of Vellum cannot \
             decompress it; build it with the feature `{compression}`"
        );
        return Err(Error::new(ErrorKind::Unsupported, message).at_path(path));
    }
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let memory = above_standard(|| rustix::fs::memfd_create("vellum-segment", flags))
        .or_os("find memory to decompress", path)?;
    let file = BufReader::with_capacity(64 << 10, File::from(fd));
    unpack_into(file, &memory, compression, capacity).map_err(|error| unreadable(&error, path))?;
    Ok(memory)
}

fn unpack_into(
    file: BufReader<File>,
    memory: &OwnedFd,
    compression: Compression,
    capacity: u64,
) -> io::Result<()> {
    let copy = |text: &mut dyn Read| {
        io::copy(&mut text.take(capacity + 1), &mut Stream::new(memory)).map(drop)
    };
    match compression {
        #[cfg(feature = "zstd")]
        Compression::Zstd => {
            // A function that creates a context by itself panics where there is no memory for one.
            let mut context = zstd::zstd_safe::DCtx::try_create().ok_or(Errno::NOMEM)?;
            copy(&mut zstd::stream::read::Decoder::with_context(file, &mut context))
        }
        #[cfg(feature = "gzip")]
        Compression::Gzip => copy(&mut flate2::bufread::GzDecoder::new(file)),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn unreadable(error: &io::Error, path: &Path) -> Error {
    if is_out_of_memory(error) {
        return Error::os(Errno::NOMEM, "decompress the segment", path);
    }
    if let Some(errno @ (Errno::FBIG | Errno::NOMEM | Errno::NOSPC | Errno::IO)) =
        Errno::from_io_error(error)
    {
        return Error::os(errno, "decompress the segment", path);
    }
    let message = format!("the compressed segment cannot be read: {error}");
    Error::new(ErrorKind::Corrupt, message).at_path(path)
}

#[cfg(feature = "zstd")]
fn is_out_of_memory(error: &io::Error) -> bool {
    error.to_string() == zstd::zstd_safe::get_error_name(OUT_OF_MEMORY)
}

#[cfg(not(feature = "zstd"))]
fn is_out_of_memory(_: &io::Error) -> bool {
    false
}

#[cfg(all(test, feature = "zstd"))]
mod tests {
    use super::*;

    #[test]
    fn the_code_for_want_of_memory_is_that_of_zstd() {
        let name = zstd::zstd_safe::get_error_name(OUT_OF_MEMORY);
        assert!(name.contains("not enough memory"), "{name}");
    }
}
