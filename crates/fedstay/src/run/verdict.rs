//! The verdict: what the departures of a run did to its result, and whether there is a result at all.

use serde::{Deserialize, Serialize};

/// What the departures did to the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Nobody left, and the final weights satisfy at least somebody.
    Retained,
    /// Nobody left, and the final weights satisfy nobody: keeping everybody is not enough.
    Unsatisfied,
    /// Some agents were content with the starting weights and never took part, nobody else left, and
    /// the final weights satisfy everybody.
    AtStart,
    /// Somebody left, and the final weights satisfy everybody even so.
    Benign,
    /// Somebody left, and the final weights fail somebody.
    Harmful,
    /// All who could be asked about the final weights are content, and too little is known of the
    /// others: somebody left, or nobody could be asked.
    Unknown,
    /// The final weights are worth nothing, whether or not anybody left: see [`Empty`].
    Empty,
}

/// Why final weights are worth nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Empty {
    /// Nobody ever reported, so they are the weights that the run began with.
    NobodyTrained,
    /// No step was ever taken, so they are the weights that the run began with; not said where a
    /// departure did harm.
    NoStep,
    /// They serve the agents no better than a model that gives everybody the same answer
    /// ([`Constant`](crate::record::Constant)).
    Constant,
}

impl Empty {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::NobodyTrained, Self::NoStep, Self::Constant];
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 7] = [
        Self::Retained,
        Self::Unsatisfied,
        Self::AtStart,
        Self::Benign,
        Self::Harmful,
        Self::Unknown,
        Self::Empty,
    ];

    /// Whether every agent stayed, whatever the model is worth to them.
    pub fn kept_everybody(self) -> bool {
        matches!(self, Self::Retained | Self::Unsatisfied)
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retained => "retained",
            Self::Unsatisfied => "unsatisfied",
            Self::AtStart => "at-start",
            Self::Benign => "benign",
            Self::Harmful => "harmful",
            Self::Unknown => "unknown",
            Self::Empty => "empty",
        }
    }
}

/// How many agents there were, and what became of them: all that a verdict depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tally {
    /// All agents.
    pub agents: usize,
    /// Those of which it is known whether the final weights satisfy them.
    pub known: usize,
    /// Those of them that are content.
    pub content: usize,
    /// Those that left at some time.
    pub left: usize,
    /// Those of them that were content with the starting weights and never took part.
    pub at_start: usize,
    /// What speaks for calling the final weights worth nothing, if anything does.
    pub empty: Option<Empty>,
}

impl Tally {
    /// Why the final weights are called worth nothing, if they are. Standing still may be all that a
    /// rule can do once somebody has left: where that harms somebody, the harm is the verdict.
    pub(crate) fn empty(&self) -> Option<Empty> {
        let harms = self.left > 0 && self.content < self.known;
        self.empty.filter(|empty| *empty != Empty::NoStep || !harms)
    }

    /// The verdict. It claims of everybody only what is known of everybody.
    pub(crate) fn verdict(&self) -> Verdict {
        let Self { agents, known, content, left, at_start, .. } = *self;
        match () {
            () if self.empty().is_some() => Verdict::Empty,
            () if left == 0 && content > 0 => Verdict::Retained,
            () if left == 0 && known == agents => Verdict::Unsatisfied,
            () if left == 0 => Verdict::Unknown,
            () if content < known => Verdict::Harmful,
            () if known < agents => Verdict::Unknown,
            () if left == at_start => Verdict::AtStart,
            () => Verdict::Benign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(known: usize, content: usize, left: usize, at_start: usize) -> Verdict {
        Tally { agents: 5, known, content, left, at_start, empty: None }.verdict()
    }

    #[test]
    fn agents_that_nobody_asked_are_not_called_content() {
        assert_eq!(verdict(2, 0, 0, 0), Verdict::Unknown, "two asked, none content");
        assert_eq!(verdict(0, 0, 0, 0), Verdict::Unknown, "nobody asked");
        assert_eq!(verdict(5, 0, 0, 0), Verdict::Unsatisfied);
        assert_eq!(verdict(2, 1, 0, 0), Verdict::Retained, "one is known to be content");
        assert_eq!(verdict(4, 4, 1, 0), Verdict::Unknown, "the leaver could tell");
        assert_eq!(verdict(4, 3, 1, 0), Verdict::Harmful);
    }

    #[test]
    fn agents_content_with_the_start_do_not_make_a_run_benign() {
        assert_eq!(verdict(5, 5, 2, 2), Verdict::AtStart);
        assert_eq!(verdict(5, 5, 2, 1), Verdict::Benign, "one of the two had taken part");
        assert_eq!(verdict(5, 4, 2, 2), Verdict::Harmful, "the result fails somebody");
        assert_eq!(verdict(5, 5, 0, 0), Verdict::Retained);
    }

    #[test]
    fn a_result_worth_nothing_has_its_own_verdict_whoever_left() {
        for empty in Empty::ALL.map(Some) {
            for (content, left) in [(5, 0), (0, 0), (5, 5), (3, 2)] {
                let tally = Tally { agents: 5, known: 5, content, left, at_start: 0, empty };
                let harms = empty == Some(Empty::NoStep) && content < 5 && left > 0;
                let verdict = if harms { Verdict::Harmful } else { Verdict::Empty };
                assert_eq!((tally.verdict(), tally.empty()), (verdict, empty.filter(|_| !harms)));
            }
        }
    }
}
