//! What things are called, in one place: for the terminal, the report, the page and Python.
//!
//! Every verdict, stop reason, landing and state must have its words, or this does not compile; the
//! law below checks that no two share them.

mod format;
mod name;
mod progress;
mod state;
mod story;
mod summary;
mod verdict;

pub use format::{count, duration, list, percent, sentence, whole_percent};
pub use name::title;
pub use progress::RunProgress;
pub use state::State;
pub use story::{harm, story};
pub use summary::{
    absences, content, foreseen, guarantee, leavers, moments, privacy, spread, verdict_sentence,
};
pub use verdict::{Counts, Tone, VerdictWords, keeping, landing, stop, sureness, verdict};

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::StopReason;
    use fedstay::record::Guarantee;
    use fedstay::rule::Landing;
    use fedstay::verdict::Verdict;
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
        let counts =
            Counts { agents: 2, left: 1, content: 1, failed: 1, unasked: 1, unmeasured: 0 };
        let all = Verdict::ALL.map(|one| verdict(one, &counts));
        let tones: HashSet<Tone> = all.iter().map(|words| words.tone).collect();
        assert_eq!(tones.len(), all.len(), "{all:?}");
        for (words, verdict) in all.iter().zip(Verdict::ALL) {
            assert_eq!(words.head.to_lowercase(), verdict.name());
            assert!(words.text.contains("1 of 2 content"), "{}", words.text);
            assert!(!words.text.to_lowercase().contains("nobody left"), "{}", words.text);
        }
        let empty = verdict(Verdict::Unknown, &Counts::default());
        assert_eq!(empty.text, "Nobody took part; 0 of 0 content.");
        all_differ(&all.each_ref().map(|words| words.text.as_str()));
    }
}
