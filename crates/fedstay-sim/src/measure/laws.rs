//! What holds for every measure in the list.

use super::{Draws, LIST, Listed, Over, difference, interval, intervals};
use crate::data::{Predicted, Scale};
use crate::model::{ClassesSaid, NumbersSaid, Reads, Said};
use fedstay::{Better, Interval, Measure, Score, Seed};
use proptest::prelude::*;

/// Rows with a label, and how much the model leans to each of three classes.
fn rows() -> impl Strategy<Value = Vec<(u32, [f32; 3])>> {
    prop::collection::vec((0..3_u32, prop::array::uniform3(0.01..1.0_f32)), 1..40)
}

/// What is said of rows by a model that leans so: of three classes, of the first two of them, and of a
/// number that is the label.
fn said(rows: &[(u32, [f32; 3])]) -> [Said; 3] {
    let labels = || rows.iter().map(|(label, _)| *label as f32).collect();
    let mut numbers = NumbersSaid {
        targets: labels(),
        predictions: Vec::new(),
        losses: Vec::new(),
        scale: Scale { mean: 10.0, deviation: 2.0 },
    };
    for (label, leans) in rows {
        let predicted = leans[1] + 2.0 * leans[2];
        numbers.predictions.push(predicted);
        numbers.losses.push((predicted - *label as f32).powi(2));
    }
    let folded: Vec<(u32, [f32; 2])> =
        rows.iter().map(|(label, [a, b, c])| (*label % 2, [a + c, *b])).collect();
    [Said::Classes(of_classes(rows)), Said::Classes(of_classes(&folded)), Said::Numbers(numbers)]
}

