//! A fixed number of equal buffers, used again and again.
//!
//! Buffers that are allocated and freed by many threads leave holes, and free memory in one
//! thread's arena is of no use to another: the C library kept five times the memory in use. Here
//! the number of buffers is the bound.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

/// The most bytes of a chunk that is made here.
pub const CHUNK_BYTES: usize = 8 << 20;
/// The largest object that is read into a buffer of the pool: the marks of many chunks are in it.
const READ_BYTES: usize = CHUNK_BYTES + (64 << 10);
/// A smaller one than this is not.
const SMALL: usize = 256 << 10;
/// As many as fetches and the writers of fetched bytes hold together.
const READING: usize = 8;

/// Equal buffers. Memory that was never written to is not resident.
#[derive(Clone, Debug)]
pub struct Pool {
    home: Arc<Home>,
}

#[derive(Debug)]
struct Home {
    size: usize,
    free: Mutex<Vec<Vec<u8>>>,
    places: Semaphore,
}

impl Pool {
    /// A pool of `count` buffers of `size` bytes.
    pub fn new(count: usize, size: usize) -> Pool {
        let (free, places) = (Mutex::default(), Semaphore::new(count));
        Pool { home: Arc::new(Home { size, free, places }) }
    }

    /// A buffer, as soon as one is free. A caller that waits holds none.
    pub async fn take(&self) -> Buffer {
        let place = self.home.places.acquire().await.expect("it is never closed");
        place.forget();
        self.take_free()
    }

    /// A buffer, if one is free.
    fn try_take(&self) -> Option<Buffer> {
        self.home.places.try_acquire().ok()?.forget();
        Some(self.take_free())
    }

    fn take_free(&self) -> Buffer {
        // The one that came back last is the one that is resident.
        let bytes = self.home.free().pop().unwrap_or_else(|| vec![0; self.home.size]);
        Buffer { bytes, filled: 0, home: Some(Arc::clone(&self.home)) }
    }
}

/// A buffer for something that is read, of this many bytes at least. It is one of a pool where it
/// is large enough and one is free; no caller waits, because a reader may keep its bytes.
pub fn reading(bytes: usize) -> Buffer {
    static POOL: LazyLock<Pool> = LazyLock::new(|| Pool::new(READING, READ_BYTES));
    let is_usual = (SMALL..=READ_BYTES).contains(&bytes);
    let pooled = is_usual.then(|| POOL.try_take()).flatten();
    pooled.unwrap_or_else(|| Buffer { bytes: vec![0; bytes], filled: 0, home: None })
}

impl Home {
    fn free(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer, which goes back when it is dropped: as an owner of `Bytes`, with their last clone. The
/// old bytes are still in it.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    filled: usize,
    home: Option<Arc<Home>>,
}

impl Buffer {
    /// All of it.
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Says how many bytes count.
    pub fn set_filled(&mut self, filled: usize) {
        self.filled = filled.min(self.bytes.len());
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(home) = &self.home else { return };
        home.free().push(std::mem::take(&mut self.bytes));
        home.places.add_permits(1);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_buffer_comes_back_with_the_last_clone_of_its_bytes() {
        let pool = Pool::new(1, 8);
        let mut buffer = pool.take().now_or_never().unwrap();
        buffer.space().fill(7);
        buffer.set_filled(3);
        let at = buffer.as_ref().as_ptr();
        let bytes = Bytes::from_owner(buffer);
        let part = bytes.slice(1..);
        drop(bytes);
        assert_eq!(&part[..], [7, 7]);
        assert!(pool.take().now_or_never().is_none(), "there is only one");
        drop(part);
        let again = pool.take().now_or_never().unwrap();
        assert_eq!((again.bytes.as_ptr(), again.filled), (at, 0));
    }

    #[tokio::test]
    async fn who_waits_gets_the_next_one_that_is_free() {
        let pool = Pool::new(1, 8);
        let buffer = pool.take().await;
        let (other, ()) = tokio::join!(pool.take(), async { drop(buffer) });
        assert_eq!(other.bytes.len(), 8);
    }
}
