//! Fetching objects, several at a time, in the order of the log.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};

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
    pub raw: Vec<u8>,
    /// Where the chunks in it end, and when each was shipped, in nanoseconds since 1970.
    pub marks: Vec<(u64, u64)>,
}

/// Fetches the pieces, `jobs` at a time, and gives them in order. `None`: an object is not there
/// any more. Each job holds up to 130 MiB.
pub fn fetch_all(
    store: Arc<dyn Store>,
    pieces: Vec<Piece>,
    jobs: usize,
) -> impl Stream<Item = Result<Option<Fetched>, ReadError>> {
    stream::iter(pieces).map(move |piece| fetch(Arc::clone(&store), piece)).buffered(jobs)
}

async fn fetch(store: Arc<dyn Store>, piece: Piece) -> Result<Option<Fetched>, ReadError> {
    if piece.header.kind == Kind::Gap {
        let marks = vec![(piece.until, piece.header.time)];
        return Ok(Some(Fetched { piece, raw: Vec::new(), marks }));
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

/// Takes the object apart, on another thread: hashing is what takes the time.
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