fn of_classes<const N: usize>(rows: &[(u32, [f32; N])]) -> ClassesSaid {
    let mut said = ClassesSaid { classes: N, ..ClassesSaid::default() };
    for (label, leans) in rows {
        let sum: f32 = leans.iter().sum();
        let largest = leans.iter().copied().fold(f32::MIN, f32::max);
        let first = leans.iter().position(|lean| *lean == largest);
        said.labels.push(*label);
        said.hits.push(first == Some(*label as usize));
        said.losses.push(-(leans[*label as usize] / sum).ln());
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
    let rows = [(0, [0.8, 0.1, 0.1]), (1, [0.5, 0.3, 0.2]), (2, [0.1, 0.2, 0.7])];
    let all = of_classes(&rows);
    let hits = Said::Classes(ClassesSaid { probabilities: Vec::new(), ..all.clone() });
    let all = Said::Classes(all);
    let reads = |listed: &&Listed| listed.task() == Predicted::Classes;
    for listed in LIST.iter().filter(reads).filter(|listed| listed.reads == Reads::Hits) {
        assert_eq!(listed.of(&hits), listed.of(&all), "{}", listed.name());
    }
}

#[test]
fn each_is_of_classes_or_of_numbers_and_has_no_value_for_the_others() {
    let said = said(&[(0, [0.8, 0.1, 0.1]), (1, [0.5, 0.3, 0.2]), (2, [0.1, 0.2, 0.7])]);
    for listed in LIST {
        let there: Vec<bool> = said.iter().map(|said| listed.of(said).is_some()).collect();
        let classes = matches!(listed.over, Over::Classes(_));
        assert_eq!(there, [classes, classes, !classes], "{}", listed.name());
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
        for (right, wrong) in sure(true).iter().zip(&sure(false)) {
            let (Some(right), Some(wrong)) = (listed.of(right), listed.of(wrong)) else { continue };
            let better = match listed.measure.better {
                Better::Higher => right > wrong,
                Better::Lower => right < wrong,
            };
            assert!(better, "{}: {right} for a model that is right, {wrong} else", listed.name());
        }
    }
}

/// Rows of one class cannot be ranked, and numbers that are all the same not be explained.
#[test]
fn a_measure_has_no_value_where_it_is_not_defined() {
    let rows = [(0, [0.5, 0.25, 0.25]), (0, [0.25, 0.5, 0.25])];
    let undefined: Vec<&str> = LIST
        .iter()
        .filter(|listed| said(&rows).iter().all(|said| listed.of(said).is_none()))
        .map(Listed::name)
        .collect();
    assert_eq!(undefined, ["auroc", "average-precision", "r2"]);
    let draws = Draws { seed: Seed(1), agent: 0 };
    let auroc = Listed::find("auroc").unwrap();
    assert_eq!(interval(auroc, &said(&rows)[0], draws), None);
}

/// Of more classes than two, those that are not there are not counted.
#[test]
fn a_class_that_is_not_there_does_not_take_the_others_measure_away() {
    let rows = [(0, [0.6, 0.3, 0.1]), (1, [0.2, 0.7, 0.1]), (1, [0.5, 0.4, 0.1])];
    let [three, _, _] = said(&rows);
    assert_eq!(Listed::find("auroc").unwrap().of(&three), Some(1.0));
}

proptest! {
    #[test]
    fn each_is_finite_and_blind_to_the_order_of_rows(rows in rows(), turn in 0..40_usize) {
        let mut turned = rows.clone();
        turned.rotate_left(turn % rows.len());
        for listed in LIST {
            for (rows, turned) in said(&rows).iter().zip(&said(&turned)) {
                let (value, again) = (listed.of(rows), listed.of(turned));
                prop_assert_eq!(value.is_some(), again.is_some());
                if let (Some(value), Some(again)) = (value, again) {
                    let apart = (value - again).abs() / value.abs().max(1.0);
                    prop_assert!(value.is_finite() && apart < 1e-9, "{}", listed.name());
                    let share = !listed.measure.is_share() || (0.0..=1.0).contains(&value);
                    prop_assert!(share, "{}: {value}", listed.name());
                }
            }
        }
    }

    /// A row that counts twice is two rows.
    #[test]
    fn a_weight_says_how_often_a_row_is_there(
        rows in prop::collection::vec((0..3_u32, prop::array::uniform3(0.01..1.0_f32), 0..4_u32), 1..30),
    ) {
        let once: Vec<_> = rows.iter().map(|(label, leans, _)| (*label, *leans)).collect();
        let weights: Vec<u32> = rows.iter().map(|(_, _, weight)| *weight).collect();
        let repeated = rows.iter().flat_map(|(label, leans, weight)| {
            std::iter::repeat_n((*label, *leans), *weight as usize)
        });
        let repeated: Vec<_> = repeated.collect();
        prop_assume!(!repeated.is_empty());
        for listed in LIST {
            for (once, repeated) in said(&once).iter().zip(&said(&repeated)) {
                let weighted = listed.weighted(once).and_then(|over| over(&weights));
                match (weighted, listed.of(repeated)) {
                    (Some(own), Some(other)) => {
                        let apart = (own - other).abs() / own.abs().max(1.0);
                        prop_assert!(apart < 1e-9, "{}: {own}, {other}", listed.name());
                    }
                    (own, other) => prop_assert_eq!(own, other, "{}", listed.name()),
                }
            }
        }
    }
}

/// A hundred rows, a third of them predicted wrongly.
fn hundred(shift: f32) -> [Said; 3] {
    let row = |row: u32| {
        let label = row * 7 % 3;
        let mut leans = [0.2 + (row % 11) as f32 / 30.0; 3];
        leans[label as usize] += (row * 13 % 17) as f32 / 17.0 + shift - 0.3;
        (label, leans.map(|lean| lean.max(0.01)))
    };
    said(&(0..100).map(row).collect::<Vec<_>>())
}

#[test]
fn an_interval_holds_the_value_and_depends_on_nothing_but_seed_agent_and_rows() {
    let draws = |seed, agent| Draws { seed: Seed(seed), agent };
    for said in &hundred(0.0) {
        let all: Vec<&Listed> = LIST.iter().collect();
        let together = intervals(&all, said, draws(1, 2));
        for (listed, found) in LIST.iter().zip(together) {
            assert_eq!(found, interval(listed, said, draws(1, 2)), "{}", listed.name());
            let Some(Interval { value, low, high }) = found else { continue };
            assert_eq!(Some(value), listed.of(said));
            let holds = low < high && low <= value && value <= high;
            assert!(holds, "{}: {low} {value} {high}", listed.name());
        }
        let with = |seed, agent| intervals(&all, said, draws(seed, agent));
        assert!(with(1, 2) != with(2, 2) && with(1, 2) != with(1, 3));
    }
}

/// The interval of a share is the one that theory gives, p ± 1.96 √(p (1 − p) / n).
#[test]
fn the_interval_of_an_accuracy_is_as_wide_as_theory_says() {
    let hits: Vec<bool> = (0..400).map(|row| row % 5 != 0).collect();
    let labels = vec![0; 400];
    let said = Said::Classes(ClassesSaid { classes: 2, labels, hits, ..ClassesSaid::default() });
    let draws = Draws { seed: Seed(0), agent: 0 };
    let found = interval(&LIST[0], &said, draws).unwrap();
    assert_eq!(found.value, 0.8);
    assert!((found.low - 0.7608).abs() < 0.004 && (found.high - 0.8392).abs() < 0.004, "{found:?}");
}

#[test]
fn a_difference_is_paired_by_rows() {
    let draws = Draws { seed: Seed(4), agent: 0 };
    for (from, to) in hundred(0.0).iter().zip(&hundred(0.1)) {
        for listed in LIST {
            let Some(own) = interval(listed, from, draws) else { continue };
            let same = difference(listed, from, from, draws).unwrap();
            assert_eq!((same.value, same.low, same.high), (0.0, 0.0, 0.0));
            let found = difference(listed, from, to, draws).unwrap();
            let (before, after) = (listed.of(from).unwrap(), listed.of(to).unwrap());
            assert_eq!(found.value, after - before);
            let back = difference(listed, to, from, draws).unwrap();
            let apart = (back.low + found.high).abs().max((back.high + found.low).abs());
            assert!(apart < 1e-12, "{}: {found:?} {back:?}", listed.name());
            if listed.name() == "brier" || listed.name() == "rmse" {
                assert!(found.high - found.low < own.high - own.low, "{}", listed.name());
            }
        }
        assert_eq!(difference(&LIST[0], from, &from.part(0..50), draws), None);
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
    let of_classes = || LIST.iter().filter(|listed| listed.task() == Predicted::Classes);
    let all = run(&format!("{:?}", of_classes().map(Listed::name).collect::<Vec<_>>()));
    let (mut alone, mut together) = (plain.agents.iter(), all.agents.iter());
    for (alone, together) in alone.by_ref().zip(together.by_ref()) {
        assert_eq!(together.score.loss, alone.score.loss);
        assert_eq!(together.score.of("accuracy"), alone.score.of("accuracy"));
    }
    assert_eq!(all.weights, plain.weights);
    for listed in of_classes() {
        let name = listed.name();
        let one = run(&format!("[{name:?}]"));
        let values = |score: &Score| score.of(name);
        for (one, together) in one.agents.iter().zip(&all.agents) {
            assert_eq!(values(&one.score), values(&together.score), "{name}");
        }
        assert_eq!(one.headline().0, &listed.measure);
    }
}
