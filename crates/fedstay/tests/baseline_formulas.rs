//! The rules that ADA-GD is measured against: their limits, and each against a naive reference
//! written another way.

#[path = "common/one_round.rs"]
mod one_round;

use fedstay::rule::{Afl, FedFv, FedMgdaPlus, MaxFl, MwFed, PcGrad, QFedAvg, Reading, Variant};
use fedstay::{AgentId, Loss, Mean, Report, Reports, Rule, Vector};
use one_round::{EPSILON, ETA, Gradients, reports, server, step};
use proptest::prelude::*;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn combine(weights: &[f64], vectors: &[Vec<f64>]) -> Vec<f64> {
    (0..vectors[0].len())
        .map(|i| weights.iter().zip(vectors).map(|(w, v)| w * v[i]).sum())
        .collect()
}

fn scaled(by: f64, vector: &[f64]) -> Vec<f64> {
    vector.iter().map(|value| by * value).collect()
}

fn mean(gradients: &[Vec<f64>]) -> Vec<f64> {
    combine(&vec![1.0 / gradients.len() as f64; gradients.len()], gradients)
}

fn far(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn without(own: &[f64], others: &[&Vec<f64>]) -> Vec<f64> {
    let mut left = own.to_vec();
    for other in others {
        let product = dot(&left, other);
        if product < 0.0 {
            left = combine(&[1.0, -product / dot(other, other)], &[left, (*other).clone()]);
        }
    }
    left
}

prop_compose! {
    /// Some rounds of one federation: the losses and the gradients of each round.
    fn rounds(most: usize, count: usize)(dimension in 1usize..6, agents in 1usize..=most)(
        losses in prop::collection::vec(prop::collection::vec(0.01..3.0f64, agents), count),
        gradients in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(-2.0..2.0f64, dimension), agents), count),
    ) -> Vec<(Vec<f64>, Gradients)> {
        losses.into_iter().zip(gradients).collect()
    }
}

