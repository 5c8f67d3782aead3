//! A log as it is in a store.

use std::sync::Arc;

use vellum::ship::LogShape;

use super::ReadError;
use super::headers::Headers;
use super::retry::patiently;
use crate::decide::{Answer, Ask, Plan, Point, Reader};
use crate::object::{BadObject, Hash, Header, Identity, LOG};
use crate::store::Store;

/// Tries of an object that is cut short: it may have been so on the way.
const TRIES: u32 = 3;

/// A shipped log.
pub struct Remote {
    store: Arc<dyn Store>,
    identity: Identity,
    header: Header,
    genesis: Hash,
    shape: LogShape,
}

impl Remote {
    /// Reads which log is in the store.
    pub async fn open(store: Arc<dyn Store>) -> Result<Remote, ReadError> {
        let (identity, header, genesis) = read_identity(store.as_ref()).await?;
        let shape = shape_of(&identity)?;
        // The id is taken from the shape itself.
        let log_id = shape.log_id();
        if identity.log_id != log_id.to_string() || header.log_id != log_id.to_bytes() {
            return Err(ReadError::Object { key: LOG.to_string(), fault: BadObject::Content });
        }
        Ok(Remote { store, identity, header, genesis, shape })
    }

    /// Where the log is.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The content of the object `log`.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The shape of the restored log.
    pub fn shape(&self) -> &LogShape {
        &self.shape
    }

    /// The number by which the maker of the object `log` knows it.
    pub fn nonce(&self) -> u128 {
        self.header.nonce
    }

    /// The first position that was shipped, and the chain before it.
    pub fn from(&self) -> Point {
        Point { lsn: self.header.start, chain: self.genesis }
    }

    /// Finds all objects that the log consists of now. Costs a list and one small request for each
    /// object.
    pub async fn plan(&self) -> Result<Plan, ReadError> {
        let headers = Headers::all(self.store.as_ref(), self.header.log_id);
        drive(Reader::new(0, self.from()), headers).await
    }

    /// Finds what follows a point on the chain, which is the whole log's [`Plan::end`] of some time
    /// ago. A few requests, and one for each object that has come since.
    pub async fn plan_from(&self, generation: u32, point: Point) -> Result<Plan, ReadError> {
        let headers = Headers::few(self.store.as_ref(), self.header.log_id);
        drive(Reader::new(generation, point), headers).await
    }

    /// Finds the seals between a point on the chain and the generation `last`, with few requests.
    /// If the plan's generation is an earlier one, the objects do not lead there.
    pub async fn seals_before(
        &self,
        last: u32,
        generation: u32,
        point: Point,
    ) -> Result<Plan, ReadError> {
        let headers = Headers::few(self.store.as_ref(), self.header.log_id);
        drive(Reader::seals_before(last, generation, point), headers).await
    }
}

async fn drive(mut reader: Reader, mut headers: Headers<'_>) -> Result<Plan, ReadError> {
    while let Some(ask) = reader.ask() {
        reader.answer(match ask {
            Ask::List(generation) => Answer::Listed(headers.list(generation).await?),
            Ask::Look(key) => Answer::Saw(headers.look(key).await?),
            ask => unreachable!("a reader asks only to look: {ask:?}"),
        });
    }
    Ok(reader.plan()?)
}

fn shape_of(identity: &Identity) -> Result<LogShape, ReadError> {
    let digits = identity.shape.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    let bytes = bytes
        .ok_or_else(|| ReadError::Object { key: LOG.to_string(), fault: BadObject::Content })?;
    Ok(LogShape::from_bytes(&bytes)?)
}

async fn read_identity(store: &dyn Store) -> Result<(Identity, Header, Hash), ReadError> {
    let mut fault = BadObject::Short;
    for _ in 0..TRIES {
        let bytes = patiently(LOG, || store.get(LOG)).await?.ok_or(ReadError::NoLog)?;
        match Identity::decode(&bytes) {
            Ok(identity) => return Ok(identity),
            Err(error) => fault = error,
        }
    }
    Err(ReadError::Object { key: LOG.to_string(), fault })
}
