use super::*;
use crate::experiment::Experiment;
use crate::model::Network;
use crate::simulator::rows;
use fedstay::Seed;
use fedstay::numerics::{normal, uniform};
use std::fmt::Write;

/// Owners with so many rows of four features, of which two matter; the second is measured in millions.
pub(in crate::simulator) fn table(owners: &[usize], number: bool, seed: u64) -> String {
    let mut rng = Seed(seed).stream("table", 0, 0);
    let mut text = "owner,a,b,c,d,y\n".to_owned();
    for (owner, rows) in owners.iter().enumerate() {
        for _ in 0..*rows {
            let x: Vec<f64> = (0..4).map(|_| normal(&mut rng)).collect();
            let score = 1.5 * x[0] - x[1] + 0.3 * owner as f64;
            let y = match number {
                true => 40.0 + 5.0 * score + normal(&mut rng),
                false => f64::from(uniform(&mut rng) < (1.0 + (-score).exp()).recip()),
            };
            let millions = 3e6 + 1e6 * x[1];
            writeln!(text, "o{owner:03},{},{millions},{},{},{y}", x[0], x[2], x[3]).unwrap();
        }
    }
    text
}

/// A simulator of a federation whose table is written down.
fn simulator(text: &str, set: &[(&str, &str)]) -> Simulator {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("table.csv");
    std::fs::write(&path, text).unwrap();
    let path = format!("{:?}", path.to_str().unwrap());
    let fixed = [("data.kind", "csv"), ("data.path", &path), ("data.owner", "owner")];
    let label = [("data.label", "y"), ("model.kind", "logistic-regression")];
    let set: Vec<(String, String)> = fixed
        .iter()
        .chain(&label)
        .chain(set)
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Simulator::new(&Experiment::parse("", &set).unwrap()).unwrap()
}

const NUMBER: [(&str, &str); 2] = [("data.task", "number"), ("model.kind", "linear-regression")];

/// The mean loss of some of the population's rows.
fn loss(simulator: &Simulator, rows_of: std::ops::Range<usize>, weights: &[f64]) -> f64 {
    let rows = rows(simulator.population.data(), rows_of).unwrap();
    let weights = simulator.network.load(weights).unwrap();
    let network = &simulator.network;
    simulator.workspaces.with(|work| network.evaluate(&weights, &rows, None, work)).unwrap().loss
}

/// With its ridge, every direction leads up from a model of one layer.
#[test]
fn a_linear_baseline_is_the_least_of_its_loss_and_ridge() {
    for (number, set, share) in [(false, &[][..], 0.5), (true, &NUMBER[..], 1.0)] {
        let simulator = simulator(&table(&[300, 200], number, 1), set);
        let Baseline { weights, restraint } = simulator.baselines().pooled().unwrap();
        assert_eq!(restraint, Restraint::Ridge(1.0), "there are many rows");
        let rows = simulator.population.training();
        let ridge = |weights: &[f64]| {
            let slopes = &weights[..4];
            share * slopes.iter().map(|weight| weight * weight).sum::<f64>() / rows.len() as f64
        };
        let total = |weights: &[f64]| loss(&simulator, rows.clone(), weights) + ridge(weights);
        let least = total(&weights);
        for place in 0..weights.len() {
            for by in [0.05, -0.05] {
                let mut moved = weights.clone();
                moved[place] += by;
                assert!(total(&moved) > least, "weight {place} by {by}: {} {least}", total(&moved));
            }
        }
    }
}

#[test]
fn a_feature_in_millions_is_no_obstacle() {
    // As if nobody had standardised anything.
    let mut simulator = simulator(&table(&[400, 400], false, 2), &[]);
    let mut data = crate::data::Dataset::clone(simulator.population.data());
    if let crate::data::Inputs::Floats { rows, features } = &mut data.inputs {
        rows.iter_mut().skip(1).step_by(*features).for_each(|value| *value = 3e3 + 1e3 * *value);
        rows.iter_mut().step_by(*features).for_each(|value| *value *= 20.0);
    }
    simulator.population = simulator.population.with_data(data);
    let pooled = simulator.baselines().pooled().unwrap();
    let test = simulator.population.test();
    let constant = simulator.baselines().constant();
    let (model, nothing) = (
        loss(&simulator, test.clone(), &pooled.weights),
        loss(&simulator, test, &constant.weights),
    );
    assert!(model < 0.55 && nothing > 0.65, "{model} {nothing}");
}

/// The constant is the base rate, or the mean, and has the loss that summaries give.
#[test]
fn a_constant_is_the_base_rate_or_the_mean() {
    for (number, set) in [(false, &[][..]), (true, &NUMBER[..])] {
        let simulator = simulator(&table(&[60, 30], number, 3), set);
        let baselines = simulator.baselines();
        let constant = baselines.constant();
        assert_eq!(constant.restraint, Restraint::Constant);
        assert!(constant.weights[..4].iter().all(|weight| *weight == 0.0));
        let targets = &simulator.population.data().targets;
        let rows = simulator.population.training();
        let says = constant.weights[4];
        match targets.classes() {
            Some(classes) => {
                let ones = classes.of[rows.clone()].iter().filter(|class| **class == 1).count();
                let rate = ones as f64 / rows.len() as f64;
                assert!(((1.0 + (-says).exp()).recip() - rate).abs() < 1e-12);
            }
            None => assert!(says.abs() < 1e-6, "numbers are standardised: {says}"),
        }
        for (agent, own) in baselines.constants().iter().enumerate() {
            let rows = simulator.population.place(agent).unwrap();
            let of = |model: &Baseline| loss(&simulator, rows.clone(), &model.weights);
            assert!(of(own) <= of(&constant) + 1e-9, "agent {agent}");
        }
    }
}

