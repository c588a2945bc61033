//! Days as ISO 8601 writes them, and nothing else: other ways of writing them are ambiguous.

/// The days since 1970-01-01 of `2024-05-31`, `2024-05-31T12:30:05Z` or `2024-05-31 12:30+02:00`.
pub(super) fn days(text: &str) -> Option<f64> {
    let (date, rest) = text.split_at_checked(10)?;
    let mut parts = date.splitn(3, '-');
    let mut part = |digits| whole(parts.next()?, digits);
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let whole_days = of_civil(year, month, day) as f64;
    let Some(time) = rest.strip_prefix(['T', ' ']) else {
        return rest.is_empty().then_some(whole_days);
    };
    Some(whole_days + seconds(time)? / 86_400.0)
}

/// The seconds since midnight UTC of `12:30`, `12:30:05.25`, each with `Z` or `+02:00` behind it.
fn seconds(time: &str) -> Option<f64> {
    let (time, ahead) = match (time.strip_suffix('Z'), time.rfind(['+', '-'])) {
        (Some(time), _) => (time, 0.0),
        (None, None) => (time, 0.0),
        (None, Some(at)) => {
            let (time, zone) = time.split_at(at);
            let (hours, minutes) = match zone[1..].split_once(':') {
                Some(parts) => parts,
                None => zone[1..].split_at_checked(2)?,
            };
            let minutes = if minutes.is_empty() { 0 } else { whole(minutes, 2)? };
            let ahead = (whole(hours, 2)? * 60 + minutes) as f64 * 60.0;
            (time, if zone.starts_with('-') { -ahead } else { ahead })
        }
    };
    let mut parts = time.splitn(3, ':');
    let (hours, minutes) = (whole(parts.next()?, 2)?, whole(parts.next()?, 2)?);
    let seconds = match parts.next() {
        None => 0.0,
        Some(text) if text.starts_with(|sign: char| sign.is_ascii_digit()) => text.parse().ok()?,
        Some(_) => return None,
    };
    let fits = hours < 24 && minutes < 60 && (0.0..61.0).contains(&seconds);
    fits.then_some((hours * 60 + minutes) as f64 * 60.0 + seconds - ahead)
}

/// A number of exactly so many digits.
fn whole(text: &str, digits: usize) -> Option<i64> {
    let is_whole = text.len() == digits && text.bytes().all(|sign| sign.is_ascii_digit());
    is_whole.then(|| text.parse().ok()).flatten()
}

/// The days from 1970-01-01 to a day of the Gregorian calendar.
fn of_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the day that comes and goes is the last of a year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A moment in days since 1970-01-01, as ISO writes it.
pub(super) fn text(days: f64) -> String {
    let whole = days.floor();
    let (year, month, day) = civil(whole as i64);
    let seconds = ((days - whole) * 86_400.0).round() as i64;
    match seconds {
        0 => format!("{year:04}-{month:02}-{day:02}"),
        _ => {
            let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}")
        }
    }
}

/// The day of the Gregorian calendar so many days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_and_written_back() {
        for (iso, counted) in [
            ("1970-01-01", 0.0),
            ("1969-12-31", -1.0),
            ("2000-02-29", 11_016.0),
            ("2013-01-01", 15_706.0),
            ("0001-01-01", -719_162.0),
            ("9999-12-31", 2_932_896.0),
        ] {
            assert_eq!(days(iso), Some(counted), "{iso}");
            assert_eq!(text(counted), iso);
        }
        assert_eq!(days("2013-01-01T12:00:00Z"), Some(15_706.5));
        assert_eq!(days("2013-01-01 12:00"), Some(15_706.5));
        assert_eq!(days("2013-01-01T14:00:00.000+02:00"), Some(15_706.5));
        assert_eq!(text(15_706.5), "2013-01-01T12:00:00");
        for day in -1_000_000..1_000_000_i64 {
            if day % 997 == 0 {
                assert_eq!(
                    days(&text(day as f64)).filter(|_| day > -719_000),
                    Some(day as f64).filter(|_| day > -719_000)
                );
            }
        }
    }

    #[test]
    fn what_is_no_day_is_none() {
        for text in [
            "",
            "2013",
            "2013-1-1",
            "2013-02-29",
            "2013-13-01",
            "2013-00-10",
            "2013-01-32",
            "01/02/2013",
            "2013-01-01x",
            "2013-01-01T25:00",
            "2013-01-01T12",
            "2013-01-01T12:00:",
            "2013-01-01T12:00:-1",
            "20130101",
            "2013-01-0é",
            "2013-01-01T12:00+é",
            "+013-01-01",
        ] {
            assert_eq!(days(text), None, "{text}");
        }
    }
}
