//! Why training rows go to nobody.

use super::{ByClass, Deal, Partition, Sizing};
use crate::text::quoted;
use fedstay::record::UnusedRows;

/// A class's name is cut to this in a reason.
const LONGEST_NAME: usize = 40;
/// The most classes that a reason names.
const MOST_NAMED: usize = 3;

impl Partition {
    /// The training rows that this way of dealing leaves over, and why; `held` says how many rows of
    /// each class went to devices.
    pub(crate) fn unused(&self, deal: &Deal<'_>, held: &[usize]) -> Vec<UnusedRows> {
        let mut left = vec![0usize; deal.classes.len()];
        deal.labels.iter().for_each(|label| left[usize::from(*label)] += 1);
        left.iter_mut().zip(held).for_each(|(left, held)| *left = left.saturating_sub(*held));
        let mut unused = Vec::new();
        let mut tell = |rows: usize, why: String, asked: bool| {
            if rows > 0 {
                unused.push(UnusedRows { rows, why, asked });
            }
        };
        if let Self::ByClass(by_class) = self {
            // Whose class is nobody's is known before any row is dealt.
            let takers = by_class.takers(deal);
            let nobodys = |class: &usize| takers[*class] == 0 && left[*class] > 0;
            let nobodys: Vec<usize> = (0..left.len()).filter(nobodys).collect();
            let names = named(nobodys.iter().map(|class| deal.classes[*class].as_str()));
            let rows = nobodys.iter().map(|class| std::mem::take(&mut left[*class])).sum();
            let (what, asked) = match &by_class.map {
                Some(_) => ("partition.map".to_owned(), true),
                None => (format!("one class each for {} devices", deal.devices), false),
            };
            tell(rows, format!("{what} leaves out {names}"), asked);
        }
        let rest = left.iter().sum();
        match (deal.per_agent, self) {
            (Some(each), _) => tell(rest, format!("data.per_agent = {each}"), true),
            (None, Self::ByClass(by_class)) => tell(rest, by_class.limit(deal, &left), false),
            (None, Self::Shards(shards)) => {
                tell(rest, format!("{} equal shards each leave them over", shards.k), false);
            }
            (None, Self::Dirichlet(_) | Self::Iid(_)) => {
                tell(rest, "too few for one more each".into(), false);
            }
        }
        unused
    }

    /// What can be set so that fewer training rows go to nobody, or so that it is stated.
    pub(crate) fn instead(&self, each: usize) -> String {
        let stated = format!("if that is meant, say so with data.per_agent = {each}");
        match self {
            Self::ByClass(_) => format!(
                "partition.kind = \"dirichlet\" or \"iid\" deals out all rows but a few; {stated}, or name \
                 the classes in data.classes"
            ),
            Self::Shards(_) => format!("partition.kind = \"iid\" leaves fewer over; {stated}"),
            Self::Dirichlet(_) | Self::Iid(_) => format!("fewer agents leave fewer over; {stated}"),
        }
    }
}

impl ByClass {
    /// How many devices have each class.
    fn takers(&self, deal: &Deal<'_>) -> Vec<usize> {
        let mut takers = vec![0; deal.classes.len()];
        // The map was looked up when the rows were dealt.
        let Ok(map) = self.resolve(deal) else { return takers };
        for device in 0..deal.devices {
            map[device % map.len()].iter().for_each(|class| takers[*class] += 1);
        }
        takers
    }

    /// Which class keeps all devices from having more.
    fn limit(&self, deal: &Deal<'_>, left: &[usize]) -> String {
        let takers = self.takers(deal);
        let spare = |class: &usize| left[*class] as f64 / takers[*class] as f64;
        let classes = (0..left.len()).filter(|class| takers[*class] > 0);
        let short = classes.min_by(|a, b| spare(a).total_cmp(&spare(b)));
        let name = named(short.iter().map(|class| deal.classes[*class].as_str()));
        let how = match self.sizes == Sizing::Equal || self.skew == 0.0 {
            true => "all get equally many",
            false => "shares are as partition.sizes says",
        };
        format!("{name} has no more rows, and {how}")
    }
}

/// Classes as a reason names them.
fn named<'a>(classes: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> =
        classes.map(|name| format!("`{}`", quoted(name, LONGEST_NAME))).collect();
    let noun = if names.len() == 1 { "class" } else { "the classes" };
    match names.len() {
        0..=MOST_NAMED => format!("{noun} {}", names.join(", ")),
        many => {
            let first = names[..MOST_NAMED - 1].join(", ");
            format!("{noun} {first} and {} more", many - (MOST_NAMED - 1))
        }
    }
}
