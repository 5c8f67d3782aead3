//! One producer, from the position that Kafka has until something fails.
//!
//! **If the process dies here**: the next producer of this log ends the transaction that is open,
//! either way, before it reads the position.

use std::time::{Duration, Instant};

use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};
use vellum::{Cursor, CursorHold, ErrorKind, Log, Lsn, OwnedRecord, Position};

use super::SendError;
use super::connection::{Connection, Context, Look, PATIENCE, Reading};
use super::lines::Lines;
use super::mark::{Last, Mark};
use super::send::SendOptions;
use super::start::{Rights, Start, start};

/// The most of one transaction.
const TRANSACTION_BYTES: u64 = 8 << 20;
const TRANSACTION_RECORDS: u64 = 50_000;
/// How long to wait for a place in the queue of librdkafka at a time.
const NAP: Duration = Duration::from_millis(10);

/// A producer at work.
pub(super) struct Session<'a> {
    connection: &'a Connection,
    producer: BaseProducer<Context>,
    group: ConsumerGroupMetadata,
    log: &'a Log,
    cursor: &'a Cursor,
    lines: Lines,
    mark: Mark,
    gap_from: Option<Lsn>,
}

/// The part that all sessions of a process share.
pub(super) struct Local<'a> {
    pub(super) log: &'a Log,
    pub(super) cursor: &'a Cursor,
    pub(super) owner: u128,
    pub(super) options: &'a SendOptions,
}

impl Local<'_> {
    /// Where this directory keeps records from, if it has ever sent.
    fn held(&self) -> Result<Option<Lsn>, SendError> {
        let cursors = self.log.cursors()?;
        let cursor = cursors.iter().find(|cursor| cursor.name == self.cursor.name());
        Ok(cursor.filter(|cursor| cursor.hold.is_some()).map(|cursor| cursor.lsn))
    }

    /// The place to begin, by the mark that Kafka has.
    fn start(&self, mark: Option<Mark>) -> Result<Start, SendError> {
        let rights = Rights {
            take_over: self.options.take_over,
            may_lose: self.options.max_unshipped.is_some(),
        };
        start(self.log, self.held()?, mark, rights)
    }

    /// Keeps what is not sent from being removed.
    fn hold(&self, from: Lsn) -> Result<(), SendError> {
        self.cursor.skip_overrun()?;
        self.cursor.set(from)?;
        let mut hold = CursorHold::new();
        hold.max_bytes = self.options.max_unshipped;
        Ok(self.cursor.hold(hold)?)
    }
}

