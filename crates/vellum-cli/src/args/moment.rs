//! How words of the command line become moments.

use std::time::SystemTime;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

const FORMS: &str = "write a time, as 2026-11-23T12:00:00Z, 2026-11-23 12:00, 2026-11-23, \
                     '10 min ago', @1795434123 or now";

/// Reads a moment. Where nothing says otherwise, it is in UTC.
pub(super) fn moment(text: &str) -> Result<SystemTime, String> {
    moment_at(text.trim(), Timestamp::now()).map(SystemTime::from).ok_or_else(|| FORMS.into())
}

fn moment_at(text: &str, now: Timestamp) -> Option<Timestamp> {
    if text == "now" {
        return Some(now);
    }
    if let Some(seconds) = text.strip_prefix('@') {
        return since_1970(seconds);
    }
    if text.ends_with("ago") {
        // By the calendar, so that there are months and years too.
        let span: Span = text.parse().ok()?;
        return Some(now.to_zoned(TimeZone::UTC).checked_add(span).ok()?.timestamp());
    }
    let in_utc = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok();
    text.parse().ok().or_else(|| Some(in_utc()?.timestamp()))
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
        let now = "2026-11-23T12:00:00.5Z".parse().unwrap();
        moment_at(text, now).map(|moment| moment.to_string())
    }

    #[test]
    fn moments_are_read_in_the_forms_that_people_write() {
        for (text, moment) in [
            ("2026-11-23T11:22:33Z", "2026-11-23T11:22:33Z"),
            ("2026-11-23T11:22:33.000000001+02:00", "2026-11-23T09:22:33.000000001Z"),
            ("2026-11-23 11:22", "2026-11-23T11:22:00Z"),
            ("2026-11-23", "2026-11-23T00:00:00Z"),
            ("now", "2026-11-23T12:00:00.5Z"),
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
            "@",
            "@-1",
            "@1.1234567890",
            "@+1",
            "yesterday",
            "10",
            "10 min",
            "ago",
            "2026-13-01",
            "25:00",
            "99999 years ago",
            "@99999999999999999999",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert!(moment("tomorrow").unwrap_err().contains("'10 min ago'"));
    }
}
