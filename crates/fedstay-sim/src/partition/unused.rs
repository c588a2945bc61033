//! Why training rows go to nobody.

use super::{Deal, Partition};
use crate::data::TargetsOf;
use crate::text::quoted;
use fedstay::record::UnusedRows;

/// A class's name is cut to this in a reason.
pub(super) const LONGEST_NAME: usize = 40;
/// The most classes that a reason names.
const MOST_NAMED: usize = 3;

impl Partition {
    /// The training rows that this way of dealing leaves over, and why; `held` says how many rows of
    /// each class went to devices.
    pub(crate) fn unused(&self, deal: &Deal<'_>, held: &[usize]) -> Vec<UnusedRows> {
        let mut left = deal.targets.counts();
        left.iter_mut().zip(held).for_each(|(left, held)| *left = left.saturating_sub(*held));
        let mut unused = Vec::new();
        let mut tell = |rows: usize, why: String, asked: bool| {
            if rows > 0 {
                unused.push(UnusedRows { rows, why, asked });
            }
        };
        // Whose class is nobody's is known before any row is dealt.
        if let Some((classes, what, asked)) = self.inner().untaken(deal, &left) {
            let names = named(deal, &classes);
            let rows = classes.iter().map(|class| std::mem::take(&mut left[*class])).sum();
            tell(rows, format!("{what} leaves out {names}"), asked);
        }
        let rest = left.iter().sum();
        match deal.per_agent {
            Some(each) => tell(rest, format!("data.per_agent = {each}"), true),
            None => tell(rest, self.inner().limit(deal, &left), false),
        }
        unused
    }

    /// What can be set so that fewer training rows go to nobody, or so that it is stated.
    pub(crate) fn instead(&self, each: usize) -> String {
        let stated = format!("if that is meant, say so with data.per_agent = {each}");
        self.inner().instead(&stated)
    }
}

/// Classes as a reason names them.
pub(super) fn named(deal: &Deal<'_>, classes: &[usize]) -> String {
    let TargetsOf::Classes(known) = deal.targets else { return String::new() };
    let name = |class: &usize| format!("`{}`", quoted(&known.names[*class], LONGEST_NAME));
    let names: Vec<String> = classes.iter().map(name).collect();
    let noun = if names.len() == 1 { "class" } else { "the classes" };
    match names.len() {
        0..=MOST_NAMED => format!("{noun} {}", names.join(", ")),
        many => {
            let first = names[..MOST_NAMED - 1].join(", ");
            format!("{noun} {first} and {} more", many - (MOST_NAMED - 1))
        }
    }
}
