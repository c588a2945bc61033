//! An experiment's settings in words: every figure says what it was made with.

use fedstay_sim::experiment::{Epsilon, Experiment, Training};
use fedstay_sim::model::Model;
use fedstay_sim::training::{BatchSize, DecidesOn, Local, StepSize};
use serde::Serialize;

/// Who takes part, with which data and model.
pub(super) fn federation(experiment: &Experiment) -> String {
    let training = experiment.training();
    let dealt = training.map(|training| training.partition.describe()).unwrap_or_default();
    federation_dealt(experiment, &dealt)
}

/// The same sentence for a figure that deals out the data in several ways.
pub(super) fn federation_dealt(experiment: &Experiment, dealt: &str) -> String {
    let Some(training) = experiment.training() else { return experiment.on().to_owned() };
    let rows = match training.data.per_agent {
        Some(rows) => format!(", {rows} rows each"),
        None => String::new(),
    };
    format!(
        "{}, {} agents{rows}, {dealt}; {}.",
        experiment.on(),
        training.agents,
        model(&training.model)
    )
}

fn model(model: &Model) -> String {
    let (filters, hidden, activation, init) = match model {
        Model::Mlp(mlp) => (None, &mlp.hidden, mlp.activation, mlp.init),
        Model::Cnn(cnn) => (Some(cnn.channels), &cnn.hidden, cnn.activation, cnn.init),
        Model::SoftmaxRegression(_) | Model::LinearRegression(_) | Model::LogisticRegression(_) => {
            return "linear model".into();
        }
    };
    let widths: Vec<String> = hidden.iter().map(ToString::to_string).collect();
    let filters = filters.map_or(String::new(), |[first, second]| {
        format!("convolutions of {first} and {second} filters, ")
    });
    format!(
        "{filters}{} hidden {} units, {} init",
        widths.join(" and "),
        word(activation),
        word(init)
    )
}

/// A value's name in a configuration.
fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// `steps of η on batches of 64`.
pub(super) fn steps(local: &Local) -> String {
    let batch = match local.batch {
        BatchSize::Full => "full batch".to_owned(),
        BatchSize::Samples(samples) => format!("batches of {samples}"),
    };
    let step = match local.step {
        StepSize::Eta => "η",
        StepSize::EtaOverK => "η/K",
    };
    let plural = if local.steps == 1 && local.epochs.is_none() { "" } else { "s" };
    format!("step{plural} of {step} on {batch}")
}

/// When an agent leaves.
pub(super) fn decision(experiment: &Experiment) -> String {
    let Some(training) = experiment.training() else { return String::new() };
    let whose = match training.decides_on {
        DecidesOn::Received => "the model it receives",
        DecidesOn::Own => "its own model after its local steps",
    };
    format!("An agent leaves for good once the loss of {whose} is at most ε.")
}

/// How an agent works and when it leaves.
pub(super) fn work(experiment: &Experiment) -> String {
    let Some(training) = experiment.training() else { return String::new() };
    let Training { local, decides_on, last_stays, .. } = training;
    let whose = match decides_on {
        DecidesOn::Received => "the model it receives",
        DecidesOn::Own => "its own model after its local steps",
    };
    let epsilon = match &experiment.epsilon {
        Epsilon::One(epsilon) => format!("ε = {epsilon}"),
        _ => "its ε".to_owned(),
    };
    let last = if *last_stays { "; the last one left goes on training" } else { "" };
    let often = match local.epochs {
        Some(epochs) => format!("{epochs} local epoch{},", if epochs == 1 { "" } else { "s" }),
        None => format!("K = {} local", local.steps),
    };
    format!(
        "{often} {}. An agent leaves for good once the loss of {whose} is at most {epsilon}{last}.",
        steps(local)
    )
}

/// `η = 0.1`, with δ where the rule has one.
pub(super) fn step(experiment: &Experiment) -> String {
    let eta = match experiment.step_size {
        small if small < 1e-3 => format!("{small:e}"),
        eta => eta.to_string(),
    };
    match experiment.rule.slack() {
        Some(delta) => format!("η = {eta}, δ = {delta}"),
        None => format!("η = {eta}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{LIST, experiment};

    #[test]
    fn every_figure_says_what_it_was_made_with() {
        let texts = LIST.iter().filter_map(|entry| Some((entry.name, experiment(entry.name)?)));
        for (name, text) in texts {
            let experiment = Experiment::parse(text, &[]).unwrap();
            let said = format!("{} {}", federation(&experiment), work(&experiment));
            for part in ["cifar10", "rows each", "as described", "softplus", "init", "ε = "] {
                assert!(said.contains(part), "figure {name}: {said}");
            }
            assert!(step(&experiment).starts_with("η = "));
        }
        let small = experiment("8b").map(|text| Experiment::parse(text, &[]).unwrap()).unwrap();
        assert_eq!(step(&small), "η = 2e-4, δ = 0");
    }
}