impl<'a> Session<'a> {
    /// Ends every other producer of this log, and begins where the position is then.
    pub(super) fn open(
        connection: &'a Connection,
        local: &Local<'a>,
        seen: Look,
    ) -> Result<Session<'a>, SendError> {
        // A copy that does not fit does not disturb the one that sends.
        local.start(seen.mark)?;
        let producer = connection.producer()?;
        let Look { mark, group, .. } = connection.look(Reading::Settled)?;
        let Start { reader, position, last, gap_from } = local.start(mark)?;
        let (from, mark) = (reader.position(), Mark { position, owner: local.owner, last });
        let mut session = Session {
            connection,
            producer,
            group,
            log: local.log,
            cursor: local.cursor,
            lines: Lines::new(local.log, reader),
            mark,
            gap_from,
        };
        session.claim()?;
        local.hold(from)?;
        Ok(session)
    }

    /// Commits the position alone: this claims the log for this sender, and Kafka keeps the
    /// position for another while.
    pub(super) fn claim(&mut self) -> Result<(), SendError> {
        self.begin()?;
        self.commit()
    }

    /// Everything before this was sent.
    pub(super) fn sent(&self) -> Lsn {
        self.mark.position.lsn
    }

    /// Bytes of the log that are not sent.
    pub(super) fn behind(&self) -> Result<u64, SendError> {
        let cursors = self.log.cursors()?;
        let own = cursors.iter().find(|cursor| cursor.name == self.cursor.name());
        Ok(own.map_or(0, |cursor| cursor.lag_bytes))
    }

    /// Sends what is durable, up to a bound, in one transaction; returns whether the bound was met,
    /// and how many bytes went.
    pub(super) fn transaction(&mut self) -> Result<(bool, u64), SendError> {
        let (mut count, mut bytes) = (0, 0);
        let is_full = loop {
            if count >= TRANSACTION_RECORDS || bytes >= TRANSACTION_BYTES {
                break true;
            }
            let Some(record) = self.lines.next().map_err(moved)? else { break false };
            if count == 0 {
                self.begin()?;
            }
            self.send(&record)?;
            bytes += record.payload.len() as u64;
            count += 1;
        };
        if count > 0 {
            self.commit()?;
            self.cursor.commit(self.sent())?;
        }
        Ok((is_full, bytes))
    }

    fn begin(&self) -> Result<(), SendError> {
        let begun = self.producer.begin_transaction();
        begun.map_err(|error| self.connection.broken(&self.producer, &error))
    }

    /// Has librdkafka send a record in this transaction.
    fn send(&mut self, record: &OwnedRecord) -> Result<(), SendError> {
        let position = self.lines.position_of(record.next_lsn)?;
        let headers = headers(record, position, self.gap_from.take());
        let target = &self.connection.target;
        let mut message = BaseRecord::<(), [u8]>::to(&target.topic)
            .partition(target.partition)
            .payload(self.lines.value(record))
            .headers(headers);
        let deadline = Instant::now() + PATIENCE;
        while let Err((error, refused)) = self.producer.send(message) {
            match error.rdkafka_error_code() {
                Some(Code::QueueFull) if Instant::now() < deadline => self.producer.poll(NAP),
                Some(Code::MessageSizeTooLarge) => {
                    return Err(SendError::TooLong(format!(" (at {})", record.lsn)));
                }
                _ => return Err(self.connection.broken(&self.producer, &error)),
            }
            message = refused;
        }
        self.mark.position = position;
        self.mark.last = Some(Last::of(record.lsn, &record.payload));
        Ok(())
    }

    /// Commits what was sent together with the position behind it.
    fn commit(&mut self) -> Result<(), SendError> {
        let (producer, connection) = (&self.producer, self.connection);
        let broken = |error: KafkaError| connection.broken(producer, &error);
        // It also runs what tells about messages that did not arrive.
        producer.flush(PATIENCE).map_err(broken)?;
        let mut offsets = TopicPartitionList::new();
        let target = &connection.target;
        let mut element = offsets.add_partition(&target.topic, target.partition);
        element.set_metadata(self.mark.to_string());
        let offset = i64::try_from(self.mark.position.lsn.get()).unwrap_or(i64::MAX);
        element.set_offset(Offset::Offset(offset)).map_err(broken)?;
        producer.send_offsets_to_transaction(&offsets, &self.group, PATIENCE).map_err(broken)?;
        producer.commit_transaction(PATIENCE).map_err(broken)
    }
}

/// Where records were removed or taken back below the reader, the next start finds out what to do.
fn moved(error: vellum::Error) -> SendError {
    match error.kind() {
        ErrorKind::Trimmed | ErrorKind::OutOfRange | ErrorKind::Rewound => SendError::Moved(error),
        _ => error.into(),
    }
}

/// The headers by which a consumer identifies the record: decimal and hexadecimal text.
fn headers(record: &OwnedRecord, next: Position, gap_from: Option<Lsn>) -> OwnedHeaders {
    let headers = OwnedHeaders::new_with_capacity(7);
    let headers = with(headers, "vellum-log", next.log);
    let headers = with(headers, "vellum-epoch", next.epoch);
    let headers = with(headers, "vellum-position", record.lsn);
    let mut headers = with(headers, "vellum-next", next.lsn);
    if let Some(from) = gap_from {
        headers = with(headers, "vellum-gap-from", from);
    }
    if let Some(time) = record.time() {
        let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        headers = with(headers, "vellum-time", since.as_nanos());
    }
    if let Some(writer) = record.writer() {
        headers = with(headers, "vellum-writer", writer);
    }
    headers
}

fn with(headers: OwnedHeaders, key: &str, value: impl std::fmt::Display) -> OwnedHeaders {
    headers.insert(Header { key, value: Some(&value.to_string()) })
}
