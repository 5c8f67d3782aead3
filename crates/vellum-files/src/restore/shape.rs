//! The shape of a log, to be kept with the shipped bytes, so that the log can be restored.

use crate::format::control::Geometry;
use crate::format::identity::{Copy, IDENTITY_OFFSET, Identity};
use crate::policy::Policy;
use crate::sys::{self, checksum};
use crate::{Error, ErrorKind, Layout, LogId, Lsn, Result};

/// Bytes of a shape: those of a geometry file, the position, and a checksum.
pub(crate) const LEN: usize = FILE_LEN + 16;
/// Bytes of a geometry file with an identity.
const FILE_LEN: usize = IDENTITY_OFFSET + crate::format::identity::IDENTITY_LEN;

/// By how many epochs a copy continues behind the log that it was copied from, at least. The log
/// itself continues in steps of one, so the two do not meet.
const FORK_STEP: u64 = 1 << 32;

/// The shape of a log ([`ship::Ship::shape`](../../vellum/ship/struct.Ship.html#method.shape)): the
/// data that a [`Restorer`](crate::restore::restorer::Restorer) needs beside the bytes.
///
/// It has the secret that goes into the checksums of frames. A user that can read it can make
/// frames that pass for the log's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogShape {
    pub(crate) geometry: Geometry,
    pub(crate) policy: Policy,
    pub(crate) identity: Identity,
    /// Positions that were stored before this still hold the same bytes.
    stable_end: Lsn,
}

impl LogShape {
    /// Of a log with this geometry, policy and identity.
    #[doc(hidden)]
    pub fn new(
        geometry: &Geometry,
        policy: Policy,
        identity: Identity,
        stable_end: Lsn,
    ) -> LogShape {
        let geometry = Geometry { boot_id: [0; 16], has_commits: true, cut: 0, ..*geometry };
        LogShape { geometry, policy, identity, stable_end }
    }

    /// Of a new log with `identity`, for the records that were saved of one with this geometry.
    #[doc(hidden)]
    pub fn of_saved(geometry: &Geometry, identity: Identity) -> LogShape {
        LogShape::new(geometry, Policy::default(), identity, Lsn::MAX)
    }

    /// How records lie in the segments.
    pub fn layout(&self) -> Layout {
        self.geometry.layout
    }

    /// Positions of a segment. Segments start at the multiples of this.
    pub fn segment_capacity_bytes(&self) -> u64 {
        self.geometry.segment_capacity
    }

    /// Which log it is.
    pub fn log_id(&self) -> LogId {
        self.identity.id
    }

    /// The epoch in which the shape was taken.
    pub fn epoch(&self) -> u64 {
        self.identity.epoch
    }

    /// The same, for a log that is restored from another history: one that was cut at `lsn` since
    /// the shape was taken. Stored positions from there on are refused in the restored log.
    #[must_use]
    pub fn cut_at(mut self, lsn: Lsn) -> LogShape {
        self.stable_end = self.stable_end.min(lsn);
        self
    }

    /// The shape as bytes, 1040 of them. The first 1024 are those of a geometry file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.file_bytes(&self.policy, &self.identity);
        bytes.extend(self.stable_end.get().to_le_bytes());
        let check = u64::from(checksum::crc32c(&bytes));
        bytes.extend(check.to_le_bytes());
        bytes
    }

    /// Reads a shape, no matter which program wrote it: its values are within the bounds of a log.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](crate::ErrorKind::Corrupt) for bytes that are damaged,
    /// [`Incompatible`](crate::ErrorKind::Incompatible) for those of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<LogShape> {
        let damaged = || Error::new(ErrorKind::Corrupt, "the shape of the log is damaged");
        let geometry = Geometry::parse(bytes).map_err(|fault| match fault {
            crate::format::control::HeaderFault::Version(version) => {
                let message = format!("the shape is of format version {version}");
                Error::new(ErrorKind::Incompatible, message)
            }
            _ => damaged(),
        })?;
        let (shape, check) = bytes.split_at_checked(LEN - 8).ok_or_else(damaged)?;
        if *check != u64::from(checksum::crc32c(shape)).to_le_bytes() {
            return Err(damaged());
        }
        let Copy::Whole(identity) = Copy::in_file(&shape[..FILE_LEN]) else {
            return Err(damaged());
        };
        let policy = Policy::parse(&shape[crate::format::control::GEOMETRY_LEN..]);
        let policy = policy.unwrap_or_default();
        let end = shape[FILE_LEN..].try_into().expect("eight bytes are left");
        Ok(LogShape { geometry, policy, identity, stable_end: Lsn::new(u64::from_le_bytes(end)) })
    }

    /// The geometry file of a log that is restored, and ends at `end`: another epoch of the same
    /// log, which the original never comes to.
    pub(crate) fn restored(&self, end: Lsn, keeps_retention: bool, fork: u64) -> Vec<u8> {
        let mut identity = self.identity.clone();
        identity.rewind(self.stable_end.min(end), fork);
        let mut policy = self.policy;
        if !keeps_retention {
            (policy.retain_bytes, policy.retain_age, policy.retain_files) = (None, None, None);
        }
        self.file_bytes(&policy, &identity)
    }

    fn file_bytes(&self, policy: &Policy, identity: &Identity) -> Vec<u8> {
        let mut bytes = [self.geometry.to_bytes(), policy.to_bytes()].concat();
        bytes.resize(IDENTITY_OFFSET, 0);
        bytes.extend(identity.to_bytes());
        bytes
    }
}

/// By how many epochs another copy of a log continues.
pub fn fork_step() -> u64 {
    FORK_STEP + (sys::process::random_u64() >> 32)
}
