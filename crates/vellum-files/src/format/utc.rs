//! Moments of the calendar, and as they are in the names of files: `20261122T015723Z`.

const DAY_SECONDS: u64 = 86_400;
/// 9999-12-31 23:59:59, the last moment that four digits of a year can tell.
const LAST_SECOND: u64 = 253_402_300_799;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: u64 = 719_468;
/// Days in 400, 100 and 4 years of the calendar; the last of those ends with a leap day.
const DAYS_OF_400_YEARS: u64 = 146_097;
const DAYS_OF_100_YEARS: u64 = 36_524;
const DAYS_OF_4_YEARS: u64 = 1_461;

/// A moment in UTC, to the second, as people tell it.
#[derive(Debug)]
pub struct Moment {
    /// Year, month and day of the month.
    pub date: (u64, u64, u64),
    /// Hour, minute and second.
    pub time: (u64, u64, u64),
}

impl Moment {
    /// The moment so many seconds after 1970-01-01 00:00:00; later than the year 9999, its end.
    pub fn of(seconds: u64) -> Moment {
        let seconds = seconds.min(LAST_SECOND);
        let of_day = seconds % DAY_SECONDS;
        Moment {
            date: date_of(seconds / DAY_SECONDS),
            time: (of_day / 3600, of_day / 60 % 60, of_day % 60),
        }
    }
}

/// A moment in seconds since 1970, as it is in names.
pub fn stamp(seconds: u64) -> String {
    let Moment { date: (year, month, day), time: (hour, minute, second) } = Moment::of(seconds);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// A moment in seconds since 1970, for people: `2026-11-22T01:57:23Z`.
pub fn readable(seconds: u64) -> String {
    let Moment { date: (year, month, day), time: (hour, minute, second) } = Moment::of(seconds);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The moment that [`stamp`] tells so, in seconds since 1970.
pub(crate) fn parse_stamp(text: &str) -> Option<u64> {
    if text.len() != 16 || !text.is_ascii() {
        return None;
    }
    let number = |from: usize, to: usize| text[from..to].parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let seconds = days_to(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    // There is one way to write a moment: this refuses a 30th of February and a 25th hour.
    (stamp(seconds) == text).then_some(seconds)
}

/// Year, month and day of the month of a day since 1970.
///
/// Years are counted from March, so that the leap day is the last of its year, and the months
/// before it follow one another in the same pattern of five (153 days).
fn date_of(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + DAYS_TO_1970;
    let (era, day_of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let leap_days = day_of_era / (DAYS_OF_4_YEARS - 1) + day_of_era / (DAYS_OF_400_YEARS - 1);
    let year_of_era = (day_of_era + day_of_era / DAYS_OF_100_YEARS - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Days from 1970 to a date of then or later.
fn days_to(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_OF_400_YEARS + day_of_era - DAYS_TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_as_the_calendar_has_them() {
        // The output of `date -u -d @SECONDS +%Y%m%dT%H%M%SZ`.
        for (seconds, text) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_795_312_643, "20261122T015723Z"),
            (4_107_542_400, "21000301T000000Z"),
            (LAST_SECOND, "99991231T235959Z"),
        ] {
            assert_eq!(stamp(seconds), text);
            assert_eq!(parse_stamp(text), Some(seconds));
        }
        assert_eq!(stamp(u64::MAX), "99991231T235959Z");
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut last = String::new();
        for day in 0..LAST_SECOND / DAY_SECONDS + 1 {
            let text = stamp(day * DAY_SECONDS);
            assert!(text > last, "{text} after {last}");
            assert_eq!(parse_stamp(&text), Some(day * DAY_SECONDS));
            last = text;
        }
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "20260230T000000Z",
            "20261122T250000Z",
            "20261122T015760Z",
            "20261122 015723Z",
            "20261122T015723+",
            "19691231T235959Z",
            "+0261122T015723Z",
            "2026112éT01572Z",
        ] {
            assert_eq!(parse_stamp(text), None, "{text}");
        }
    }
}
