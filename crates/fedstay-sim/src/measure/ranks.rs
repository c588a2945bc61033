//! Rows in the order of how sure a model is that they are of a class: what AUROC and average precision
//! read. The rows are sorted once, whatever they count for afterwards.

use crate::model::ClassesSaid;

/// The rows of a class among all rows, by how sure the model is of that class.
pub(super) struct Ranked {
    /// The rows, those that are the surest of the class first.
    order: Vec<RankedRow>,
}

/// One row's place.
struct RankedRow {
    row: u32,
    /// Whether it is of the class.
    is_of: bool,
    /// Whether the model is less sure of the next row.
    ends: bool,
}

/// Rows of which a model is equally sure.
#[derive(Default)]
pub(super) struct Tie {
    /// How many are of the class.
    pub(super) of: u64,
    /// How many are not.
    pub(super) others: u64,
}

impl Ranked {
    /// The rows ranked for one class.
    fn new(said: &ClassesSaid, class: usize) -> Self {
        let rows = 0..said.labels.len();
        let mut order: Vec<(f64, u32)> =
            rows.map(|row| (sure(said, row, class), row as u32)).collect();
        order.sort_unstable_by(|(a, row), (b, other)| b.total_cmp(a).then(row.cmp(other)));
        let places = order.iter().enumerate().map(|(place, (sure, row))| RankedRow {
            row: *row,
            is_of: said.labels[*row as usize] as usize == class,
            ends: order.get(place + 1).is_none_or(|(next, _)| next != sure),
        });
        Self { order: places.collect() }
    }

    /// The rows of equal sureness, the surest first, each row counted as often as its weight says.
    pub(super) fn ties(&self, weights: &[u32], mut each: impl FnMut(&Tie)) {
        let mut tie = Tie::default();
        for place in &self.order {
            let weight = u64::from(weights[place.row as usize]);
            *(if place.is_of { &mut tie.of } else { &mut tie.others }) += weight;
            if place.ends {
                each(&tie);
                tie = Tie::default();
            }
        }
    }
}

/// How sure a model is that a row is of a class. Of two classes these are the odds, which tell rows
/// apart whose probability is rounded to one.
fn sure(said: &ClassesSaid, row: usize, class: usize) -> f64 {
    let own = said.probability(row, class);
    match said.classes {
        2 => own / said.probability(row, 1 - class),
        _ => own,
    }
}

/// A number for one class against the others, from the weights of rows.
type AgainstOthers = fn(&Ranked, &[u32]) -> Option<f64>;

/// Of two classes, the number for the second. Of more, the mean over the classes for which it is
/// defined: those that are there, unless one is alone.
pub(super) fn over_classes(said: &ClassesSaid, of: AgainstOthers) -> super::Weighted<'_> {
    let classes = match said.classes {
        2 => 1..2,
        classes => 0..classes,
    };
    let ranked: Vec<Ranked> = classes.map(|class| Ranked::new(said, class)).collect();
    Box::new(move |weights| {
        let values = ranked.iter().filter_map(|ranked| of(ranked, weights));
        let (sum, count) = values.fold((0.0, 0_u32), |(sum, n), value| (sum + value, n + 1));
        (count > 0).then(|| sum / f64::from(count))
    })
}
