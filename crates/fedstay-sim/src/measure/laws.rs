//! What holds for every measure in the list.

use super::LIST;
use crate::model::{Reads, Said};
use fedstay::{Better, Measure, Score};
use proptest::prelude::*;

/// Rows with a label, and how much the model leans to each of three classes.
fn rows() -> impl Strategy<Value = Vec<(u32, [f32; 3])>> {
    prop::collection::vec((0..3_u32, prop::array::uniform3(0.01..1.0_f32)), 1..40)
}

/// What is said of rows by a model that leans so.
fn said(rows: &[(u32, [f32; 3])]) -> Said {
    let mut said = Said { classes: 3, ..Said::default() };
    for (label, leans) in rows {
        let sum: f32 = leans.iter().sum();
        let largest = leans.iter().copied().fold(f32::MIN, f32::max);
        let first = leans.iter().position(|lean| *lean == largest);
        said.labels.push(*label);
        said.hits.push(first == Some(*label as usize));
        said.probabilities.extend(leans.iter().map(|lean| lean / sum));
    }
    said
}

#[test]
fn each_has_a_name_of_its_own_that_files_can_hold() {
    for (place, listed) in LIST.iter().enumerate() {
        let Measure { name, label, .. } = &listed.measure;
        assert!(Measure::is_name(name) && fedstay::record::is_free(name), "{name}");
        assert!(!label.is_empty() && !listed.about.is_empty() && !listed.about.ends_with('.'));
        let others = LIST[..place].iter();
        assert!(others.map(|other| &other.measure).all(|other| other.name != *name), "{name}");
    }
    assert_eq!(LIST[0].measure, Measure::ACCURACY, "the one that runs ask for by default");
}

#[test]
fn each_says_that_it_reads_probabilities_if_it_does() {
    let all = said(&[(0, [0.8, 0.1, 0.1]), (1, [0.5, 0.3, 0.2]), (2, [0.1, 0.2, 0.7])]);
    let hits = Said { probabilities: Vec::new(), ..all.clone() };
    for listed in LIST.iter().filter(|listed| listed.reads == Reads::Hits) {
        assert_eq!((listed.of)(&hits), (listed.of)(&all), "{}", listed.name());
    }
}

/// A model that is sure and right has the best value, and one that is sure and wrong a worse one.
#[test]
fn each_says_which_direction_is_better() {
    let sure = |right: bool| {
        let row = |label: u32| {
            let mut leans = [0.001_f32; 3];
            leans[(label as usize + usize::from(!right)) % 3] = 1.0;
            (label, leans)
        };
        said(&[0, 1, 2, 0, 1, 2].map(row))
    };
    for listed in LIST {
        let value = |right| (listed.of)(&sure(right)).unwrap();
        let (right, wrong) = (value(true), value(false));
        let better = match listed.measure.better {
            Better::Higher => right > wrong,
            Better::Lower => right < wrong,
        };
        assert!(better, "{}: {right} for a model that is right, {wrong} else", listed.name());
    }
}

proptest! {
    #[test]
    fn each_is_finite_and_blind_to_the_order_of_rows(rows in rows(), turn in 0..40_usize) {
        let mut turned = rows.clone();
        turned.rotate_left(turn % rows.len());
        for listed in LIST {
            let (value, again) = ((listed.of)(&said(&rows)), (listed.of)(&said(&turned)));
            prop_assert_eq!(value.is_some(), again.is_some());
            if let (Some(value), Some(again)) = (value, again) {
                prop_assert!(value.is_finite() && (value - again).abs() < 1e-9, "{}", listed.name());
                let share = !listed.measure.is_share() || (0.0..=1.0).contains(&value);
                prop_assert!(share, "{}: {value}", listed.name());
            }
        }
    }
}

/// What is asked for together is what is asked for alone.
#[test]
fn a_measure_does_not_depend_on_the_others() {
    use crate::experiment::Experiment;
    use crate::run::Trial;
    let run = |names: &str| {
        let text = format!(
            "rounds = 3\nseed = 3\nmeasure = {names}\neval_every = 1\n[rule]\nkind = \"fedavg\"\n\
             [data]\nper_agent = 24\n[model]\nhidden = [4]"
        );
        let mut trial = Trial::new(Experiment::parse(&text, &[]).unwrap()).unwrap();
        trial.run(&mut []).unwrap().unwrap()
    };
    let plain = run("[\"accuracy\"]");
    let all = run(&format!("{:?}", super::NAMES));
    let (mut alone, mut together) = (plain.agents.iter(), all.agents.iter());
    for (alone, together) in alone.by_ref().zip(together.by_ref()) {
        assert_eq!(together.score.loss, alone.score.loss);
        assert_eq!(together.score.of("accuracy"), alone.score.of("accuracy"));
    }
    assert_eq!(all.weights, plain.weights);
    for listed in LIST {
        let name = listed.name();
        let one = run(&format!("[{name:?}]"));
        let values = |score: &Score| score.of(name);
        for (one, together) in one.agents.iter().zip(&all.agents) {
            assert_eq!(values(&one.score), values(&together.score), "{name}");
        }
        assert_eq!(one.headline().0, &listed.measure);
    }
}
