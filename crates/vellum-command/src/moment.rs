//! Times as people type them, and as they are printed.

use std::time::SystemTime;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, ToSpan, Zoned};

const FORMS: &str = "write a time, as 10:00, 1h (ago), yesterday, 2026-11-23, '2026-11-23 12:00', \
                     2026-11-23T12:00:00Z, @1795434123 or now";

/// Reads a moment: in local time, unless an offset or `Z` follows. A span is one that has passed.
pub fn moment(text: &str) -> Result<SystemTime, String> {
    moment_at(text.trim(), &now()?).map(SystemTime::from).ok_or_else(|| FORMS.into())
}

/// This moment in local time.
pub fn now() -> Result<Zoned, String> {
    let zone = std::env::var("TZ").unwrap_or_default();
    Ok(in_zone(&zone)?.map_or_else(Zoned::now, |zone| Timestamp::now().to_zoned(zone)))
}

/// The zone that `TZ` names in a way of the C library alone.
fn in_zone(name: &str) -> Result<Option<TimeZone>, String> {
    let name = name.strip_prefix(':').unwrap_or(name);
    if let Some(same) = name.strip_prefix("right/") {
        return Err(format!("TZ={name} counts leap seconds, which no log does; set TZ={same}"));
    }
    let Some(same) = name.strip_prefix("posix/") else { return Ok(None) };
    let unknown = |_| format!("TZ={name}: no time zone has that name; set one as Europe/Berlin");
    TimeZone::get(same).map(Some).map_err(unknown)
}

/// A time in nanoseconds since 1970, in UTC and to the millisecond.
pub fn text_of_nanos(nanoseconds: u64) -> String {
    let time = Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::MAX);
    format!("{time:.3}")
}

fn moment_at(text: &str, now: &Zoned) -> Option<Timestamp> {
    let local = |time: DateTime| Some(time.to_zoned(now.time_zone().clone()).ok()?.timestamp());
    let midnight = |date: Date| local(date.at(0, 0, 0, 0));
    match text {
        "now" => return Some(now.timestamp()),
        "today" => return midnight(now.date()),
        "yesterday" => return midnight(now.date().checked_sub(1.day()).ok()?),
        _ => {}
    }
    if let Some(seconds) = text.strip_prefix('@') {
        return since_1970(seconds);
    }
    if let Ok(moment) = text.parse() {
        return Some(moment);
    }
    // A date would pass for a time too, at midnight.
    let is_time = text.contains(':') && !text.contains('-');
    if let Some(time) = text.parse::<Time>().ok().filter(|_| is_time) {
        return local(now.date().to_datetime(time));
    }
    if let Ok(time) = text.parse::<DateTime>() {
        return local(time);
    }
    // By the calendar, so that there are months and years too.
    let span = text.strip_suffix("ago").unwrap_or(text).trim_end();
    let span: Span = span.strip_prefix('-').unwrap_or(span).parse().ok()?;
    if span.is_negative() {
        return None;
    }
    Some(now.checked_sub(span).ok()?.timestamp())
}

/// Seconds since 1970 with up to nine digits behind the point.
fn since_1970(text: &str) -> Option<Timestamp> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if fraction.len() > 9 || !is_number(seconds) || !is_number(fraction) {
        return None;
    }
    let nanos = format!("{fraction:0<9}").parse().ok()?;
    Timestamp::from_duration(SignedDuration::new(seconds.parse().ok()?, nanos)).ok()
}

#[cfg(test)]
mod tests {

    use super::*;

    fn read(text: &str) -> Option<String> {
        let now: Timestamp = "2026-11-23T12:00:00.5Z".parse().unwrap();
        let east = TimeZone::fixed(jiff::tz::offset(1));
        moment_at(text, &now.to_zoned(east)).map(|moment| moment.to_string())
    }

    #[test]
    fn moments_are_read_in_the_forms_that_people_write() {
        for (text, moment) in [
            ("2026-11-23T11:22:33Z", "2026-11-23T11:22:33Z"),
            ("2026-11-23T11:22:33.000000001+02:00", "2026-11-23T09:22:33.000000001Z"),
            ("2026-11-23 11:22", "2026-11-23T10:22:00Z"),
            ("2026-11-23", "2026-11-22T23:00:00Z"),
            ("10:00", "2026-11-23T09:00:00Z"),
            ("10:00:01", "2026-11-23T09:00:01Z"),
            ("now", "2026-11-23T12:00:00.5Z"),
            ("today", "2026-11-22T23:00:00Z"),
            ("yesterday", "2026-11-21T23:00:00Z"),
            ("1h", "2026-11-23T11:00:00.5Z"),
            ("-1h", "2026-11-23T11:00:00.5Z"),
            ("10 min ago", "2026-11-23T11:50:00.5Z"),
            ("2h ago", "2026-11-23T10:00:00.5Z"),
            ("1d 2h ago", "2026-11-22T10:00:00.5Z"),
            ("3 weeks ago", "2026-11-02T12:00:00.5Z"),
            ("1 month ago", "2026-10-23T12:00:00.5Z"),
            ("@0", "1970-01-01T00:00:00Z"),
            ("@1795434123.25", "2026-11-23T11:42:03.25Z"),
        ] {
            assert_eq!(read(text).as_deref(), Some(moment), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_refused_with_those_that_are() {
        for text in [
            "",
            "-",
            "@",
            "@-1",
            "@1.1234567890",
            "@+1",
            "10",
            "ago",
            "--1h",
            "2026-13-01",
            "25:00",
            "99999 years ago",
            "@99999999999999999999",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert!(moment("tomorrow").unwrap_err().contains("yesterday"));
    }

    #[test]
    fn nanoseconds_are_told_as_a_time() {
        assert_eq!(text_of_nanos(1_500_000_000), "1970-01-01T00:00:01.500Z");
    }

    #[test]
    fn zones_of_the_c_library_are_those_of_their_names_or_refused() {
        assert_eq!(
            in_zone("posix/Europe/Berlin").unwrap().unwrap().iana_name(),
            Some("Europe/Berlin")
        );
        assert_eq!(in_zone("Europe/Berlin"), Ok(None));
        assert!(in_zone("posix/Nowhere").unwrap_err().contains("posix/Nowhere"));
        assert!(in_zone(":right/Europe/Berlin").unwrap_err().contains("set TZ=Europe/Berlin"));
    }
}
