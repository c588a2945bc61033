//! What the options of policies are called and may be: each policy's file says it of its own, and the
//! reference of a configuration is made from that.

/// An option of a policy, or of several by the same name: which have it, their structs say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicyOption {
    /// Its key in a configuration, such as `policy.delta`.
    pub key: &'static str,
    /// A value it may have, as in a file.
    pub example: &'static str,
    /// What values it may have.
    pub values: Values,
    /// What it does.
    pub about: &'static str,
    /// What applies where it is not given, if that is not simply a value.
    pub otherwise: &'static str,
}

/// What values an option may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values {
    /// A number between these two.
    Number(f64, f64),
    /// A whole number between these two.
    Count(u64, u64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// Yes or no.
    Switch,
}

impl Values {
    /// Any number: squares and products of three such numbers stay within `f64`.
    pub(super) const ANY: Self = Self::Number(-1e100, 1e100);
    /// A number of rounds.
    pub(super) const ROUNDS: Self = Self::Count(1, u32::MAX as u64);
}
