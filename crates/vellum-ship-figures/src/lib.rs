#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use std::time::{Duration, SystemTime};

use vellum::{Log, Result};
use vellum_sys::checksum;

/// The first bytes, which name the version.
const HEAD: [u8; 8] = *b"vlmshpf1";
/// Numbers that are stored.
const COUNT: usize = 7;
/// Bytes of the file: the head, the numbers, and their check.
const LEN: usize = HEAD.len() + 8 * COUNT + 8;
/// How often to read again while the shipper may be in the middle of a write.
const READS: usize = 10;

/// The figures of the process that ships a log, counted since the log was shipped first.
///
/// A copy of the log has those of the original until it is shipped itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// Number of the generation that is shipped to.
    pub generation: u64,
    /// When something was shipped last.
    pub shipped_at: Option<SystemTime>,
    /// Requests that make an object.
    pub puts: u64,
    /// All other requests.
    pub gets: u64,
    /// Bytes of log that were shipped.
    pub log_bytes: u64,
    /// Bytes that were sent for them.
    pub sent_bytes: u64,
    /// Requests that were made once more.
    pub retries: u64,
}

impl Figures {
    /// The figures of a log; zeros where no process has shipped it.
    ///
    /// # Errors
    ///
    /// As for [`Ship::figures`](vellum::ship::Ship::figures).
    pub fn of(log: &Log) -> Result<Figures> {
        Figures::read(|| log.ship().figures())
    }

    /// The figures in the bytes that `read` gets: it reads again where they are half written.
    /// Zeros where there are none, or those of another version.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn read(mut read: impl FnMut() -> Result<Option<Vec<u8>>>) -> Result<Figures> {
        for _ in 0..READS {
            let Some(bytes) = read()? else { break };
            if let Some(figures) = Figures::from_bytes(&bytes) {
                return Ok(figures);
            }
        }
        Ok(Figures::default())
    }

    /// The bytes of the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let since = self.shipped_at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let numbers = [
            self.generation,
            since.map_or(0, |since| since.as_secs()),
            self.puts,
            self.gets,
            self.log_bytes,
            self.sent_bytes,
            self.retries,
        ];
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        let mut bytes: Vec<u8> = HEAD.into_iter().chain(numbers).collect();
        bytes.extend(u64::from(checksum::crc32c(&bytes)).to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Figures> {
        let (content, check) = bytes.split_at_checked(LEN - 8)?;
        if check != u64::from(checksum::crc32c(content)).to_le_bytes() {
            return None;
        }
        let mut numbers = content
            .strip_prefix(&HEAD)?
            .chunks_exact(8)
            .map(|number| u64::from_le_bytes(number.try_into().expect("a chunk has eight bytes")));
        let mut next = || numbers.next();
        let (generation, seconds) = (next()?, next()?);
        let shipped_at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        Some(Figures {
            generation,
            shipped_at: shipped_at.filter(|_| seconds != 0),
            puts: next()?,
            gets: next()?,
            log_bytes: next()?,
            sent_bytes: next()?,
            retries: next()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use vellum::Options;

    use super::*;

    fn some() -> Figures {
        let shipped_at = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_312_643));
        let (generation, puts, gets, retries) = (7, 3, 2, 1);
        Figures { generation, shipped_at, puts, gets, log_bytes: 1 << 40, sent_bytes: 9, retries }
    }

    #[test]
    fn figures_come_back_as_they_were_stored() {
        for figures in [some(), Figures::default()] {
            assert_eq!(figures.to_bytes().len(), LEN);
            assert_eq!(Figures::from_bytes(&figures.to_bytes()), Some(figures));
        }
    }

    #[test]
    fn a_file_that_is_half_written_is_read_again() {
        let (old, new) = (Figures::default().to_bytes(), some().to_bytes());
        let torn = [&new[..20], &old[20..]].concat();
        let mut answers = [torn, new].into_iter();
        assert_eq!(Figures::read(|| Ok(answers.next())).unwrap(), some());
        assert_eq!(Figures::read(|| Ok(Some(b"other".to_vec()))).unwrap(), Figures::default());
    }

    #[test]
    fn every_handle_reads_the_figures_of_the_shipper() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = Options::events().open(&path).unwrap();
        assert_eq!(Figures::of(&log).unwrap(), Figures::default());
        let shipper = log.ship().elect().unwrap().unwrap();
        shipper.set_figures(&Figures::default().to_bytes()).unwrap();
        shipper.set_figures(&some().to_bytes()).unwrap();
        let reader = Options::default().read_only(true).open(&path).unwrap();
        assert_eq!(Figures::of(&reader).unwrap(), some());
        assert_eq!(Figures::read(|| shipper.figures()).unwrap(), some());
    }
}