proptest! {
    #[test]
    fn in_their_limits_they_are_the_mean(rounds in rounds(6, 1), level in 0.1..3.0f64) {
        let (losses, gradients) = &rounds[0];
        let plain = step(Mean::default(), losses, gradients);
        let same = vec![level; losses.len()];
        let limits: [(Rule, &[f64]); 8] = [
            (QFedAvg { q: 0.0, ..QFedAvg::default() }.into(), losses),
            (Afl::new(0.0).into(), losses),
            (Afl::new(7.0).into(), losses),
            (MwFed::default().into(), losses),
            (MwFed::new(4.0, Variant::Load).into(), losses),
            (FedFv::new(1.0, 1).into(), losses),
            (MaxFl { e: 0.0, ..MaxFl::default() }.into(), &same),
            (MaxFl { e: 0.0, reading: Reading::Sigmoid, ..MaxFl::default() }.into(), &same),
        ];
        for (rule, losses) in limits {
            let name = rule.name().to_owned();
            prop_assert!(far(&step(rule, losses, gradients), &plain) < 1e-13, "{name}");
        }
        // The same beyond the first round, where the rule has a memory that must not matter.
        for rule in [Rule::from(Afl::new(0.0)), MwFed::new(1.0, Variant::Weight).into()] {
            let mut server = server(rule, gradients[0].len());
            for _ in 0..3 {
                server.step(&reports(losses, gradients)).unwrap();
                prop_assert!(far(server.displacement(), &plain) < 1e-13);
            }
        }
    }

    #[test]
    fn without_conflicts_pcgrad_and_fedfv_are_the_mean(rounds in rounds(6, 1)) {
        let (losses, gradients) = &rounds[0];
        let gradients: Gradients =
            gradients.iter().map(|g| g.iter().map(|value| value.abs()).collect()).collect();
        let plain = step(Mean::default(), losses, &gradients);
        prop_assert!(far(&step(PcGrad::default(), losses, &gradients), &plain) < 1e-13);
        prop_assert!(far(&step(FedFv::new(0.0, 1), losses, &gradients), &plain) < 1e-13);
    }

    #[test]
    fn maxfl_and_q_fedavg_are_their_formulas(
        rounds in rounds(6, 1), q in 0.0..4.0f64, e in 0.0..0.1f64, rho in 0.0..2.0f64,
    ) {
        let (losses, gradients) = &rounds[0];
        for (reading, rho) in
            [(Reading::Gradient, None), (Reading::Sigmoid, None), (Reading::Gradient, Some(rho))]
        {
            let sigma = |f: &f64| 1.0 / (1.0 + (rho.unwrap_or(EPSILON) - f).exp());
            let weight = |f: &f64| match reading {
                Reading::Gradient => sigma(f) * (1.0 - sigma(f)),
                Reading::Sigmoid => sigma(f),
            };
            let weights: Vec<f64> = losses.iter().map(weight).collect();
            let naive =
                scaled(-ETA / (weights.iter().sum::<f64>() + e), &combine(&weights, gradients));
            let rule = MaxFl { reading, rho, e, delta: 0.0 };
            prop_assert!(far(&step(rule, losses, gradients), &naive) < 1e-12);
        }
        let weights: Vec<f64> = losses.iter().map(|f| f.powf(q)).collect();
        let bound: f64 = losses.iter().zip(gradients)
            .map(|(f, g)| q * f.powf(q - 1.0) * dot(g, g) + f.powf(q) / ETA).sum();
        let naive = scaled(-1.0 / bound, &combine(&weights, gradients));
        let rule = QFedAvg { q, ..QFedAvg::default() };
        prop_assert!(far(&step(rule, losses, gradients), &naive) < 1e-12);
    }

    #[test]
    fn afl_climbs_on_the_simplex(rounds in rounds(6, 5), gamma in 0.0..1.0f64) {
        let agents = rounds[0].0.len();
        let mut lambda = vec![1.0 / agents as f64; agents];
        let mut server = server(Afl::new(gamma), rounds[0].1[0].len());
        for (losses, gradients) in &rounds {
            server.step(&reports(losses, gradients)).unwrap();
            let naive = scaled(-ETA, &combine(&lambda, gradients));
            prop_assert!(far(server.displacement(), &naive) < 1e-12);
            let climbed: Vec<f64> = lambda.iter().zip(losses).map(|(l, f)| l + gamma * f).collect();
            // The threshold by bisection.
            let (mut low, mut high) = (-2.0, 5.0);
            for _ in 0..200 {
                let middle = 0.5 * (low + high);
                let total: f64 = climbed.iter().map(|value| (value - middle).max(0.0)).sum();
                if total > 1.0 { low = middle } else { high = middle }
            }
            lambda = climbed.iter().map(|value| (value - low).max(0.0)).collect();
        }
    }

    #[test]
    fn mw_fed_multiplies_and_normalises(rounds in rounds(6, 6), c in 1.0..6.0f64) {
        let agents = rounds[0].0.len();
        let mut p = vec![1.0 / agents as f64; agents];
        let dimension = rounds[0].1[0].len();
        let mut weight = server(MwFed::new(c, Variant::Weight), dimension);
        let mut load = server(MwFed::new(c, Variant::Load), dimension);
        for (number, (losses, gradients)) in rounds.iter().enumerate() {
            let sent = p.clone();
            for (p, loss) in p.iter_mut().zip(losses) {
                *p *= if number == 0 || *loss > EPSILON { c } else { 1.0 };
            }
            let total: f64 = p.iter().sum();
            p.iter_mut().for_each(|p| *p /= total);
            weight.step(&reports(losses, gradients)).unwrap();
            load.step(&reports(losses, gradients)).unwrap();
            let naive = |p: &[f64]| scaled(-ETA, &combine(p, gradients));
            prop_assert!(far(weight.displacement(), &naive(&p)) < 1e-12);
            prop_assert!(far(load.displacement(), &naive(&sent)) < 1e-12);
            let loads: Vec<f64> = load.loads().unwrap().iter().map(|(_, share)| *share).collect();
            prop_assert!(far(&loads, &scaled(agents as f64, &p)) < 1e-12);
        }
    }

    #[test]
    fn fedmgda_is_normalised_averaging_or_the_shortest_combination(
        rounds in rounds(4, 1), e in 0.0..1.0f64,
    ) {
        let (losses, gradients) = &rounds[0];
        let units: Gradients =
            gradients.iter().map(|g| scaled(1.0 / dot(g, g).sqrt(), g)).collect();
        let rule = |e| FedMgdaPlus { e, ..FedMgdaPlus::default() };
        let averaged = scaled(-ETA, &mean(&units));
        prop_assert!(far(&step(rule(0.0), losses, gradients), &averaged) < 1e-12);

        // Projected gradient descent; the projection onto simplex and box by bisection.
        let uniform = 1.0 / units.len() as f64;
        let mut lambda = vec![uniform; units.len()];
        for _ in 0..2000 {
            let combined = combine(&lambda, &units);
            let moved: Vec<f64> =
                lambda.iter().zip(&units).map(|(l, u)| l - 0.2 * dot(u, &combined)).collect();
            let (mut low, mut high) = (-3.0, 3.0);
            let clipped = |shift: f64| -> Vec<f64> {
                moved.iter()
                    .map(|l| (l - shift).clamp((uniform - e).max(0.0), uniform + e)).collect()
            };
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if clipped(middle).iter().sum::<f64>() > 1.0 { low = middle } else { high = middle }
            }
            lambda = clipped(low);
        }
        let naive = combine(&lambda, &units);
        let found = scaled(-1.0 / ETA, &step(rule(e), losses, gradients));
        prop_assert!(dot(&found, &found) <= dot(&naive, &naive) + 1e-12, "shorter by descent");
        prop_assert!(far(&found, &naive) < 2e-2, "{found:?} {naive:?}");
        // With all the room there is, it helps everybody.
        let shortest = step(rule(1.0), losses, gradients);
        prop_assert!(units.iter().all(|u| dot(u, &shortest) < 1e-6));
    }

    #[test]
    fn pcgrad_takes_one_of_the_orders(rounds in rounds(3, 1), seed in 0u64..50) {
        let (losses, gradients) = &rounds[0];
        let found = step(PcGrad { seed, ..PcGrad::default() }, losses, gradients);
        // All ways to order the at most two others of at most three agents.
        let ways = 0..1usize << gradients.len();
        let nearest = ways.map(|way| {
            let cleared: Gradients = (0..gradients.len()).map(|own| {
                let mut others: Vec<&Vec<f64>> = gradients.iter().enumerate()
                    .filter(|(other, _)| *other != own).map(|(_, g)| g).collect();
                if way >> own & 1 == 1 { others.reverse() }
                without(&gradients[own], &others)
            }).collect();
            far(&found, &scaled(-ETA, &mean(&cleared)))
        });
        prop_assert!(nearest.fold(f64::INFINITY, f64::min) < 1e-11);
    }

    #[test]
    fn fedfv_resolves_inside_then_outside_then_rescales(
        rounds in rounds(5, 4), alpha in 0.0..1.0f64, tau in 0u32..4,
    ) {
        let agents = rounds[0].0.len();
        let mut server = server(FedFv::new(alpha, tau), rounds[0].1[0].len());
        let mut history: Vec<(usize, usize, Vec<f64>)> = Vec::new();
        for (number, (losses, gradients)) in rounds.iter().enumerate() {
            // Everybody, then one agent after the other is not asked.
            let asked: Vec<usize> =
                (0..agents).filter(|m| number == 0 || agents == 1 || *m != number % agents).collect();
            let report = |m: &usize| Report::new(AgentId(*m as u64), Loss::Exact(losses[*m]).leaves_at(EPSILON), Vector::F64(&gradients[*m]));
            let sent = Reports::new(gradients[0].len(), asked.iter().map(report).collect()).unwrap();
            server.step(&sent).unwrap();

            let mut order = asked.clone();
            order.sort_by(|a, b| losses[*a].total_cmp(&losses[*b]));
            let gives_way = |m: usize| {
                let above = order.iter().rev().position(|other| *other == m).unwrap();
                above as f64 >= alpha * order.len() as f64
            };
            let turned: Gradients = asked.iter().map(|m| {
                let others: Vec<&Vec<f64>> =
                    order.iter().filter(|n| *n != m).map(|n| &gradients[*n]).collect();
                if gives_way(*m) { without(&gradients[*m], &others) } else { gradients[*m].clone() }
            }).collect();
            let mut v = mean(&turned);
            for age in (1..=tau as usize).rev() {
                let against: Gradients = history.iter()
                    .filter(|(m, round, g)| {
                        let last = history.iter().filter(|h| h.0 == *m).map(|h| h.1).max();
                        round + age == number && last == Some(*round)
                            && !asked.contains(m) && dot(g, &v) < 0.0
                    })
                    .map(|(.., g)| g.clone()).collect();
                if !against.is_empty() {
                    let sum = combine(&vec![1.0; against.len()], &against);
                    v = without(&v, &[&sum]);
                }
            }
            let own: Gradients = asked.iter().map(|m| gradients[*m].clone()).collect();
            let plain = mean(&own);
            let length = dot(&v, &v).sqrt();
            // Where next to nothing is left, the two round differently.
            if length > 1e-6 {
                let naive = scaled(-ETA * dot(&plain, &plain).sqrt() / length, &v);
                prop_assert!(far(server.displacement(), &naive) < 1e-8, "round {number}");
            }
            history.extend(asked.iter().map(|m| (*m, number, gradients[*m].clone())));
        }
    }
}
