//! How much a baseline is restrained, decided by cross-validation on its own training rows.
//!
//! A model of one layer has a ridge. Its usual strength, 1, is what scikit-learn's users have without asking;
//! a stronger one is taken where it predicts rows that were left out better by more than one standard error
//! over the folds, so that chance alone rarely moves it. Where rows abound nothing is decided: the strength
//! would make no difference. Any other model has the usual ridge and stops after as many steps as
//! predict best what was left out; it begins as the constant, so none is chosen that predicts worse than that.

use super::constant::constant;
use super::fit::{Fit, loss};
use super::folds::{Fold, folds};
use super::units::Units;
use super::{Baseline, Restraint, is_linear};
use crate::model::{Batch, Error, Network, Rows, Workspace};

/// The strengths of a ridge to choose from, the usual one first.
pub(super) const LADDER: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];
/// The most steps of a model with several layers.
pub(super) const MOST_STEPS: u32 = 60;
/// The most steps to the best model of one layer, and the slope that is level enough.
const TO_THE_END: (u32, f64) = (500, 1e-5);
/// The same where models are only compared.
const NEARLY: (u32, f64) = (60, 1e-3);
/// With so many rows for each weight, a ridge makes no difference.
const AMPLE: usize = 20;
/// With so many rows, one fold says enough about when to stop.
const MANY: usize = 2_000;

/// The best model of some rows that does not learn them by heart. `start` are first weights as a run draws
/// them, which matter to models of several layers alone.
pub(super) fn restrained(
    network: &Network,
    start: &[f64],
    rows: &Rows<'_>,
    work: &mut Workspace,
) -> Result<Baseline, Error> {
    let units = Units::new(network, rows);
    let of = (network, rows, &units);
    let all = constant(network, rows.targets());
    if is_linear(network) {
        let strength = strength(of, &all, work)?;
        let fit = Fit::new(of, Batch::All, strength, work);
        let weights = fit.descend(&all, TO_THE_END, |_, _| Ok(()))?;
        return Ok(Baseline { weights, restraint: Restraint::Ridge(strength) });
    }
    let (_, bias) = network.layout().layer(network.layers() - 1);
    let (last, _) = network.layout().layer(network.layers() - 1);
    let mut begin = start.to_vec();
    begin[last.start..bias.end].copy_from_slice(&all[last.start..bias.end]);
    let steps = steps(of, &begin, work)?;
    let fit = Fit::new(of, Batch::All, LADDER[0], work);
    let weights = fit.descend(&begin, (steps, 0.0), |_, _| Ok(()))?;
    Ok(Baseline { weights, restraint: Restraint::Steps(steps) })
}

/// The strength of the ridge.
fn strength(
    of: (&Network, &Rows<'_>, &Units),
    start: &[f64],
    work: &mut Workspace,
) -> Result<f64, Error> {
    let (network, rows, _) = of;
    if rows.len() >= AMPLE * network.layout().parameters() {
        return Ok(LADDER[0]);
    }
    // From the strongest to the usual, so that each begins near its end.
    let mut found = Vec::new();
    for Fold { fitted, judged } in &folds(rows.targets()) {
        let (mut weights, mut losses) = (start.to_vec(), [0.0; LADDER.len()]);
        for (place, strength) in LADDER.iter().enumerate().rev() {
            let fit = Fit::new(of, Batch::Rows(fitted), *strength, work);
            weights = fit.descend(&weights, NEARLY, |_, _| Ok(()))?;
            losses[place] = loss((network, rows), judged, &weights, work)?;
        }
        found.push(losses);
    }
    Ok(LADDER[choice(&found)])
}

/// The place of the strength to take, given the losses of each in every fold: the first, unless another is
/// better by more than a standard error.
fn choice(folds: &[[f64; LADDER.len()]]) -> usize {
    let Some(count) = Some(folds.len() as f64).filter(|count| *count >= 2.0) else {
        // One row says nothing but that there is one.
        return LADDER.len() - 1;
    };
    let mean = |place: usize| folds.iter().map(|losses| losses[place]).sum::<f64>() / count;
    let best = (0..LADDER.len()).min_by(|a, b| mean(*a).total_cmp(&mean(*b))).unwrap_or(0);
    let gain = mean(0) - mean(best);
    let apart = folds.iter().map(|losses| (losses[0] - losses[best] - gain).powi(2)).sum::<f64>();
    let error = (apart / (count * (count - 1.0))).sqrt();
    if gain > error { best } else { 0 }
}

/// After how many steps to stop.
fn steps(
    of: (&Network, &Rows<'_>, &Units),
    start: &[f64],
    work: &mut Workspace,
) -> Result<u32, Error> {
    let (network, rows, _) = of;
    let mut folds = folds(rows.targets());
    if rows.len() >= MANY {
        folds.truncate(1);
    }
    let mut total = vec![0.0; MOST_STEPS as usize + 1];
    for Fold { fitted, judged } in &folds {
        let mut losses = Vec::new();
        let fit = Fit::new(of, Batch::Rows(fitted), LADDER[0], work);
        fit.descend(start, (MOST_STEPS, 1e-5), |weights, work| {
            losses.push(loss((network, rows), judged, weights, work)?);
            Ok(())
        })?;
        let last = losses.last().copied().unwrap_or(0.0);
        let losses = losses.iter().chain(std::iter::repeat(&last));
        total.iter_mut().zip(losses).for_each(|(total, loss)| *total += loss);
    }
    let best = (0..total.len()).min_by(|a, b| total[*a].total_cmp(&total[*b]));
    Ok(best.unwrap_or(0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stronger_ridge_has_to_be_clearly_better() {
        let fold = |usual, best| [usual, best, usual + 1.0, usual + 1.0];
        let clear = [fold(1.0, 0.5), fold(0.9, 0.5), fold(1.1, 0.5)];
        assert_eq!(choice(&clear), 1);
        let chance = [fold(1.0, 0.5), fold(1.0, 1.4), fold(1.0, 1.0)];
        assert_eq!(choice(&chance), 0, "better by 0.03 with a standard error of 0.26");
        assert_eq!(choice(&[[1.0, 2.0, 3.0, 4.0]; 3]), 0);
        assert_eq!(choice(&[]), LADDER.len() - 1, "one row has no folds");
    }
}
