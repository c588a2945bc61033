//! What a figure may be called on the command line.
//!
//! Figures have the numbers of the paper, counting its figures in order, the appendix included. Before that
//! they were numbered otherwise, and old commands and scripts still say so: what an old name meant is drawn
//! under its number, which is said, unless the paper's figure of that number is another one.

use super::LIST;

/// What a name on the command line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// A figure of the list; and, where it was called by an old name, what to say about that.
    Figure(&'static str, Option<String>),
    /// A figure of the paper that is not drawn under this name, and what to type instead.
    NotDrawn(String),
    /// No figure.
    Unknown,
}

/// Old names, with the number each figure has in the paper.
const OLD: &[(&str, &str)] = &[
    ("3a", "10"),
    ("3b", "11"),
    ("3c", "12"),
    ("5a", "8a"),
    ("5b", "8b"),
    ("tuning", "9"),
    ("appendix", "13"),
    ("bad-problem", "7"),
];

/// The paper's figures that are not drawn under their number alone.
const NOT_DRAWN: &[(&str, &str)] = &[
    (
        "4",
        "figure 4 of the paper, a flowchart of one round, is not drawn; what was called figure 4 here is figure 6, \
         the contours of Observations 2 and 3: fedstay figure 6",
    ),
    (
        "5",
        "figure 5 of the paper, two trajectories over sublevel sets, is not drawn; what was called 5a and 5b \
         here is figure 8: fedstay figure 8a, fedstay figure 8b",
    ),
    ("8", "figure 8 has two parts: fedstay figure 8a, fedstay figure 8b"),
];

/// The figure that a name on the command line means.
pub fn named(name: &str) -> Named {
    let listed = |name: &str| LIST.iter().find(|entry| entry.name == name);
    if let Some(entry) = listed(name) {
        return Named::Figure(entry.name, None);
    }
    if let Some((_, why)) = NOT_DRAWN.iter().find(|(number, _)| *number == name) {
        return Named::NotDrawn((*why).to_owned());
    }
    let old = OLD.iter().find(|(old, _)| *old == name);
    let Some(entry) = old.and_then(|(_, number)| listed(number)) else { return Named::Unknown };
    let told = match name.strip_prefix('3') {
        Some(part) => format!(
            "What was called figure {name} is figure {} in the paper: part ({part}) of figure 3, for every q.",
            entry.name
        ),
        None => format!("What was called figure {name} is figure {} in the paper.", entry.name),
    };
    Named::Figure(entry.name, Some(told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_the_paper_has_its_number_or_is_said_not_to_be_drawn() {
        for number in 1..=13 {
            let known = match named(&number.to_string()) {
                Named::Figure(name, told) => name == number.to_string() && told.is_none(),
                Named::NotDrawn(why) => why.contains("fedstay figure "),
                Named::Unknown => false,
            };
            assert!(known, "figure {number}");
        }
        for entry in LIST {
            assert_eq!(named(entry.name), Named::Figure(entry.name, None));
        }
        assert_eq!(named("14"), Named::Unknown);
    }

    #[test]
    fn an_old_name_draws_what_it_meant_and_says_what_it_is_now() {
        for (old, number) in OLD {
            let Named::Figure(name, Some(told)) = named(old) else { panic!("{old}") };
            assert_eq!(name, *number);
            assert!(
                told.contains(&format!("figure {old} is figure {number} in the paper")),
                "{told}"
            );
        }
        // Figure 4 was another one than the paper's: it is not drawn in its place.
        let Named::NotDrawn(why) = named("4") else { panic!("figure 4") };
        assert!(why.contains("flowchart") && why.contains("fedstay figure 6"), "{why}");
    }
}