/// Rows of one class are no reason to believe that there is no other.
#[test]
fn an_owner_of_one_class_has_a_finite_best_model() {
    let mut text = "owner,a,y\n".to_owned();
    for row in 0..30 {
        writeln!(text, "one,{},0\nboth,{},{}", row % 7, row % 5, row % 2).unwrap();
    }
    let simulator = simulator(&text, &[]);
    for baseline in
        simulator.baselines().alone().unwrap().iter().chain(&simulator.baselines().constants())
    {
        assert!(baseline.weights.iter().all(|weight| weight.abs() < 20.0), "{baseline:?}");
    }
}

/// An owner with more features than rows is not taken at the word of its training rows.
#[test]
fn few_rows_of_noise_are_not_learnt_by_heart() {
    let mut rng = Seed(5).stream("noise", 0, 0);
    let columns: Vec<String> = (0..40).map(|column| format!("x{column}")).collect();
    let mut text = format!("owner,y,{}\n", columns.join(","));
    for row in 0..120 {
        let values: Vec<String> = (0..40).map(|_| normal(&mut rng).to_string()).collect();
        writeln!(text, "o{},{},{}", row % 2, u8::from(uniform(&mut rng) < 0.5), values.join(","))
            .unwrap();
    }
    for model in ["logistic-regression", "softmax-regression", "mlp"] {
        let simulator = simulator(&text, &[("model.kind", model)]);
        let baselines = simulator.baselines();
        for (agent, alone) in baselines.alone().unwrap().iter().enumerate() {
            let rows = simulator.population.held_back(agent).unwrap();
            let held_back = loss(&simulator, rows.clone(), &alone.weights);
            assert!(held_back < 0.85, "{model}, agent {agent}: {held_back}, {:?}", alone.restraint);
            assert_ne!(alone.restraint, Restraint::Ridge(1.0));
        }
    }
}

#[test]
fn a_net_learns_what_a_plane_cannot_say() {
    let mut rng = Seed(7).stream("xor", 0, 0);
    let mut text = "owner,a,b,y\n".to_owned();
    for row in 0..600 {
        let (a, b) = (normal(&mut rng), normal(&mut rng));
        writeln!(text, "o{},{a},{b},{}", row % 3, u8::from(a * b > 0.0)).unwrap();
    }
    let of = |model: &str| {
        let simulator = simulator(&text, &[("model.kind", model)]);
        let pooled = simulator.baselines().pooled().unwrap();
        loss(&simulator, simulator.population.test(), &pooled.weights)
    };
    let (net, plane) = (of("mlp"), of("logistic-regression"));
    assert!(net < 0.25 && plane > 0.65, "{net} {plane}");
}

/// The same bits, whatever the number of threads and however often.
#[test]
fn threads_change_no_bit_of_a_baseline() {
    let simulator = simulator(&table(&[40, 25, 60, 33], false, 9), &[]);
    let found = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let baselines = simulator.baselines();
        pool.install(|| (baselines.alone().unwrap(), baselines.pooled().unwrap()))
    };
    assert_eq!(found(1), found(3));
}

/// Test rows judge baselines, so they must not choose them.
#[test]
fn test_rows_change_no_baseline() {
    let text = table(&[40, 25], false, 11);
    let models = |text: &str| {
        let simulator = simulator(text, &[]);
        let baselines = simulator.baselines();
        (baselines.alone().unwrap(), baselines.pooled().unwrap(), baselines.constant())
    };
    let simulator = simulator(&text, &[]);
    let (data, test) = (simulator.population.data(), simulator.population.test());
    assert!(!test.is_empty());
    let mut other = crate::data::Dataset::clone(data);
    if let crate::data::Targets::Classes { of, .. } = &mut other.targets {
        of[test].iter_mut().for_each(|class| *class = 1 - *class);
    }
    let mut changed = simulator;
    let before = models(&text);
    changed.population = changed.population.with_data(other);
    let baselines = changed.baselines();
    let after = (baselines.alone().unwrap(), baselines.pooled().unwrap(), baselines.constant());
    assert_eq!(before, after);
}

#[test]
fn one_linear_layer_is_linear_and_nothing_else() {
    let network = |name: &str| -> Network {
        let text = format!("[model]\nkind = \"{name}\"");
        let experiment = Experiment::parse(&text, &[]).unwrap();
        experiment.training().unwrap().model.network(8usize, 2usize).unwrap()
    };
    for (name, linear) in
        [("logistic-regression", true), ("softmax-regression", true), ("mlp", false)]
    {
        assert_eq!(is_linear(&network(name)), linear, "{name}");
    }
}
