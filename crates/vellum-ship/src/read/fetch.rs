//! Fetching objects, several at a time, in the order of the log.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use tokio::sync::Semaphore;

use super::ReadError;
use super::retry::patiently;
use crate::decide::Piece;
use crate::object::{self, BadObject, Kind};
use crate::store::Store;

/// Tries of an object that is cut short or damaged: it may have been so on the way.
const TRIES: u32 = 3;

/// A piece of the log with its bytes, which are verified: length, hashes, and the chain through it.
#[derive(Debug)]
pub struct Fetched {
    /// Where it belongs.
    pub piece: Piece,
    /// Its bytes, cut at [`Piece::until`]. A gap has none. At the end of a file of a text log there
    /// may be fewer than positions.
    pub raw: Bytes,
    /// Where the chunks in it end, and when each was shipped, in nanoseconds since 1970.
    pub marks: Vec<(u64, u64)>,
}

/// The memory that all jobs hold together, in kibibytes: four chunks. One that holds more is alone.
const ROOM: u32 = 33 << 10;

/// Fetches the pieces, up to `jobs` at a time, and gives them in order. `None`: an object is not
/// there any more. Together they hold 33 MiB, or one object.
pub fn fetch_all(
    store: Arc<dyn Store>,
    pieces: Vec<Piece>,
    jobs: usize,
) -> impl Stream<Item = Result<Option<Fetched>, ReadError>> {
    let room = Arc::new(Semaphore::new(ROOM as usize));
    let fetches = stream::iter(pieces).map(move |piece| {
        let (store, room) = (Arc::clone(&store), Arc::clone(&room));
        async move {
            // They ask in order, so the first one never waits for those behind it.
            let held = room.acquire_many_owned(size(&piece)).await.expect("it is never closed");
            (fetch(store, piece).await, held)
        }
    });
    fetches.buffered(jobs).map(|(fetched, _)| fetched)
}

/// The memory to fetch a piece, in kibibytes.
fn size(piece: &Piece) -> u32 {
    let header = &piece.header;
    let unpacked = if header.zstd { header.raw_bytes } else { 0 };
    let bytes = header.stored_bytes.saturating_add(unpacked);
    u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(ROOM).min(ROOM)
}

async fn fetch(store: Arc<dyn Store>, piece: Piece) -> Result<Option<Fetched>, ReadError> {
    if piece.header.kind == Kind::Gap {
        let marks = vec![(piece.until, piece.header.time)];
        return Ok(Some(Fetched { piece, raw: Bytes::new(), marks }));
    }
    let key = piece.header.key().map(|key| key.to_string()).unwrap_or_default();
    let mut fault = BadObject::Short;
    for _ in 0..TRIES {
        let Some(bytes) = patiently(&key, || store.get(&key)).await? else { return Ok(None) };
        match unpack(bytes, piece).await {
            Ok(fetched) => return Ok(Some(fetched)),
            Err(error) => fault = error,
        }
    }
    Err(ReadError::Object { key, fault })
}

/// Takes the object apart, on another thread: hashing takes the time.
async fn unpack(bytes: Bytes, piece: Piece) -> Result<Fetched, BadObject> {
    let unpacked = tokio::task::spawn_blocking(move || {
        let (header, mut raw) = object::open(&bytes)?;
        if header != piece.header {
            return Err(BadObject::Chain);
        }
        raw.truncate((piece.until - header.start).min(raw.len() as u64) as usize);
        let marks = marks_of(&piece, &bytes)?;
        Ok(Fetched { piece, raw, marks })
    });
    unpacked.await.expect("taking an object apart does not panic")
}

/// The ends of the piece's chunks, and when each was shipped. Of a merged object these are the
/// first bytes, at least.
pub(super) fn marks_of(piece: &Piece, bytes: &[u8]) -> Result<Vec<(u64, u64)>, BadObject> {
    if piece.header.kind != Kind::Merged {
        return Ok(vec![(piece.until, piece.header.time)]);
    }
    let marks = object::marks(&piece.header, bytes)?;
    Ok(marks.iter().map(|mark| (mark.end.min(piece.until), mark.time)).collect())
}
