//! Numbers and clauses as text.

/// A share as `46.1%`; a dash where there is none.
pub fn percent(share: impl Into<Option<f64>>) -> String {
    share.into().map_or("–".to_owned(), |share| format!("{:.1}%", 100.0 * share))
}

/// A share as `46%`.
pub fn whole_percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

/// A number of things: `1 round`, `3 rounds`.
pub fn count(number: impl std::fmt::Display + PartialEq + From<u8>, noun: &str) -> String {
    let ending = if number == 1.into() { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// A list as `a`, `a and b`, `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

/// The clause as a sentence, with a capital and a full stop.
pub fn sentence(clause: &str) -> String {
    format!("{}.", capital(clause.trim_end_matches('.')))
}

/// The text with a capital.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}", letters.as_str())
}

/// A duration as `1 h 12 min`, `3 min 20 s` or `4.2 s`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..=9 => format!("{seconds:.1} s"),
        10..=99 => format!("{whole} s"),
        100..=5999 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_clauses_are_short() {
        assert_eq!((percent(0.4612), percent(None)), ("46.1%".to_owned(), "–".to_owned()));
        assert_eq!(whole_percent(0.466), "47%");
        let counted = [count(0_u32, "round"), count(1_u64, "round"), count(2_usize, "round")];
        assert_eq!(counted, ["0 rounds", "1 round", "2 rounds"]);
        assert_eq!(sentence("it ended."), "It ended.");
        assert_eq!(
            [4.2, 80.0, 200.0, 4320.0, 7320.0].map(duration).join(", "),
            "4.2 s, 80 s, 3 min 20 s, 72 min 0 s, 2 h 2 min"
        );
    }

    #[test]
    fn the_last_of_a_list_is_joined_by_and() {
        let list =
            |items: &[&str]| list(&items.iter().map(|item| (*item).into()).collect::<Vec<_>>());
        assert_eq!((list(&[]), list(&["a"])), ("none".into(), "a".into()));
        assert_eq!(
            (list(&["a", "b"]), list(&["a", "b", "c"])),
            ("a and b".into(), "a, b and c".into())
        );
    }
}
