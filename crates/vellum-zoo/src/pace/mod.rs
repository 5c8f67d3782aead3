//! When an answer may go: rules over a clock of the device's own, so that their figures can be
//! checked without waiting.

use std::fmt::Debug;
use std::time::Duration;

use crate::served::Request;

mod bucket;
mod fixed;
mod jitter;
mod neighbour;
mod partial;
mod stalls;
mod window;

pub(crate) use bucket::{Bucket, Unit};
pub(crate) use fixed::Fixed;
pub(crate) use jitter::Jitter;
pub(crate) use neighbour::Neighbour;
pub(crate) use partial::Partial;
pub(crate) use stalls::Stalls;
pub(crate) use window::Window;

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Flush,
}

/// A request, without its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Does it write blocks of the journal of ext4?
    pub(crate) is_journal: bool,
}

/// How blocks of the journal of ext4 begin that are no copies of others.
const JOURNAL: [u8; 4] = 0xc03b_3998_u32.to_be_bytes();
const BLOCK_LEN: usize = 4096;

impl Operation {
    pub(crate) fn of(request: Request<'_>) -> Operation {
        let of = |kind, offset, len: usize| Operation {
            kind,
            offset,
            len: len as u64,
            is_journal: false,
        };
        match request {
            Request::Read(offset, len) => of(Kind::Read, offset, len),
            Request::Write(offset, bytes) => Operation {
                is_journal: bytes.chunks(BLOCK_LEN).any(|block| block.starts_with(&JOURNAL)),
                ..of(Kind::Write, offset, bytes.len())
            },
            Request::Flush => of(Kind::Flush, 0, 0),
        }
    }
}

/// A rule. Times are counted from when the device began.
pub(crate) trait Pace: Debug + Send {
    /// When a request is done that could be done at `at`; not before that.
    fn done(&mut self, operation: &Operation, at: Duration) -> Duration;
}

/// The time that `amount` takes at `rate` in a second.
pub(crate) fn time_of(amount: u64, rate: u64) -> Duration {
    let nanos = u128::from(amount) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{Kind, Operation};
    use std::time::Duration;

    pub(crate) const FLUSH: Operation =
        Operation { kind: Kind::Flush, offset: 0, len: 0, is_journal: false };

    pub(crate) fn write(len: u64) -> Operation {
        Operation { kind: Kind::Write, offset: 0, len, is_journal: false }
    }

    pub(crate) fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }
}
