//! How much is appended: processes × records × bytes.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::record;

/// One row of the published tables: so many processes append so many records of so many bytes.
///
/// Written `4x100000x128`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How many processes append at once.
    pub processes: u32,
    /// How many records each of them appends.
    pub records: u64,
    /// The length of each record.
    pub bytes: usize,
}

/// More processes than this are refused: no such machine is meant, and it would be a fork bomb.
const PROCESSES_MAX: u32 = 1024;

/// A record has to be sent in one call; Linux takes at most 0x7fff_f000 bytes in one.
const BYTES_MAX: usize = 1 << 30;

impl Setting {
    /// The settings that the predecessor's tables were made with.
    pub const PUBLISHED: [Setting; 3] =
        [Setting::new(4, 100_000, 128), Setting::new(4, 100_000, 1), Setting::new(4, 10_000, 4095)];

    /// `processes` × `records` × `bytes`.
    pub const fn new(processes: u32, records: u64, bytes: usize) -> Setting {
        Setting { processes, records, bytes }
    }

    /// The records of all processes.
    pub fn total_records(&self) -> u64 {
        u64::from(self.processes) * self.records
    }

    /// The bytes of all records. Saturates, so that an absurd setting is refused and not wrapped.
    pub fn total_bytes(&self) -> u64 {
        self.total_records().saturating_mul(self.bytes as u64)
    }

    /// Refuses a setting that can't be run or, above all, couldn't be verified.
    pub(crate) fn check(&self) -> Result<()> {
        let Setting { processes, records, bytes } = *self;
        if processes == 0 || records == 0 || bytes == 0 {
            return Err(Error::invalid(format!(
                "{self}: processes, records and bytes must each be at least 1"
            )));
        }
        let processes_max = if bytes < record::STAMPED_BYTES_MIN {
            record::TAG_COUNT.min(PROCESSES_MAX)
        } else {
            PROCESSES_MAX
        };
        if processes > processes_max {
            return Err(Error::invalid(format!(
                "{self}: at most {processes_max} processes can be told apart with records of \
                 {bytes} bytes"
            )));
        }
        if records > record::RECORDS_MAX || bytes > BYTES_MAX {
            return Err(Error::invalid(format!(
                "{self}: at most {} records of at most {BYTES_MAX} bytes",
                record::RECORDS_MAX
            )));
        }
        Ok(())
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.processes, self.records, self.bytes)
    }
}

impl FromStr for Setting {
    type Err = Error;

    fn from_str(text: &str) -> Result<Setting> {
        let wrong = || {
            Error::invalid(format!(
                "\"{text}\" is not a setting: write PROCESSESxRECORDSxBYTES, as in 4x100000x128"
            ))
        };
        let mut parts = text.split('x');
        let mut part = || parts.next().ok_or_else(wrong);
        let processes = part()?.parse().map_err(|_| wrong())?;
        let records = part()?.parse().map_err(|_| wrong())?;
        let bytes = part()?.parse().map_err(|_| wrong())?;
        if parts.next().is_some() {
            return Err(wrong());
        }
        let setting = Setting { processes, records, bytes };
        setting.check()?;
        Ok(setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_reads_what_it_writes() {
        for setting in Setting::PUBLISHED {
            assert_eq!(setting.to_string().parse::<Setting>().unwrap(), setting);
        }
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for text in ["", "4", "4x1", "4x1x1x1", "0x1x1", "1x0x1", "1x1x0", "axbxc", "-1x1x1"] {
            assert!(text.parse::<Setting>().is_err(), "{text}");
        }
    }

    #[test]
    fn processes_that_a_tiny_record_could_not_name_are_refused() {
        assert!(Setting::new(record::TAG_COUNT, 1, 1).check().is_ok());
        assert!(Setting::new(record::TAG_COUNT + 1, 1, 1).check().is_err());
        assert!(Setting::new(record::TAG_COUNT + 1, 1, 16).check().is_ok());
    }
}
