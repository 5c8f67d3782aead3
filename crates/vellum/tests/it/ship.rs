//! The interface for shippers of a log: its bytes, the election, waiting, holding back; and making
//! a log again from those bytes.

mod decoding;
mod electing;
mod reading;
mod restoring;
mod waiting;

use std::path::Path;

use vellum::ship::{FileName, LogShape, Piece, RestoreOptions, Restorer, Shipper};
use vellum::{Layout, Log, Lsn, Result};

use crate::support::child::Role;
use crate::support::{Read, payload};

pub(crate) const ROLES: &[Role] = &[
    ("ship until killed", electing::ship_until_killed),
    ("fork a child beside a shipper", electing::fork_beside_a_shipper),
    ("restore until killed", restoring::restore_until_killed),
];

/// The shipped pieces: where each starts, the piece, and its bytes.
type Shipped = Vec<(Lsn, Piece, Vec<u8>)>;

/// Ships what is durable from `from` on, in pieces of at most `len` bytes.
fn ship(shipper: &Shipper, from: Lsn, len: usize) -> Shipped {
    let durable = shipper.durable().unwrap();
    let (mut at, mut all, mut buf) = (from, Vec::new(), vec![0; len]);
    while at < durable {
        let piece = shipper.read(at, &mut buf).unwrap();
        assert!(piece.next > at && piece.next <= durable.max(piece.segment.end), "{piece:?}");
        assert!(piece.segment.start <= at && piece.next <= piece.segment.end, "{piece:?}");
        all.push((at, piece.clone(), buf[..piece.len].to_vec()));
        at = piece.next;
    }
    let nothing = shipper.read(at, &mut buf).unwrap();
    assert_eq!((nothing.len, nothing.next), (0, at));
    all
}

/// Restores what was shipped.
fn restore(shape: &LogShape, begin: Lsn, shipped: &Shipped, to: &Path) -> Result<Lsn> {
    let mut restorer = Restorer::create(to, shape, begin, &RestoreOptions::new())?;
    write(&mut restorer, shape, shipped)?;
    restorer.finish()
}

/// Writes what was shipped from where the restorer is.
fn write(restorer: &mut Restorer, shape: &LogShape, shipped: &Shipped) -> Result<()> {
    for (start, piece, bytes) in shipped {
        if *start < restorer.position() || bytes.is_empty() {
            continue;
        }
        let segment = piece.segment;
        if shape.layout() == Layout::Text && *start == segment.start {
            let name = FileName::new(*start, segment.file_time, segment.is_continuation);
            restorer.file(name)?;
        }
        restorer.write(*start, bytes)?;
    }
    Ok(())
}

/// Appends records of up to `longest` bytes, some of them in batches.
fn append(log: &Log, count: u64, seed: u64, longest: u64) -> Vec<Read> {
    let mut all = Vec::new();
    for index in 0..count {
        let record = |index| payload(log.layout(), index, 1 + (index * 37 % longest) as usize);
        let bytes = record(seed + index);
        if index % 5 == 4 {
            let mut batch = log.batch();
            batch.push(&bytes).unwrap();
            batch.push(&bytes).unwrap();
            let lsns = batch.append_each().unwrap();
            all.extend(lsns.into_iter().map(|lsn| (lsn, bytes.clone())));
        } else {
            all.push((log.append(&bytes).unwrap(), bytes));
        }
    }
    all
}
