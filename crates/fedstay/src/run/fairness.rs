//! How a result is spread over the agents: the figures of the literature on fairness.

use super::AgentAssessment;
use super::record::AgentSummary;
use crate::message::score::{Better, Measure, MeasureName, Score};
use serde::{Deserialize, Serialize};

/// How what headlines tell, a measure or the loss, is spread over the agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// What is spread: the name of a measure, or `loss`.
    pub of: MeasureName,
    /// Of the agent in the middle; of two in the middle, between them.
    pub median: f64,
    /// The mean over the worst tenth of the agents, at least one.
    pub worst_decile: f64,
    /// Jain's index `(Σx)²/(M Σx²)`: 1 if all have the same, 1/M if one has everything.
    pub jain: f64,
    /// The Gini coefficient: 0 if all have the same, nearly 1 if one has everything.
    pub gini: f64,
    /// The correlation (Pearson) of what agents end with and what each would have made alone, where
    /// that was asked for and both differ at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with_alone: Option<f64>,
}

impl Fairness {
    /// The figures for those of these agents that were measured, by the delivered weights: of the first
    /// of these measures that all of them have, or of their losses. `None` if there are none, or if
    /// somebody could not be asked.
    pub fn of(agents: &[AgentSummary], measures: &[Measure]) -> Option<Self> {
        let agents: Vec<&AgentSummary> =
            agents.iter().filter(|agent| agent.is_measured()).collect();
        let asked = agents.iter().all(|agent| agent.loss_of_round.is_none());
        if agents.is_empty() || !asked {
            return None;
        }
        let scores: Vec<&Score> = agents.iter().map(|agent| &agent.score).collect();
        let (of, values) = of_first(&scores, measures);
        let alone = agents.iter().map(|agent| agent.alone.as_ref()?.of(&of.name));
        let with_alone =
            alone.collect::<Option<Vec<f64>>>().and_then(|alone| pearson(&alone, &values));
        Some(Self { with_alone, ..Self::over(&of, values) })
    }

    /// The same without a comparison, for agents that were measured.
    pub(crate) fn of_measured(agents: &[&AgentAssessment], measures: &[Measure]) -> Option<Self> {
        if agents.is_empty() || agents.iter().any(|agent| agent.as_of.is_some()) {
            return None;
        }
        let scores: Vec<&Score> = agents.iter().map(|agent| &agent.score).collect();
        let (of, values) = of_first(&scores, measures);
        Some(Self::over(&of, values))
    }

    /// The figures for these values, of which there is one.
    fn over(of: &Measure, mut sorted: Vec<f64>) -> Self {
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let tenth = n.div_ceil(10);
        let worst = match of.better {
            Better::Higher => &sorted[..tenth],
            Better::Lower => &sorted[n - tenth..],
        };
        Self {
            of: of.name.clone(),
            median: middle(&sorted),
            worst_decile: worst.iter().sum::<f64>() / tenth as f64,
            jain: jain(&sorted),
            gini: gini(&sorted),
            with_alone: None,
        }
    }
}

/// The first measure that all scores have, else the loss, with its values.
fn of_first(scores: &[&Score], measures: &[Measure]) -> (Measure, Vec<f64>) {
    let values = |measure: &Measure| -> Option<Vec<f64>> {
        scores.iter().map(|score| score.of(&measure.name)).collect()
    };
    let found = measures.iter().find_map(|measure| Some((measure.clone(), values(measure)?)));
    found.unwrap_or_else(|| (Measure::LOSS, scores.iter().map(|score| score.loss).collect()))
}

/// The value in the middle; of two in the middle, between them.
fn middle(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    0.5 * (sorted[(n - 1) / 2] + sorted[n / 2])
}

/// The median of some numbers; `None` if there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| middle(&sorted))
}

/// Where all have nothing, all have the same.
fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    if squares > 0.0 { sum * sum / (values.len() as f64 * squares) } else { 1.0 }
}

/// `Σ_i (2i − n − 1) x_i/(n Σx)` over sorted values, which is half the mean difference over the mean.
fn gini(sorted: &[f64]) -> f64 {
    let n = sorted.len() as f64;
    let sum: f64 = sorted.iter().sum();
    let ranks = sorted.iter().enumerate().map(|(i, x)| (2.0 * (i + 1) as f64 - n - 1.0) * x);
    if sum > 0.0 { ranks.sum::<f64>() / (n * sum) } else { 0.0 }
}

