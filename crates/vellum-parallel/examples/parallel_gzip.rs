//! Compresses a file with several threads:
//! `cargo run --release -p vellum-parallel --example parallel_gzip -- FILE FILE.gz [THREADS]`.
//!
//! Each mebibyte becomes a gzip member of its own, and members one after the other are a valid gzip
//! file: `gzip -d` and everything else reads it. How long a member is shows only when it is there,
//! so members are numbered pieces, which any thread hands in when it has one.

use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use vellum_parallel::{FileOptions, Finished, ResultFile};

/// The input of one member.
const INPUT_BYTES: u64 = 1 << 20;
/// Longer than a member of that can be: deflate adds 5 bytes to 16 KiB that it cannot compress.
const MEMBER_BYTES_MAX: u64 = INPUT_BYTES + INPUT_BYTES / 1024 + 64;

/// Compresses members, the next that is not taken yet, until there are no more.
fn compress_members(input: &File, next: &AtomicU64, output: &ResultFile) -> std::io::Result<()> {
    let len = input.metadata()?.len();
    let count = len.div_ceil(INPUT_BYTES).max(1);
    let mut plain = vec![0; INPUT_BYTES as usize];
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= count {
            return Ok(());
        }
        let offset = index * INPUT_BYTES;
        let part = &mut plain[..INPUT_BYTES.min(len - offset) as usize];
        input.read_exact_at(part, offset)?;
        let mut member = GzEncoder::new(Vec::new(), Compression::default());
        member.write_all(part)?;
        output.write_piece(index, &member.finish()?)?;
    }
}

/// Compresses the file `from` into the new file `to`.
pub(crate) fn compress(from: &Path, to: &Path, threads: usize) -> std::io::Result<Finished> {
    let input = File::open(from)?;
    let output = FileOptions::new().slots(MEMBER_BYTES_MAX).sync(true).create(to)?;
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let work = || compress_members(&input, &next, &output);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker panicked"))
    })?;
    Ok(output.finish()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, rest @ ..] = &arguments[..] else {
        return Err("usage: parallel_gzip FILE FILE.gz [THREADS]".into());
    };
    let threads = match rest {
        [] => std::thread::available_parallelism()?.get(),
        [threads, ..] => threads.parse()?,
    };
    let finished = compress(from.as_ref(), to.as_ref(), threads)?;
    println!("{} bytes in {} members, {}", finished.len, finished.pieces, finished.method);
    Ok(())
}
