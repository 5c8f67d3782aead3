//! Where to begin, from the position in Kafka and the begin and end of the log.

use vellum::{ErrorKind, Layout, Log, Lsn, Position, Reader};

use super::SendError;
use super::mark::{Last, Mark};

/// The permissions of the user.
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
    /// The position that Kafka is told at the beginning.
    pub(super) position: Position,
    /// The last record that was sent.
    pub(super) last: Option<Last>,
    /// From where on records were removed before they were sent, up to the reader.
    pub(super) gap_from: Option<Lsn>,
}

/// The place to begin. `held` is the position from which this directory keeps records; `mark` is
/// the one that Kafka has.
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
            // The old position: the gap is reported again after a death.
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
        // A line that is longer than a segment is read in parts.
        Ok(record) if log.layout() == Layout::Text && record.next_lsn < end => true,
        Ok(record) => record.next_lsn == end && Last::of(last.lsn, &record.payload) == last,
        Err(error) => error.kind() != ErrorKind::OutOfRange,
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    struct Place {
        log: Log,
        _dir: tempfile::TempDir,
    }

    fn place(layout: Layout) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let log = vellum::internal::options(layout).open(dir.path().join("log")).unwrap();
        for line in ["one\n", "two\n", "three\n"] {
            log.append(line.as_bytes()).unwrap();
        }
        log.sync().unwrap();
        Place { log, _dir: dir }
    }

    /// The mark of Kafka when everything up to the second record was sent.
    fn mark(log: &Log, payload: &[u8]) -> Mark {
        let mut reader = log.reader(log.begin()).unwrap();
        reader.next().unwrap();
        let record = reader.next().unwrap().unwrap().into_owned();
        let position = log.position(record.next_lsn).unwrap();
        Mark { position, owner: 1, last: Some(Last::of(record.lsn, payload)) }
    }

    const NONE: Rights = Rights { take_over: false, may_lose: false };
    const ALL: Rights = Rights { take_over: true, may_lose: false };

    #[test]
    fn the_position_of_kafka_stands_above_the_cursor() {
        for layout in [Layout::Framed, Layout::Text] {
            let Place { log, _dir } = place(layout);
            let sent = mark(&log, b"two\n");
            let begun = start(&log, Some(log.begin()), Some(sent.clone()), NONE).ok().unwrap();
            assert_eq!(begun.reader.position(), sent.position.lsn);
        }
    }

    /// As in a machine that was copied while it ran: log id and epoch are the same.
    #[test]
    fn another_record_before_the_position_is_another_log() {
        for layout in [Layout::Framed, Layout::Text] {
            let Place { log, _dir } = place(layout);
            let other = mark(&log, b"2wo\n");
            let refused = start(&log, Some(log.begin()), Some(other.clone()), NONE);
            assert!(matches!(refused, Err(SendError::Diverged(_))));
            let begun = start(&log, None, Some(other.clone()), ALL).ok().unwrap();
            assert_eq!(begun.reader.position(), other.position.lsn);
        }
    }

    #[test]
    fn what_was_held_and_has_no_position_was_lost() {
        let Place { log, _dir } = place(Layout::Framed);
        let held = mark(&log, b"two\n").position.lsn;
        assert!(matches!(start(&log, Some(held), None, NONE), Err(SendError::Gone(_))));
        let begun = start(&log, Some(held), None, ALL).ok().unwrap();
        assert_eq!(begun.reader.position(), held);
        assert_eq!(start(&log, None, None, NONE).ok().unwrap().reader.position(), log.begin());
    }

    #[test]
    fn a_directory_that_never_sent_asks() {
        let Place { log, _dir } = place(Layout::Framed);
        let sent = mark(&log, b"two\n");
        let refused = start(&log, None, Some(sent.clone()), NONE);
        assert!(matches!(refused, Err(SendError::NotOwner)));
        // A death before anything was sent is no sending.
        let claimed = Some(Mark { last: None, ..sent });
        assert!(start(&log, None, claimed, NONE).is_ok());
    }

    #[test]
    fn a_position_behind_the_end_is_refused() {
        let Place { log, _dir } = place(Layout::Framed);
        let mut sent = mark(&log, b"two\n");
        sent.position.lsn = Lsn::new(log.published().get() + 4096);
        let refused = start(&log, Some(log.begin()), Some(sent), NONE);
        assert!(matches!(refused, Err(SendError::Diverged(_))));
    }
}
