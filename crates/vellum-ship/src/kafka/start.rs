//! Where to begin, out of what Kafka has and what the log has.

use vellum::{ErrorKind, Layout, Log, Lsn, Position, Reader};

use super::SendError;
use super::mark::{Last, Mark};

/// What the user allows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rights {
    /// Continue although another one has sent, or something else was sent.
    pub(super) take_over: bool,
    /// Continue behind records that were removed.
    pub(super) may_lose: bool,
}

/// Where to begin.
pub(super) struct Start {
    /// Gives the first record to send.
    pub(super) reader: Reader,
    /// What Kafka is told at the beginning.
    pub(super) position: Position,
    /// The last record that was sent.
    pub(super) last: Option<Last>,
    /// From where on records were removed before they were sent, up to the reader.
    pub(super) gap_from: Option<Lsn>,
}

/// Where to begin. `held` is where this directory keeps records from; `mark` is what Kafka has.
pub(super) fn start(
    log: &Log,
    held: Option<Lsn>,
    mark: Option<Mark>,
    rights: Rights,
) -> Result<Start, SendError> {
    match (mark, held) {
        // Nothing is sent before it is held.
        (None, None) => begin_at(log, log.begin(), None),
        (Some(Mark { last: None, .. }), None) => begin_at(log, log.begin(), None),
        (None, Some(held)) if rights.take_over => begin_at(log, held.max(log.begin()), None),
        (None, Some(held)) => Err(SendError::Gone(held)),
        (Some(_), None) if !rights.take_over => Err(SendError::NotOwner),
        (Some(mark), held) => resume(log, held, mark, rights),
    }
}

fn begin_at(log: &Log, lsn: Lsn, last: Option<Last>) -> Result<Start, SendError> {
    let reader = log.reader(lsn)?;
    let position = reader.position_of(lsn)?;
    Ok(Start { reader, position, last, gap_from: None })
}

fn resume(log: &Log, held: Option<Lsn>, mark: Mark, rights: Rights) -> Result<Start, SendError> {
    let sent = mark.position.lsn;
    let error = match log.reader_at_next(mark.position) {
        Ok(reader) if is_last(log, &mark) => {
            let position = reader.position_of(sent)?;
            return Ok(Start { reader, position, last: mark.last, gap_from: None });
        }
        Ok(_) if rights.take_over => return begin_at(log, sent, mark.last),
        Ok(_) => return Err(SendError::Diverged(format!("the record before {sent} is another"))),
        Err(error) => error,
    };
    match error.kind() {
        ErrorKind::Trimmed if rights.may_lose || rights.take_over => {
            // The old position: what is missing is said again after a death.
            let start = begin_at(log, log.begin(), mark.last)?;
            Ok(Start { position: mark.position, gap_from: Some(sent), ..start })
        }
        ErrorKind::Trimmed => Err(SendError::Overrun { from: sent, begin: log.begin() }),
        ErrorKind::Rewound | ErrorKind::OutOfRange if rights.take_over => {
            let differs = error.lsn().filter(|_| error.kind() == ErrorKind::Rewound);
            let lsn = differs.or(held).unwrap_or(log.begin()).max(log.begin());
            begin_at(log, lsn, mark.last)
        }
        ErrorKind::Rewound | ErrorKind::OutOfRange | ErrorKind::OtherLog => {
            Err(SendError::Diverged(error.to_string()))
        }
        _ => Err(error.into()),
    }
}

/// Whether the record that was sent last is in the log, as far as can be told.
fn is_last(log: &Log, mark: &Mark) -> bool {
    let Some(last) = mark.last.filter(|last| last.lsn >= log.begin()) else { return true };
    let end = mark.position.lsn;
    match log.read_at(last.lsn) {
        // What was sent may be the first part of a line.
        Ok(record) if log.layout() == Layout::Text => {
            let len =
                usize::try_from(end.get().saturating_sub(last.lsn.get())).unwrap_or(usize::MAX);
            let sent = &record.payload[..len.min(record.payload.len())];
            Last::of(last.lsn, sent) == last
        }
        Ok(record) => record.next_lsn == end && Last::of(last.lsn, &record.payload) == last,
        Err(error) => error.kind() != ErrorKind::OutOfRange,
    }
}
