//! Every measure against scikit-learn 1.9 on the same rows. The probabilities are multiples of a power
//! of two, so that both read the same ones; some are equal, so that ties count.

use super::Listed;
use crate::data::Scale;
use crate::model::{ClassesSaid, NumbersSaid, Said};

/// What is said by a model with these probabilities, in parts of `whole`.
fn classes<const N: usize>(labels: &[u32], parts: &[[u32; N]], whole: u32) -> Said {
    let mut said = ClassesSaid { classes: N, ..ClassesSaid::default() };
    for (label, parts) in labels.iter().zip(parts) {
        let largest = parts.iter().max();
        let own = f64::from(parts[*label as usize]) / f64::from(whole);
        said.labels.push(*label);
        said.hits
            .push(parts.iter().position(|part| Some(part) == largest) == Some(*label as usize));
        said.losses.push(-own.ln() as f32);
        said.probabilities.extend(parts.iter().map(|part| *part as f32 / whole as f32));
    }
    Said::Classes(said)
}

fn agrees(said: &Said, expected: &[(&str, f64)]) {
    for (name, expected) in expected {
        let found = Listed::find(name).unwrap().of(said).unwrap();
        // The log loss reads the losses, which have single precision.
        let most = if *name == "log-loss" { 1e-7 } else { 1e-9 };
        assert!((found - expected).abs() < most, "{name}: {found}, not {expected}");
    }
}

#[test]
fn measures_of_two_classes_are_those_of_scikit_learn() {
    let labels = [1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0, 1];
    let second = [
        44, 45, 14, 63, 31, 40, 31, 13, 35, 22, 48, 43, 17, 10, 32, 57, 12, 27, 29, 3, 24, 58, 1,
        35,
    ];
    let said = classes(&labels, &second.map(|part| [64 - part, part]), 64);
    let expected = [
        ("auroc", 0.9685314685314685),
        ("average-precision", 0.9595677050222504),
        ("brier", 0.11635335286458333),
        ("log-loss", 0.3823868117244768),
        ("accuracy", 0.875),
        ("balanced", 0.8706293706293706),
    ];
    agrees(&said, &expected);
}

#[test]
fn measures_of_three_classes_are_those_of_scikit_learn() {
    let labels = [2, 1, 0, 0, 2, 0, 1, 0, 2, 2, 0, 0, 1, 1, 1, 2, 2, 0, 0, 1, 2, 0, 0, 1];
    let parts = [
        [44, 34, 50],
        [40, 39, 49],
        [60, 57, 11],
        [33, 39, 56],
        [21, 34, 73],
        [54, 21, 53],
        [51, 63, 14],
        [72, 22, 34],
        [59, 37, 32],
        [29, 25, 74],
        [19, 50, 59],
        [70, 53, 5],
        [29, 75, 24],
        [47, 68, 13],
        [47, 45, 36],
        [32, 33, 63],
        [15, 60, 53],
        [87, 12, 29],
        [80, 13, 35],
        [10, 113, 5],
        [16, 61, 51],
        [111, 4, 13],
        [88, 29, 11],
        [22, 57, 49],
    ];
    // AUROC and average precision: each class against the others, and the mean of the three.
    let expected = [
        ("auroc", 0.8745098039215686),
        ("average-precision", 0.8244873116301688),
        ("brier", 0.443511962890625),
        ("log-loss", 0.7677566071528279),
    ];
    agrees(&classes(&labels, &parts, 128), &expected);
}

#[test]
fn measures_of_numbers_are_those_of_scikit_learn_in_the_numbers_own_unit() {
    let targets = [57, -33, -35, 60, 55, 58, 59, 15, -43, -28, -38, 23, 3, 58, -23, -59];
    let predictions = [50, -20, -32, 49, 69, 39, 72, 14, -58, -32, -25, 26, -7, 60, -29, -45];
    let numbers = |parts: [i16; 16]| parts.map(|part| f32::from(part) / 32.0).to_vec();
    let said = Said::Numbers(NumbersSaid {
        targets: numbers(targets),
        predictions: numbers(predictions),
        losses: Vec::new(),
        scale: Scale { mean: 100.0, deviation: 2.5 },
    });
    let expected = [("rmse", 0.8355175639143531), ("mae", 0.72265625), ("r2", 0.9394178903438987)];
    agrees(&said, &expected);
}
