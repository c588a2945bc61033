//! The state of an agent in a round.

/// The state of an agent in a round. Where several rounds are shown as one, the largest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// It could not be reached, was not asked, sat out, or has not joined yet. It has not left.
    Absent,
    /// It takes part, and its direction counts in full.
    Free,
    /// It is about to leave: the server has it in D.
    InD,
    /// It should have answered and did not.
    Fault,
    /// It has left.
    Left,
}

impl State {
    /// Every state, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Absent, Self::Free, Self::InD, Self::Fault, Self::Left];

    /// The name it has in JSON and in style sheets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Free => "free",
            Self::InD => "near",
            Self::Fault => "fault",
            Self::Left => "left",
        }
    }

    /// A few words, for a cell of a table or a legend.
    pub fn brief(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Free => "free",
            Self::InD => "about to leave",
            Self::Fault => "did not answer",
            Self::Left => "left",
        }
    }

    /// The words of [`brief`](Self::brief), with the term of the theory where there is one.
    pub fn text(self) -> &'static str {
        match self {
            Self::InD => "about to leave (in D)",
            other => other.brief(),
        }
    }
}
