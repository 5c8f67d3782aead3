//! Which log a position belongs to, and since when: [`LogId`], [`Position`], and the effect of a
//! [`Recovery`] on positions.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use crate::{Error, ErrorKind, Lsn};

/// The identity of a log: 128 random bits, made with the log and never changed.
///
/// Its text form is 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogId([u8; 16]);

impl LogId {
    /// The id with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> LogId {
        LogId(bytes)
    }

    /// Its bytes, in the order of the text form.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for LogId {
    type Err = Error;

    /// Reads 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<LogId, Error> {
        let is_id = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_id);
        number.map(|number| LogId(number.to_be_bytes())).ok_or_else(|| {
            let message =
                format!("{text:?} is not the id of a log: that has 32 hexadecimal digits");
            Error::new(ErrorKind::InvalidOption, message)
        })
    }
}

/// The writer of a record, in a log with
/// [envelopes](../vellum/struct.Options.html#method.envelope): a process, from when it opened the
/// log until it closes it. A forked child is another.
///
/// The low 32 bits are the id of the process, as it was in its own PID namespace. The high ones
/// are random and drawn when it first appends, so that two processes with the same id, in two
/// containers or one after the other, differ: of two such, all but one pair in 2^32.
///
/// Its text form is the random part in 8 hexadecimal digits and the process, `5f3a9c0e-1234`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriterId(u64);

impl WriterId {
    /// The id with this number.
    pub const fn new(number: u64) -> WriterId {
        WriterId(number)
    }

    /// The id as a number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The process, which may have ended long ago.
    pub const fn pid(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for WriterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}", self.0 >> 32, self.pid())
    }
}

/// A position that can be stored outside of the log: it says which log it is of, and from which
/// epoch.
///
/// An [`Lsn`] alone means something else in another log, and may mean something else after a power
/// cut or a [truncation](../vellum/struct.Log.html#method.truncate). A `Position` never does:
/// [`Log::reader_at`](../vellum/struct.Log.html#method.reader_at) gives the same record or an
/// error.
///
/// Its text form is one line, `id/epoch/lsn`.
///
/// ```
/// # use vellum_files as vellum;
/// let text = "00112233445566778899aabbccddeeff/3/4096";
/// let position: vellum::Position = text.parse()?;
/// assert_eq!((position.epoch, position.lsn.get()), (3, 4096));
/// assert_eq!(position.to_string(), text);
/// # Ok::<(), vellum::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// The log.
    pub log: LogId,
    /// The epoch of the log in which the position was taken.
    pub epoch: u64,
    /// The position in that log.
    pub lsn: Lsn,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.log, self.epoch, self.lsn)
    }
}

impl FromStr for Position {
    type Err = Error;

    /// Reads the text form; blanks and a newline around it do not matter.
    fn from_str(text: &str) -> Result<Position, Error> {
        let parts: Vec<&str> = text.trim().split('/').collect();
        let position = match parts[..] {
            [log, epoch, lsn] => log.parse().ok().zip(number(epoch)).zip(number(lsn)),
            _ => None,
        };
        position.map(|((log, epoch), lsn)| Position { log, epoch, lsn: Lsn::new(lsn) }).ok_or_else(
            || {
                let message = format!(
                    "{text:?} is not a stored position: that is the log's id, the epoch and the \
                     LSN, with a slash between them"
                );
                Error::new(ErrorKind::InvalidOption, message)
            },
        )
    }
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The result of opening a log when the shared words could not be believed: after a power cut,
/// without its control file, or in a copy.
///
/// [`Log::recovery`](../../vellum/struct.Log.html#method.recovery) has it in the process that
/// recovered the log,
/// [`Stat::last_recovery`](../../vellum/stat/struct.Stat.html#structfield.last_recovery) in all
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// End of the recovered records.
    pub end: Lsn,
    /// End of the records that were known to be durable before. A text log does not keep that, so
    /// there it is where the log begins.
    pub durable: Lsn,
    /// Bytes that were cut, because a crash had torn them: from `end` to the end of the last whole
    /// record that stood behind it. Of a text log nothing is cut.
    pub cut_bytes: u64,
    /// Bytes that were filled in before `end`: with pads (framed), or with marker lines and the
    /// newline of a torn line (text).
    pub padded_bytes: u64,
    /// From here on positions may hold something else than before. At most `end`.
    pub from: Lsn,
    /// Why the log was recovered.
    pub reason: RecoveryReason,
    /// When, to the second.
    pub time: SystemTime,
}

/// Why a log was recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum RecoveryReason {
    /// The boot id is another: the machine has started again, or a container has an id of its own.
    Reboot = 1,
    /// The control file is not the one that was written: the log was copied or restored, or the
    /// filesystem has changed the numbers of its files.
    Moved = 2,
    /// The control file was gone.
    ControlLost = 3,
    /// The control file does not agree with the segments.
    Disagreement = 4,
    /// A write or sync of the device had failed.
    Poisoned = 5,
    /// A truncation had not been finished.
    Truncation = 6,
    /// The stage of a staged log was gone.
    StageLost = 7,
}

impl RecoveryReason {
    /// A word for programs: `reboot`, `moved`, `control_lost`, `disagreement`, `poisoned`,
    /// `truncation` or `stage_lost`.
    pub fn name(self) -> &'static str {
        match self {
            RecoveryReason::Reboot => "reboot",
            RecoveryReason::Moved => "moved",
            RecoveryReason::ControlLost => "control_lost",
            RecoveryReason::Disagreement => "disagreement",
            RecoveryReason::Poisoned => "poisoned",
            RecoveryReason::Truncation => "truncation",
            RecoveryReason::StageLost => "stage_lost",
        }
    }

    /// The reason with this number.
    #[doc(hidden)]
    pub fn of_number(number: u32) -> Option<RecoveryReason> {
        REASONS.into_iter().find(|reason| *reason as u32 == number)
    }
}

const REASONS: [RecoveryReason; 7] = [
    RecoveryReason::Reboot,
    RecoveryReason::Moved,
    RecoveryReason::ControlLost,
    RecoveryReason::Disagreement,
    RecoveryReason::Poisoned,
    RecoveryReason::Truncation,
    RecoveryReason::StageLost,
];

impl fmt::Display for RecoveryReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            RecoveryReason::Reboot => {
                "the machine had started again, or a container has a boot id of its own"
            }
            RecoveryReason::Moved => {
                "the log had been copied or restored, or the filesystem had renumbered its files"
            }
            RecoveryReason::ControlLost => "the control file was gone",
            RecoveryReason::Disagreement => "the control file did not agree with the segments",
            RecoveryReason::Poisoned => "a write or sync had failed",
            RecoveryReason::Truncation => "a truncation had not been finished",
            RecoveryReason::StageLost => "the stage was gone",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_positions_come_back_from_their_text_and_nothing_else_does() {
        let position =
            Position { log: LogId([7; 16]), epoch: u64::MAX, lsn: Lsn::new(123_456_789) };
        let text = position.to_string();
        assert_eq!(text.parse::<Position>().unwrap(), position);
        assert_eq!(format!("{text}\n").parse::<Position>().unwrap(), position);
        for text in
            ["", "1/2/3", "+7/1/2", &text[1..], &text.replace('/', "/+"), &format!("{text}/")]
        {
            let error = text.parse::<Position>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOption, "{text}");
        }
    }
}