/// `None` where one of the two does not vary.
fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len() as f64;
    let mean = |x: &[f64]| x.iter().sum::<f64>() / n;
    let (ma, mb) = (mean(a), mean(b));
    let cov: f64 = a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)).sum();
    let var = |x: &[f64], m: f64| x.iter().map(|x| (x - m) * (x - m)).sum::<f64>();
    let spread = (var(a, ma) * var(b, mb)).sqrt();
    (spread > 0.0).then(|| (cov / spread).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn agents(accuracy: &[f64], alone: &[f64]) -> Vec<AgentSummary> {
        let each = accuracy.iter().zip(alone).enumerate();
        each.map(|(id, (accuracy, alone))| {
            serde_json::from_value(serde_json::json!({
                "id": id, "epsilon": 0.1, "loss": 1.0 - accuracy, "accuracy": accuracy, "left": null,
                "rounds_in_d": 0, "alone": { "loss": 1.0 - alone, "accuracy": alone },
            }))
            .unwrap()
        })
        .collect()
    }

    fn of(agents: &[AgentSummary]) -> Option<Fairness> {
        Fairness::of(agents, &Measure::usual())
    }

    #[test]
    fn the_figures_of_a_small_federation_by_hand() {
        let fairness = of(&agents(&[0.9, 0.5, 0.7, 0.1], &[0.8, 0.4, 0.6, 0.0])).unwrap();
        assert_eq!(fairness.of, "accuracy");
        assert!((fairness.median - 0.6).abs() < 1e-15 && fairness.worst_decile == 0.1);
        assert!((fairness.jain - 4.84 / (4.0 * 1.56)).abs() < 1e-12);
        // The differences of all pairs are 0.4, 0.2, 0.8, 0.2, 0.4 and 0.6: 2·2.6/(2·16·0.55).
        assert!((fairness.gini - 2.6 / (16.0 * 0.55)).abs() < 1e-12, "{fairness:?}");
        assert!((fairness.with_alone.unwrap() - 1.0).abs() < 1e-12);
        let same = of(&agents(&[0.5; 3], &[0.1, 0.2, 0.3])).unwrap();
        assert_eq!((same.jain, same.gini, same.with_alone), (1.0, 0.0, None));
        let one = of(&agents(&[0.0, 0.0, 0.0, 1.0], &[0.0; 4])).unwrap();
        assert_eq!((one.jain, one.gini), (0.25, 0.75));
    }

    #[test]
    fn the_worst_are_those_with_the_lowest_accuracy_or_the_highest_loss() {
        let mut losses = agents(&[0.2, 0.4, 0.9], &[0.0; 3]);
        losses.iter_mut().for_each(|agent| agent.score = Score::new(agent.score.loss));
        let fairness = of(&losses).unwrap();
        assert_eq!((&*fairness.of, fairness.worst_decile), ("loss", 0.8));
        losses[0].loss_of_round = Some(3);
        assert_eq!(of(&losses), None, "somebody was not asked");
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_first_measure_that_all_have_is_told() {
        let mut both = agents(&[0.2, 0.4], &[0.0; 2]);
        both[0].score.measures.set("brier", 0.5);
        let mut brier = Measure::named("brier");
        brier.better = Better::Lower;
        let measures = [brier, Measure::ACCURACY];
        assert_eq!(Fairness::of(&both, &measures).unwrap().of, "accuracy", "one lacks it");
        both[1].score.measures.set("brier", 0.25);
        let told = Fairness::of(&both, &measures).unwrap();
        assert_eq!((&*told.of, told.worst_decile), ("brier", 0.5), "less is better");
    }

    proptest! {
        #[test]
        fn they_are_within_their_bounds_and_blind_to_scale_and_order(
            values in prop::collection::vec(0.01..1.0f64, 1..30),
            turn in 0usize..30,
        ) {
            let naive: f64 = values
                .iter()
                .flat_map(|a| values.iter().map(move |b| (a - b).abs()))
                .sum::<f64>()
                / (2.0 * values.len() as f64 * values.iter().sum::<f64>());
            let fairness = of(&agents(&values, &values)).unwrap();
            prop_assert!((fairness.gini - naive).abs() < 1e-12);
            prop_assert!((1.0 / values.len() as f64 - 1e-12..=1.0 + 1e-12).contains(&fairness.jain));
            prop_assert!(fairness.worst_decile <= fairness.median + 1e-12);
            let mut turned: Vec<f64> = values.iter().map(|value| 0.5 * value).collect();
            turned.rotate_left(turn % values.len());
            let half = of(&agents(&turned, &turned)).unwrap();
            prop_assert!((half.gini - fairness.gini).abs() < 1e-12);
            prop_assert!((half.jain - fairness.jain).abs() < 1e-12);
            prop_assert!((2.0 * half.median - fairness.median).abs() < 1e-12);
        }
    }
}
