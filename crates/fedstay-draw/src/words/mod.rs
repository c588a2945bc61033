//! What things are called, in one place: for the terminal, the report, the page and Python.
//!
//! Every verdict, stop reason, landing and state must have its words, or this does not compile; the
//! law below checks that no two share them.

mod changed;
mod departure;
mod format;
mod measure;
mod name;
pub mod plan;
mod progress;
mod rows;
mod standing;
mod state;
mod story;
mod summary;
mod verdict;

pub use changed::changed;
pub use departure::departure;
pub(crate) use format::capital;
pub use format::{count, duration, list, percent, sentence, whole_percent};
pub(crate) use measure::clause;
pub use measure::{HELD_BACK, besides, common, first_held_back, held_back, within, worst};
pub use name::title;
pub use progress::RunProgress;
pub use rows::rows;
pub use standing::{Files, Next, Standing, Traces, mean_loss};
pub use state::State;
pub use story::{harm, story};
pub use summary::{
    absences, at_start, content, foreseen, guarantee, leavers, moments, privacy, spread,
    unrealizable, verdict_sentence,
};
pub use verdict::{
    Counts, Tone, VerdictWords, emptiness, keeping, landing, stop, sureness, verdict,
};

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::StopReason;
    use fedstay::record::Guarantee;
    use fedstay::rule::Landing;
    use fedstay::verdict::{Empty, Verdict};
    use std::collections::HashSet;

    /// Asserts that each has words, and that no two have the same.
    fn all_differ(words: &[&str]) {
        assert!(words.iter().all(|text| !text.trim().is_empty()), "{words:?}");
        let different: HashSet<&&str> = words.iter().collect();
        assert_eq!(different.len(), words.len(), "{words:?}");
    }

    #[test]
    fn everything_has_words_of_its_own() {
        all_differ(&StopReason::ALL.map(stop));
        let keeping = [Some(true), Some(false), None].map(keeping);
        let sure = [Guarantee::Certified, Guarantee::Estimated].map(sureness);
        all_differ(&[&keeping[..], &sure[..]].concat());
        all_differ(&[Landing::Certified, Landing::Estimated, Landing::No].map(landing));
        all_differ(&State::ALL.map(State::name));
        all_differ(&State::ALL.map(State::brief));
        all_differ(&State::ALL.map(State::text));
    }

    #[test]
    fn every_verdict_has_its_own_word_and_colour_and_says_how_many_are_content() {
        let counts = Counts { agents: 2, left: 1, content: 1, failed: 1, ..Counts::default() };
        let all = Verdict::ALL.map(|one| verdict(one, &counts));
        let tones: HashSet<Tone> = all.iter().map(|words| words.tone).collect();
        assert_eq!(tones.len(), 5, "every colour has a use: {all:?}");
        for (words, verdict) in all.iter().zip(Verdict::ALL) {
            assert_eq!(words.head.to_lowercase(), verdict.name());
            assert!(words.text.contains("1 of 2 content"), "{}", words.text);
            assert!(!words.text.to_lowercase().contains("nobody left"), "{}", words.text);
        }
        all_differ(&all.each_ref().map(|words| words.text.as_str()));
    }

    #[test]
    fn an_empty_model_says_why_before_anything_else() {
        for empty in Empty::ALL.map(Some) {
            let counts = Counts { agents: 5, left: 2, content: 3, empty, ..Counts::default() };
            let said = verdict(Verdict::Empty, &counts);
            let wanted = format!("{}; 2 of 5 left; 3 of 5 content.", emptiness(empty));
            assert_eq!((said.tone, said.text.to_lowercase()), (Tone::Bad, wanted));
        }
        all_differ(&Empty::ALL.map(|empty| emptiness(Some(empty))));
    }

    #[test]
    fn agents_content_with_the_start_are_counted_in_the_headline() {
        let counts =
            Counts { agents: 57, left: 17, at_start: 17, content: 57, ..Counts::default() };
        assert_eq!(
            verdict(Verdict::AtStart, &counts).text,
            "17 of 57 were content with the starting model and never took part; all others stayed; \
             57 of 57 content."
        );
        let counts = Counts { left: 20, at_start: 1, ..counts };
        assert_eq!(
            verdict(Verdict::Benign, &counts).text,
            "19 of 57 left, 1 more was content with the starting model and never took part, and it \
             harmed nobody; 57 of 57 content."
        );
    }

    #[test]
    fn agents_that_nobody_asked_are_not_counted_as_if_they_had_been() {
        let words = |content, unasked, unmeasured| {
            Counts { agents: 5, content, unasked, unmeasured, ..Counts::default() }.content_words()
        };
        assert_eq!(words(2, 0, 0), "2 of 5 content");
        assert_eq!(words(0, 3, 0), "0 of 2 asked agents content, 3 not asked");
        assert_eq!(words(0, 5, 0), "none of the 5 agents was asked about the model");
        assert_eq!(words(1, 0, 3), "1 of 2 measured agents content, 3 not measured");
        assert_eq!(words(0, 0, 5), "none of the 5 agents was measured");
    }

    #[test]
    fn a_model_that_fails_those_who_left_says_that_they_keep_another() {
        let words = |failed, failed_left| {
            let counts = Counts { agents: 9, left: 9, failed, failed_left, ..Counts::default() };
            verdict(Verdict::Harmful, &counts).text
        };
        assert!(words(3, 0).contains("fails 3 agents;"));
        assert!(
            words(3, 1)
                .contains("fails 3 agents, 1 of which left and keeps the model of its round;")
        );
        assert!(
            words(1, 1).contains("fails 1 agent, which left and keeps the model of its round;")
        );
        assert!(
            words(3, 3).contains("fails 3 agents, which left and keep the models of their rounds;")
        );
    }
}
