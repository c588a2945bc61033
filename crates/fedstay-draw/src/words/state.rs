//! What an agent is in a round.

/// What an agent is in a round. Of several rounds the largest is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum State {
    /// It was not asked, or is not known yet.
    Absent,
    /// It takes part, and its direction counts in full.
    Free,
    /// It is predicted to leave, so it is in D.
    InD,
    /// It should have answered and did not.
    Fault,
    /// It has left.
    Left,
}

impl State {
    /// Every state there is, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Absent, Self::Free, Self::InD, Self::Fault, Self::Left];

    /// The name it has in JSON and in style sheets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Free => "free",
            Self::InD => "held",
            Self::Fault => "fault",
            Self::Left => "left",
        }
    }

    /// A word or two, for a cell of a table.
    pub fn brief(self) -> &'static str {
        match self {
            Self::Absent => "not asked",
            Self::Free => "free",
            Self::InD => "about to leave",
            Self::Fault => "did not answer",
            Self::Left => "left",
        }
    }

    /// The same with the term of the theory, where there is room for it.
    pub fn text(self) -> &'static str {
        match self {
            Self::InD => "about to leave (in D)",
            other => other.brief(),
        }
    }

    /// What a drawing's legend calls it.
    pub fn legend(self) -> &'static str {
        match self {
            Self::InD => "held",
            other => other.brief(),
        }
    }
}
