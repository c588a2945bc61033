//! The expected calibration error: how far probabilities are from frequencies. Rows are sorted by
//! their probability and cut into ten bins of equally many rows; in each, the mean probability is
//! compared with the share of rows of which it came true, and the distances are averaged. Of two
//! classes it is the second one's probability; of more, the largest one, which comes true where the
//! prediction is right. Rows of equal probability that lie on both sides of a cut are shared out, so
//! their order plays no part. It is never below what chance alone makes of few rows: compare it
//! between models on the same rows, not between small sites and large ones.
//!
//! Reference: Naeini, Cooper, Hauskrecht, *Obtaining well calibrated probabilities using Bayesian
//! binning*, AAAI 2015; bins of equal mass: Nixon et al., *Measuring calibration in deep learning*,
//! CVPR workshops 2019.

use super::weights::rows;
use super::{Listed, Over, Weighted};
use crate::model::{ClassesSaid, Reads};
use fedstay::{Better, Measure, Unit};

pub(super) const CALIBRATION: Listed = Listed {
    measure: Measure::new("calibration", "calibration error", Better::Lower, Unit::Number),
    about: "the mean distance of probabilities from frequencies, over ten bins of equally many rows",
    reads: Reads::Probabilities,
    over: Over::Classes(over),
};

/// How many bins there are.
const BINS: f64 = 10.0;

/// One row: its probability, and whether it came true.
struct Forecast {
    row: usize,
    probability: f64,
    came_true: bool,
}

fn over(said: &ClassesSaid) -> Weighted<'_> {
    let forecast = |row: usize| {
        if said.classes == 2 {
            let (probability, came_true) = (said.probability(row, 1), said.labels[row] == 1);
            return Forecast { row, probability, came_true };
        }
        let all = (0..said.classes).map(|class| said.probability(row, class));
        Forecast { row, probability: all.fold(0.0, f64::max), came_true: said.hits[row] }
    };
    let mut sorted: Vec<Forecast> = (0..said.labels.len()).map(forecast).collect();
    sorted.sort_by(|a, b| a.probability.total_cmp(&b.probability));
    Box::new(move |weights| {
        let all = rows(weights);
        (all > 0.0).then(|| error(&sorted, weights, all / BINS) / all)
    })
}

/// The sum over the bins of how far what came true is from what was to be expected. A bin has room for
/// so many rows.
fn error(sorted: &[Forecast], weights: &[u32], room: f64) -> f64 {
    let (mut sum, mut apart, mut free) = (0.0, 0.0_f64, room);
    for tie in sorted.chunk_by(|a, b| a.probability == b.probability) {
        let counted = |forecast: &Forecast| f64::from(weights[forecast.row]);
        let mut rows: f64 = tie.iter().map(counted).sum();
        if rows == 0.0 {
            continue;
        }
        let came_true: f64 = tie.iter().filter(|row| row.came_true).map(counted).sum();
        let each = tie[0].probability - came_true / rows;
        // The last bin takes what rounding leaves over.
        while rows > free {
            sum += (apart + each * free).abs();
            rows -= free;
            (apart, free) = (0.0, room);
        }
        apart += each * rows;
        free -= rows;
    }
    sum + apart.abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Said;

    fn of(rows: &[(f32, bool)]) -> f64 {
        let said = ClassesSaid {
            classes: 2,
            labels: rows.iter().map(|(_, came_true)| u32::from(*came_true)).collect(),
            probabilities: rows.iter().flat_map(|(p, _)| [1.0 - p, *p]).collect(),
            ..ClassesSaid::default()
        };
        CALIBRATION.of(&Said::Classes(said)).unwrap()
    }

    #[test]
    fn a_model_that_says_the_frequency_has_none_and_one_that_is_sure_and_wrong_has_all() {
        let half: Vec<(f32, bool)> = (0..8).map(|row| (0.5, row % 2 == 0)).collect();
        assert_eq!(of(&half), 0.0);
        assert!((of(&[(1.0, false), (0.0, true)]) - 1.0).abs() < 1e-12);
        // Fewer rows than bins: each row has some of its own.
        assert!((of(&[(0.25, true), (0.75, false)]) - 0.75).abs() < 1e-12);
    }
}
