//! The object `log`: which log this is, and the shape of a restored one.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::body::BadObject;
use super::chain::{Hash, hash};
use super::header::{HEADER_BYTES, Header, Kind};

/// The most bytes of the description.
const BODY_BYTES_MAX: usize = 64 << 10;

/// The content of the object `log`. It is made once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The log's id, 32 hexadecimal digits.
    pub log_id: String,
    /// `framed` or `text`.
    pub layout: String,
    /// The capacity of a segment, in bytes.
    pub segment_bytes: u64,
    /// The shape from which the library makes an equal log, in hexadecimal digits. The secret of
    /// the checksums of frames is in it: it protects against accidents, not against people with
    /// access to the store.
    pub shape: String,
    /// The first position that was shipped.
    pub begin: u64,
    /// When it was made, in nanoseconds since 1970.
    pub time: u64,
}

impl Identity {
    /// The bytes of the object.
    pub fn encode(&self, log_id: [u8; 16], nonce: u128) -> Bytes {
        let body = serde_json::to_vec(self).expect("numbers and text");
        let header = Header {
            kind: Kind::Log,
            zstd: false,
            generation: 0,
            log_id,
            start: self.begin,
            end: self.begin,
            stored_bytes: body.len() as u64,
            raw_bytes: 0,
            nonce,
            time: self.time,
            file: None,
            fork: self.begin,
            marks: 0,
            marks_crc: 0,
            before: Hash::default(),
            after: Hash::default(),
            content: hash(&body),
        };
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(&body);
        bytes.into()
    }

    /// The identity, and the chain before the first position of generation 0.
    pub fn decode(object: &[u8]) -> Result<(Identity, Header, Hash), BadObject> {
        let header = Header::decode(object)?;
        let body = &object[HEADER_BYTES..];
        if header.kind != Kind::Log {
            return Err(BadObject::Kind(header.kind as u8));
        }
        if body.len() > BODY_BYTES_MAX {
            return Err(BadObject::TooLarge);
        }
        if hash(body) != header.content {
            return Err(BadObject::Content);
        }
        let identity = serde_json::from_slice(body).map_err(|_| BadObject::Content)?;
        Ok((identity, header, hash(object)))
    }
}
