//! The content of a disk at one moment: blocks that copies of an image share until one is written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// Bytes of a block, the unit that images share.
pub const BLOCK_LEN: usize = 4096;

/// Bytes of a sector, which a disk writes whole or not at all.
pub const SECTOR_LEN: usize = 512;

type Block = [u8; BLOCK_LEN];

/// The content of a disk. A clone costs a table of pointers, and a write one block.
#[derive(Clone, Debug)]
pub struct Image {
    /// `None` is a block of zeros.
    blocks: Vec<Option<Arc<Block>>>,
}

impl Image {
    /// A disk of zeros, of at least so many bytes.
    pub fn new(len: u64) -> Image {
        let count = usize::try_from(len).expect("a disk fits the address space");
        Image { blocks: vec![None; count.div_ceil(BLOCK_LEN)] }
    }

    /// Bytes of the disk.
    pub fn len_bytes(&self) -> u64 {
        (self.blocks.len() * BLOCK_LEN) as u64
    }

    /// Fills `bytes` with the content at `offset`; behind the end are zeros.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        for (index, start, part) in spans(offset, bytes.len()) {
            let target = &mut bytes[part.clone()];
            match self.blocks.get(index).and_then(Option::as_ref) {
                Some(block) => target.copy_from_slice(&block[start..start + part.len()]),
                None => target.fill(0),
            }
        }
    }

    /// Puts `bytes` at `offset`; bytes behind the end are left out.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (index, start, part) in spans(offset, bytes.len()) {
            let Some(slot) = self.blocks.get_mut(index) else { return };
            let block = slot.get_or_insert_with(|| Arc::new([0; BLOCK_LEN]));
            let source = &bytes[part.clone()];
            Arc::make_mut(block)[start..start + part.len()].copy_from_slice(source);
        }
    }

    /// Whether each block of these bytes was written before.
    pub fn has_all(&self, offset: u64, len: usize) -> bool {
        spans(offset, len).all(|(index, ..)| matches!(self.blocks.get(index), Some(Some(_))))
    }

    /// The blocks that are not zeros, with their offsets.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let offsets = (0u64..).step_by(BLOCK_LEN);
        offsets.zip(&self.blocks).filter_map(|(offset, block)| Some((offset, &block.as_ref()?[..])))
    }

    /// Reads an image from a file.
    pub fn from_file(path: &Path) -> io::Result<Image> {
        let file = File::open(path)?;
        let mut image = Image::new(file.metadata()?.len());
        let mut block = [0; BLOCK_LEN];
        let mut offset = 0;
        loop {
            // Ranges that were never written need not be read.
            offset = match rustix::fs::seek(&file, SeekFrom::Data(offset)) {
                Ok(data) => data - data % BLOCK_LEN as u64,
                Err(Errno::NXIO) => return Ok(image),
                Err(error) => return Err(error.into()),
            };
            let count = file.read_at(&mut block, offset)?;
            if block[..count].iter().any(|byte| *byte != 0) {
                image.write(offset, &block[..count]);
            }
            offset += BLOCK_LEN as u64;
        }
    }

    /// Writes the image to a file that takes no space for zeros.
    pub fn to_file(&self, path: &Path) -> io::Result<()> {
        let file = File::create(path)?;
        file.set_len(self.len_bytes())?;
        self.blocks().try_for_each(|(offset, block)| file.write_all_at(block, offset))
    }
}

/// Cuts a range of bytes at block boundaries: block, offset in it, and part of the caller's bytes.
fn spans(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset as usize + done;
        let start = at % BLOCK_LEN;
        let count = (BLOCK_LEN - start).min(len - done);
        let part = done..done + count;
        done += count;
        (count > 0).then_some((at / BLOCK_LEN, start, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_keeps_what_the_other_overwrites() {
        let mut one = Image::new(3 * BLOCK_LEN as u64);
        one.write(4000, &[7; 200]);
        let other = one.clone();
        one.write(4090, &[9; 10]);
        let mut bytes = [0; 202];
        other.read(3999, &mut bytes);
        assert_eq!((bytes[0], bytes[201]), (0, 0));
        assert!(bytes[1..201].iter().all(|byte| *byte == 7));
        one.read(3999, &mut bytes);
        assert_eq!(bytes[91..101], [9; 10]);
    }

    #[test]
    fn a_file_holds_an_image() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        let mut image = Image::new(1 << 20);
        image.write(70_000, b"somewhere");
        image.write((1 << 20) - 1, b"!");
        image.to_file(&path).unwrap();
        assert!(Image::from_file(&path).unwrap().blocks().eq(image.blocks()));
        assert_eq!(Image::from_file(&path).unwrap().len_bytes(), 1 << 20);
    }

    #[test]
    fn nothing_is_read_or_written_behind_the_end() {
        let mut image = Image::new(1);
        image.write(BLOCK_LEN as u64 - 1, &[1, 2]);
        let mut bytes = [9; 2];
        image.read(BLOCK_LEN as u64 - 1, &mut bytes);
        assert_eq!(bytes, [1, 0]);
        assert_eq!(image.len_bytes(), BLOCK_LEN as u64);
    }
}
