//! The times that lines of a text log begin with: RFC 3339, the one of Python's `logging`, the one
//! of syslog, behind a level (`INFO 2026-…`), in JSON, and the one of the logs of web servers.

use std::str;
use std::time::SystemTime;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use vellum_command::moment;

/// No time stamp ends behind these bytes: those of web servers have an address and a user before.
const STAMP_BYTES_MAX: usize = 160;
/// The first keys of JSON lines that have the time.
const KEYS: [&str; 5] = ["time", "timestamp", "@timestamp", "ts", "datetime"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads times, in the local time of `now` where they have no offset.
pub(super) struct Stamps {
    now: Zoned,
}

impl Stamps {
    /// For lines that were written up to now.
    pub(super) fn local() -> Stamps {
        Stamps { now: moment::now().unwrap_or_else(|_| Zoned::now()) }
    }

    /// The time that the line begins with, if it can be read.
    pub(super) fn read(&self, line: &[u8]) -> Option<SystemTime> {
        let start = &line[..line.len().min(STAMP_BYTES_MAX)];
        let start = match str::from_utf8(start) {
            Ok(text) => text,
            // Behind the stamp there may be anything.
            Err(error) => str::from_utf8(&start[..error.valid_up_to()]).ok()?,
        };
        let time = match start.as_bytes().first()? {
            b'0'..=b'9' => self.of_calendar(start),
            b'A'..=b'Z' => self.of_syslog(start).or_else(|| self.behind_level(start)),
            b'[' => self.of_calendar(&start[1..]),
            b'{' => self.of_json(start),
            _ => None,
        };
        let time = time.or_else(|| of_web_server(start));
        time.map(SystemTime::from)
    }

    /// `2026-11-27T10:00:00.123Z`, `2026-11-27 10:00:00,123`.
    fn of_calendar(&self, text: &str) -> Option<Timestamp> {
        let len = "2026-11-27T10:00:00".len();
        let is_fraction = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',');
        let rest = text.get(len..)?;
        let fraction = rest.bytes().take_while(is_fraction).count();
        let time: DateTime = text[..len + fraction].replace(',', ".").parse().ok()?;
        let zone = &rest[fraction..];
        let is_zone =
            |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'Z' | b'+' | b'-' | b':');
        let zone = &zone[..zone.bytes().take_while(is_zone).count()];
        match zone {
            "" => self.in_zone(time),
            _ => format!("{time}{zone}").parse().ok(),
        }
    }

    /// `Nov 27 10:00:00`: of the last year, where this year's would be more than a day ahead.
    fn of_syslog(&self, text: &str) -> Option<Timestamp> {
        let text = text.get(.."Nov 27 10:00:00".len())?;
        let (month, rest) = text.split_once(' ')?;
        let month = MONTHS.iter().position(|name| *name == month)? + 1;
        let (day, time) = rest.trim_start().split_once(' ')?;
        let year = self.now.year();
        let in_year = |year: i16| -> Option<Timestamp> {
            let day: u8 = day.parse().ok()?;
            let text = format!("{year:04}-{month:02}-{day:02}T{time}");
            self.in_zone(text.parse().ok()?)
        };
        let latest = self.now.checked_add(1.day()).ok()?.timestamp();
        in_year(year).filter(|time| *time <= latest).or_else(|| in_year(year - 1))
    }

    /// `INFO 2026-11-27 10:00:00`, `WARN: 2026-11-27T10:00:00Z`.
    fn behind_level(&self, text: &str) -> Option<Timestamp> {
        let (level, rest) = text.split_once(' ')?;
        let is_level = level.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b':');
        if is_level { self.of_calendar(rest.trim_start().trim_start_matches('[')) } else { None }
    }

    /// `{"time":"2026-11-27T10:00:00Z", …`.
    fn of_json(&self, text: &str) -> Option<Timestamp> {
        let rest = text[1..].trim_start().strip_prefix('"')?;
        let (key, rest) = rest.split_once('"')?;
        let value = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        if KEYS.contains(&key) { self.of_calendar(value) } else { None }
    }

    fn in_zone(&self, time: DateTime) -> Option<Timestamp> {
        let zone: TimeZone = self.now.time_zone().clone();
        Some(time.to_zoned(zone).ok()?.timestamp())
    }
}

/// `127.0.0.1 - - [27/Nov/2026:10:00:00 +0000] "GET`: the first text in brackets.
fn of_web_server(text: &str) -> Option<Timestamp> {
    let (_, stamp) = text.split_once('[')?;
    let (stamp, _) = stamp.split_once(']')?;
    let (day, rest) = stamp.split_once('/')?;
    let (month, rest) = rest.split_once('/')?;
    let (year, rest) = rest.split_once(':')?;
    let (time, zone) = rest.split_once(' ')?;
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    format!("{year}-{month:02}-{day}T{time}{zone}").parse().ok()
}

#[cfg(test)]
mod tests {
    use jiff::tz;

    use super::*;

    #[test]
    fn the_times_of_common_formats_are_read_and_no_others() {
        let now: Timestamp = "2026-11-27T12:00:00Z".parse().unwrap();
        let stamps = Stamps { now: now.to_zoned(TimeZone::fixed(tz::offset(1))) };
        let read = |line: &str| {
            let time = stamps.read(line.as_bytes())?;
            Some(Timestamp::try_from(time).unwrap().to_string())
        };
        for (line, time) in [
            ("2026-11-27T10:00:00Z INFO x", "2026-11-27T10:00:00Z"),
            ("2026-11-27T10:00:00.25+02:00 x", "2026-11-27T08:00:00.25Z"),
            ("2026-11-27 10:00:00,123 - root - x", "2026-11-27T09:00:00.123Z"),
            ("[2026-11-27 10:00:00] x", "2026-11-27T09:00:00Z"),
            ("2026-11-27 10:00:00", "2026-11-27T09:00:00Z"),
            ("Nov 27 10:00:00 host x", "2026-11-27T09:00:00Z"),
            ("Nov  7 10:00:00 host x", "2026-11-07T09:00:00Z"),
            ("INFO 2026-11-27 10:00:00,5 x", "2026-11-27T09:00:00.5Z"),
            ("ERROR: [2026-11-27T10:00:00Z] x", "2026-11-27T10:00:00Z"),
            ("{\"time\":\"2026-11-27T10:00:00Z\",\"level\":3}", "2026-11-27T10:00:00Z"),
            ("{ \"ts\": \"2026-11-27T10:00:00+01:00\" }", "2026-11-27T09:00:00Z"),
            ("::1 - me [27/Nov/2026:10:00:00 +0200] \"GET /", "2026-11-27T08:00:00Z"),
            ("[27/Nov/2026:10:00:00 +0000] x", "2026-11-27T10:00:00Z"),
            ("Dec 24 10:00:00 host x", "2025-12-24T09:00:00Z"),
        ] {
            assert_eq!(read(line).as_deref(), Some(time), "{line}");
        }
        for line in
            ["", "x", "Traceback (most recent call last):", "2026-11-27", "2026-13-27 10:00:00"]
        {
            assert_eq!(read(line), None, "{line}");
        }
        assert_eq!(read("  File \"2026-11-27 10:00:00\""), None);
    }
}
