//! The loop that sends, and continues after what passes.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use vellum::{Cursor, ErrorKind, Log, Lsn};

use super::connection::{Connection, Look, Reading};
use super::session::{Local, Session};
use super::{Config, SendError, Target};

/// Between two attempts.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long [`SendOptions::once`] tries.
const ONCE_PATIENCE: Duration = Duration::from_secs(30);
/// How often another process is looked for that has ended.
const NAP: Duration = Duration::from_millis(200);
/// How often an idle log says that it is there: Kafka forgets the positions of others after days.
const CLAIM: Duration = Duration::from_secs(12 * 3600);

/// The choices of a user.
#[derive(Clone, Debug, Default)]
pub struct SendOptions {
    /// Send what is durable now, and end.
    pub once: bool,
    /// How often a transaction is made of new records.
    pub interval: Duration,
    /// Continue although another copy has sent, or something else was sent.
    pub take_over: bool,
    /// The most bytes that the log keeps because they are not sent; absent: all.
    pub max_unshipped: Option<u64>,
}

/// Events while a log is sent.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Everything that was read is in the topic.
    Sent {
        /// Bytes of the records that came there.
        bytes: u64,
        /// Bytes of the log that are not sent.
        behind: u64,
    },
    /// It is tried again.
    Trouble(&'a SendError),
}

/// Sends what is durable in a log until `stop` gets something or loses its sender.
///
/// # Errors
///
/// [`SendError`] where trying again is of no use; with [`SendOptions::once`] also a cluster that
/// cannot be used for half a minute.
pub fn send(
    log: &Log,
    target: Target,
    config: Config,
    options: &SendOptions,
    stop: &Receiver<()>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(), SendError> {
    let log_id = log.position(Lsn::ZERO)?.log;
    let connection = Connection { target, config, log: log_id };
    let owner = owner();
    let mut sender = Sender { log, connection, options, owner, stop, is_known: false };
    sender.run(tell)
}

struct Sender<'a> {
    log: &'a Log,
    connection: Connection,
    options: &'a SendOptions,
    owner: u128,
    stop: &'a Receiver<()>,
    /// Whether the topic was there.
    is_known: bool,
}

impl Sender<'_> {
    fn run(&mut self, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), SendError> {
        let (mut pause, mut failing) = (PAUSE_MIN, None);
        loop {
            let (begun, mut has_sent) = (Instant::now(), false);
            let outcome = self.attempt(&mut |event| {
                has_sent = true;
                tell(event);
            });
            let error = match outcome {
                Err(error) if self.is_passing(&error) => error,
                outcome => return outcome,
            };
            if has_sent {
                (pause, failing) = (PAUSE_MIN, None);
            }
            let since: Instant = *failing.get_or_insert(begun);
            if self.options.once && since.elapsed() >= ONCE_PATIENCE {
                return Err(error);
            }
            tell(Event::Trouble(&error));
            if self.stops_within(pause) {
                return Ok(());
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Whether the next attempt may succeed.
    fn is_passing(&self, error: &SendError) -> bool {
        match error {
            // Kafka itself ends a producer that was stopped for long.
            SendError::Fenced => {
                let look = self.connection.look(Reading::AtOnce);
                look.is_ok_and(|look| look.mark.is_some_and(|mark| mark.owner == self.owner))
            }
            // A cluster that starts does not know its topics yet.
            SendError::NoTopic(_) => self.is_known,
            error => error.is_passing(),
        }
    }

    /// One producer, from the position that Kafka has until something fails.
    fn attempt(&mut self, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), SendError> {
        let Some((cursor, seen)) = self.own()? else { return Ok(()) };
        self.is_known = true;
        let (log, owner, options) = (self.log, self.owner, self.options);
        let local = Local { log, cursor: &cursor, owner, options };
        let mut session = Session::open(&self.connection, &local, seen)?;
        let mut claimed = Instant::now();
        loop {
            self.drain(&mut session, tell)?;
            if self.options.once || self.stops_within(self.options.interval) {
                return Ok(());
            }
            if claimed.elapsed() >= CLAIM {
                session.claim()?;
                claimed = Instant::now();
            }
        }
    }

    /// Sends the durable records. Commits records that no writer commits.
    fn drain(
        &self,
        session: &mut Session<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), SendError> {
        if self.options.once {
            self.log.sync()?;
        } else if self.log.durable() < self.log.published() {
            // Up to the published end: a writer that is stopped must not end the claim.
            self.log.commit(Lsn::new(self.log.published().get() - 1))?;
        }
        let target = self.log.durable();
        loop {
            let (is_full, bytes) = session.transaction()?;
            tell(Event::Sent { bytes, behind: if is_full { session.behind()? } else { 0 } });
            let is_done = self.options.once && session.sent() >= target;
            if !is_full || is_done || self.stops_within(Duration::ZERO) {
                return Ok(());
            }
        }
    }

    /// The cursor, when no other process of this directory has it; `None` to stop.
    fn own(&self) -> Result<Option<(Cursor, Look)>, SendError> {
        let seen = self.connection.look(Reading::AtOnce)?;
        let cursor = self.log.cursor(&self.connection.target.cursor(&seen.cluster), Lsn::ZERO)?;
        while let Err(error) = cursor.own() {
            if error.kind() != ErrorKind::Busy {
                return Err(error.into());
            }
            if self.stops_within(NAP) {
                return Ok(None);
            }
        }
        // The one before may have sent since.
        Ok(Some((cursor, self.connection.look(Reading::AtOnce)?)))
    }

    fn stops_within(&self, time: Duration) -> bool {
        !matches!(self.stop.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }
}

/// A number that no other process has.
fn owner() -> u128 {
    let mut bytes = [0; 16];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    assert_eq!(got, Ok(bytes.len()), "the kernel gives sixteen random bytes at once");
    u128::from_le_bytes(bytes)
}
