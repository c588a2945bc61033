//! The simulator on real digits: exact shortcuts, the switches of an experiment, and the controls.

use fedstay::record::{RoundLine, Spread, Summary};
use fedstay::verdict::{Empty, Verdict};
use fedstay::{
    AgentId, Behaviour, BetweenRounds, Book, Broadcast, Call, Engine, Error, Losses, Report,
    RoundRecord, Score, StopReason, Vector,
};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;
use std::ops::ControlFlow;

fn accuracy(summary: &Summary) -> Spread {
    *summary.score.get("accuracy").unwrap()
}

/// Everything a round decides: who left, who was about to, and the weights, bit for bit.
#[derive(Default)]
struct Trace {
    lines: Vec<RoundLine>,
    weights: Vec<Vec<u64>>,
}

impl Book for Trace {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.lines.push(record.line.clone());
        self.weights.push(record.received.iter().map(|value| value.to_bits()).collect());
        Ok(ControlFlow::Continue(()))
    }
}

fn trial(sets: &[(&str, &str)]) -> Trial {
    let small =
        [("rounds", "60"), ("step_size", "0.2"), ("model.hidden", "16"), ("eval_every", "25")];
    let sets = small.iter().chain(sets).map(|(key, value)| ((*key).into(), (*value).into()));
    Trial::new(Experiment::parse("", &sets.collect::<Vec<_>>()).unwrap()).unwrap()
}

fn play(sets: &[(&str, &str)]) -> (Summary, Trace) {
    let mut trace = Trace::default();
    let summary = trial(sets).run(&mut [&mut trace]).unwrap().unwrap();
    (summary, trace)
}

#[test]
fn a_rule_that_reads_gradients_is_sent_them_and_loses_nobody_by_batches_and_local_steps() {
    let work = [
        ("partition.q", "1"),
        ("local.batch", "16"),
        ("local.steps", "5"),
        ("model.hidden", "32"),
        ("rounds", "240"),
        ("epsilon", "0.1"),
    ];
    let with = |rule: &[(&'static str, &'static str)], told: &[&'static str]| {
        let told = told.iter().map(|told| ("local.exact_gradient", *told));
        play(&work.iter().copied().chain(rule.iter().copied()).chain(told).collect::<Vec<_>>())
    };
    let ada_gd = [("rule.kind", "ada-gd")];
    let (left, _) = with(&ada_gd, &["false"]);
    assert!(left.left.len() >= 3, "the mean of a path is taken for a gradient: {:?}", left.left);
    assert_eq!(left.prediction.left_foreseen, 0);
    let (kept, trace) = with(&ada_gd, &[]);
    assert_eq!(kept.left, []);
    assert_eq!(trace.weights, with(&ada_gd, &["true"]).1.weights);
    // Averaging reads no gradients: left to itself, it is sent none.
    let fedavg = [("rule.kind", "fedavg"), ("rounds", "30")];
    assert_eq!(with(&fedavg, &[]).1.weights, with(&fedavg, &["false"]).1.weights);
    assert_eq!(with(&fedavg, &[]).1.lines, with(&fedavg, &["auto"]).1.lines);
}

#[test]
fn gradients_are_asked_for_where_losses_are_predicted_from_them_and_nowhere_else() {
    let asks = |sets: &[(&str, &str)]| {
        let work = [("local.steps", "5"), ("rule.kind", "ada-gd")];
        let sets = work.iter().chain(sets).map(|(key, value)| ((*key).into(), (*value).into()));
        let experiment = Experiment::parse("", &sets.collect::<Vec<_>>()).unwrap();
        (experiment.asks_for_gradients(), experiment.parts_of_a_report())
    };
    for rule in ["ada-gd", "retain", "level"] {
        assert_eq!(asks(&[("rule.kind", rule)]), (true, 3), "{rule}");
    }
    for rule in ["fedavg", "pcgrad", "fedce", "scaffold"] {
        assert_eq!(asks(&[("rule.kind", rule)]), (false, 2), "{rule}");
    }
    assert_eq!(asks(&[("rule.kind", "fedavg"), ("policy.kind", "guard")]), (true, 3));
    assert_eq!(asks(&[("rule.kind", "fedavg"), ("policy.kind", "preview")]), (false, 2));
    // One step on all rows is the gradient.
    assert_eq!(asks(&[("local.steps", "1")]).1, 2);
    // The loss of another model, and reports in which every vector costs noise.
    assert_eq!(asks(&[("decides_on", "own")]), (false, 2));
    assert_eq!(asks(&[("privacy.clip", "1"), ("privacy.noise", "1")]), (false, 2));
    assert_eq!(asks(&[("decides_on", "own"), ("local.exact_gradient", "true")]), (true, 3));
}

#[test]
fn early_exit_changes_no_decision_and_no_weight() {
    let mut bounded = 0;
    for rule in [
        &[("rule.kind", "fedavg")][..],
        &[("rule.kind", "fedavg"), ("decides_on", "own")],
        &[
            ("rule.kind", "fedavg"),
            ("local.steps", "4"),
            ("local.batch", "16"),
            ("participation", "0.6"),
        ],
        &[("rule.kind", "minibatch-sgd"), ("local.steps", "4"), ("local.batch", "16")],
        &[("rule.kind", "ada-gd"), ("rule.on_settled", "halve")],
        &[("rule.kind", "ada-gd"), ("step_size", "0.02"), ("epsilon", "0.9"), ("rounds", "150")],
        &[
            ("rule.kind", "ada-gd"),
            ("local.steps", "3"),
            ("local.batch", "16"),
            ("local.exact_gradient", "true"),
        ],
        &[("rule.kind", "fedavg"), ("policy.kind", "early-stop")],
        &[("rule.kind", "mw-fed"), ("behaviour.kind", "never"), ("epsilon", "0.8")],
        &[("rule.kind", "pcgrad"), ("participation", "0.6")],
    ] {
        for seed in ["0", "1"] {
            let sets = [rule, &[("seed", seed)]].concat();
            let (early, early_trace) = play(&sets);
            let mut full = trial(&sets);
            full.simulator_mut().unwrap().set_full_losses(true);
            let mut full_trace = Trace::default();
            let full = full.run(&mut [&mut full_trace]).unwrap().unwrap();
            assert_eq!(early_trace.weights, full_trace.weights, "{rule:?}");
            assert_eq!(early.left, full.left, "{rule:?}");
            // What averaging forecasts is for observers only, and it looks no farther than it must.
            let results = |summary: &Summary| -> Vec<Score> {
                summary.agents.iter().map(|agent| agent.score.clone()).collect()
            };
            assert_eq!(results(&early), results(&full), "{rule:?}");
            for (early, full) in early_trace.lines.iter().zip(&full_trace.lines) {
                assert_eq!(early.left, full.left);
                // Rules that act on the split must see the same one.
                if early.case.is_some() {
                    assert_eq!((&early.d, early.case), (&full.d, full.case));
                }
                for (index, agent) in early.agents.iter().enumerate() {
                    let (said, exact) = (early.loss[index].unwrap(), full.loss[index].unwrap());
                    if early.at_least.contains(agent) {
                        bounded += 1;
                        assert!(exact > said, "a lower bound above the loss");
                    } else {
                        assert_eq!(said, exact);
                    }
                }
            }
        }
    }
    assert!(bounded > 1_000, "the exit was taken only {bounded} times");
}

#[test]
fn averaging_loses_everybody_and_ada_gd_nobody() {
    let (averaged, _) = play(&[("rule.kind", "fedavg"), ("rounds", "300")]);
    assert_eq!((averaged.verdict, averaged.stop), (Verdict::Harmful, StopReason::EveryoneLeft));
    let halve = [("rule.kind", "ada-gd"), ("rule.on_settled", "halve"), ("rounds", "300")];
    let (kept, _) = play(&halve);
    assert!(kept.verdict.kept_everybody());
    let (averaged, kept) = (accuracy(&averaged), accuracy(&kept));
    assert!(kept.min > averaged.min + 0.1 && kept.mean > averaged.mean, "{averaged:?} {kept:?}");
    let (ceiling, _) =
        play(&[("rule.kind", "fedavg"), ("behaviour.kind", "never"), ("rounds", "300")]);
    assert_eq!(ceiling.verdict, Verdict::Retained);
    assert!(accuracy(&ceiling).mean >= kept.mean);
}

#[test]
fn with_partial_participation_a_run_ends_as_everyone_left_only_when_nobody_remains() {
    let mut empty = 0;
    for behaviour in ["threshold", "returning"] {
        for seed in ["0", "1", "2"] {
            let (summary, trace) = play(&[
                ("rule.kind", "fedavg"),
                ("participation", "0.3"),
                ("rounds", "200"),
                ("behaviour.kind", behaviour),
                ("seed", seed),
            ]);
            let remain = summary.agents.iter().any(|agent| agent.entry.left.is_none());
            assert_eq!(
                summary.stop == StopReason::EveryoneLeft,
                !remain,
                "{behaviour}, seed {seed}"
            );
            // Everybody who was asked left, others are still in: nothing moves, the run continues.
            let rounds = trace.lines.iter().zip(trace.weights.windows(2));
            for (line, weights) in rounds.filter(|(line, _)| line.agents.is_empty()) {
                assert!(!line.left.is_empty() && weights[0] == weights[1]);
                empty += 1;
            }
        }
    }
    assert!(empty > 0, "no round without a report: the test tests nothing");
}

#[test]
fn the_last_agent_stays_when_it_is_told_to() {
    let sets = [("rule.kind", "fedavg"), ("rounds", "200"), ("last_stays", "true")];
    let (summary, trace) = play(&sets);
    assert_eq!((summary.left.len(), summary.stop), (9, StopReason::RoundLimit));
    assert!(trace.lines.iter().all(|line| !line.agents.is_empty()));
    // Everybody is content at once: the agent with the highest number continues alone.
    let (at_once, _) = play(&[("rule.kind", "fedavg"), ("epsilon", "100"), ("last_stays", "true")]);
    assert_eq!(at_once.left.len(), 9);
    let (gone, _) = play(&[("rule.kind", "fedavg"), ("epsilon", "100")]);
    assert_eq!((gone.stop, gone.rounds), (StopReason::EveryoneLeft, 1));
    assert!(!gone.warnings.is_empty());
}

#[test]
fn an_agent_that_decides_on_its_own_model_leaves_earlier() {
    let work = [
        ("rule.kind", "fedavg"),
        ("local.steps", "5"),
        ("local.batch", "32"),
        ("step_size", "0.05"),
    ];
    let first = |on: &str| {
        let (summary, _) = play(&[&work[..], &[("decides_on", on), ("rounds", "120")]].concat());
        summary.left.first().map_or(u32::MAX, |left| left.round)
    };
    assert!(first("own") < first("received"));
}

#[test]
fn a_relative_epsilon_is_that_multiple_of_what_the_agent_reaches_alone() {
    let sets = [("rule.kind", "fedavg"), ("epsilon", "1.5 * local"), ("rounds", "20")];
    let trial = trial(&sets);
    let alone = trial.simulator().unwrap().alone(0.2, 20).unwrap();
    for (agent, alone) in trial.header().agents.iter().zip(alone) {
        assert_eq!(agent.epsilon, 1.5 * alone);
        assert!(alone > 0.0 && alone < 1.0);
    }
}

#[test]
fn participation_asks_that_share_and_no_other() {
    let (_, trace) =
        play(&[("rule.kind", "fedavg"), ("participation", "0.3"), ("behaviour.kind", "never")]);
    assert!(trace.lines.iter().all(|line| line.agents.len() == 3));
    let asked: std::collections::BTreeSet<_> =
        trace.lines.iter().flat_map(|line| line.agents.iter().copied()).collect();
    assert_eq!(asked.len(), 10);
}

#[test]
fn fedprox_at_zero_is_fedavg_and_pulls_back_above_it() {
    let work = [("rule.kind", "fedavg"), ("local.steps", "5"), ("behaviour.kind", "never")];
    let moved = |mu: &str| {
        let (_, trace) = play(&[&work[..], &[("local.mu", mu), ("rounds", "2")]].concat());
        trace.lines[0].step_norm
    };
    let (_, plain) = play(&[&work[..], &[("rounds", "2")]].concat());
    assert_eq!(moved("0.0"), plain.lines[0].step_norm);
    assert!(moved("1.0") < moved("0.0"));
}

#[test]
fn a_population_of_devices_is_judged_by_those_held_out() {
    let (summary, _) =
        play(&[("rule.kind", "fedavg"), ("agents", "10"), ("population", "20"), ("rounds", "5")]);
    let population = summary.population.unwrap();
    assert!(population.loss > 0.0 && population.of("accuracy").is_some());
}

#[test]
fn diverging_training_is_an_error_that_says_what_to_do() {
    let error = trial(&[("rule.kind", "fedavg"), ("step_size", "1e38"), ("rounds", "50")])
        .run(&mut [])
        .unwrap_err()
        .to_string();
    assert!(!error.is_empty(), "{error}");
    println!("{error}");
}

#[test]
fn loads_change_the_samples_of_those_they_name_and_of_nobody_else() {
    let directions = |loads: Option<&[(AgentId, f64)]>| -> Vec<Vec<f32>> {
        let mut trial = trial(&[("local.batch", "16"), ("agents", "3")]);
        let simulator = trial.simulator_mut().unwrap();
        let weights = simulator.initial_weights();
        let losses = Losses::Exact;
        let broadcast = Broadcast::new(&weights);
        let call = Call { round: 2, broadcast, step_size: 0.2, losses, loads };
        let gathered = simulator.gather(&call).unwrap();
        let direction = |report: &Report<'_>| match report.direction {
            Vector::F32(values) => values.to_vec(),
            Vector::F64(_) | Vector::BF16(_) => unreachable!("nets compute in single precision"),
        };
        gathered.reports.iter().map(direction).collect()
    };
    let usual = directions(None);
    assert_eq!(directions(Some(&[(AgentId(0), 1.0), (AgentId(2), 1.0)])), usual);
    let loaded = directions(Some(&[(AgentId(1), 0.25)]));
    assert_eq!((&loaded[0], &loaded[2]), (&usual[0], &usual[2]));
    assert_ne!(loaded[1], usual[1]);
    // More than all rows is all rows.
    let all = directions(Some(&[(AgentId(1), 1e9)]));
    assert_eq!(all, directions(Some(&[(AgentId(1), 1e6)])));
}

#[test]
fn mw_fed_by_weight_and_by_load_part_ways_once_somebody_is_content() {
    let sets = [("behaviour.kind", "never"), ("epsilon", "1.2"), ("local.batch", "16")];
    let (by_weight, weight) = play(&[&sets[..], &[("rule.kind", "mw-fed")]].concat());
    let (by_load, load) =
        play(&[&sets[..], &[("rule.kind", "mw-fed"), ("rule.variant", "load")]].concat());
    let content = |line: &RoundLine| line.loss.iter().flatten().any(|loss| *loss <= 1.2);
    let first = weight.lines.iter().position(content).unwrap();
    assert!(first > 2);
    assert_eq!(weight.weights[..=first], load.weights[..=first]);
    assert_ne!(weight.weights[first + 1], load.weights[first + 1]);
    assert!(by_weight.everybody_content && by_load.everybody_content);
}

/// The behaviours, each in a setting in which its distinctive trait shows.
const THINKING: &[&[(&str, &str)]] = &[
    &[("behaviour.kind", "utility"), ("behaviour.patience", "12"), ("rule.kind", "fedavg")],
    &[("behaviour.kind", "foresight"), ("behaviour.steps", "4"), ("rule.kind", "fedavg")],
    &[("behaviour.kind", "foresight"), ("decides_on", "own"), ("local.steps", "2")],
    &[("behaviour.kind", "two-sided"), ("behaviour.patience", "9"), ("rule.kind", "fedavg")],
    &[("behaviour.kind", "returning"), ("rule.kind", "fedavg"), ("epsilon", "0.6")],
    &[
        ("behaviour.kind", "returning"),
        ("rule.kind", "mw-fed"),
        ("epsilon", "0.6"),
        ("participation", "0.7"),
        ("last_stays", "true"),
    ],
    &[("behaviour.kind", "shirking"), ("rule.kind", "fedavg"), ("epsilon", "0.6")],
    &[
        ("behaviour.kind", "shirking"),
        ("behaviour.refresh", "5"),
        ("decides_on", "own"),
        ("epsilon", "0.8"),
        ("local.steps", "3"),
        ("local.exact_gradient", "true"),
    ],
    &[
        ("behaviour.kind", "lying"),
        ("rule.kind", "ada-gd"),
        ("rule.on_settled", "halve"),
        ("epsilon", "0.6"),
    ],
    &[
        ("behaviour.kind", "lying"),
        ("behaviour.offset", "-0.3"),
        ("behaviour.within", "0.4"),
        ("epsilon", "0.6"),
    ],
    &[
        ("behaviour.kind", "mixed"),
        (
            "behaviour.of",
            "[{kind='threshold', share=0.5}, {kind='shirking', share=0.3}, {kind='lying', share=0.2}]",
        ),
        ("rule.kind", "fedavg"),
        ("epsilon", "0.5"),
    ],
    &[("behaviour.kind", "opt-out"), ("behaviour.grace", "3"), ("rule.kind", "fedavg")],
    &[("behaviour.kind", "withdrawing"), ("behaviour.after", "25")],
    &[
        ("behaviour.kind", "contagious"),
        ("behaviour.patience", "9"),
        ("rule.kind", "fedavg"),
        ("epsilon", "0.6"),
    ],
    &[("behaviour.kind", "competitor"), ("behaviour.patience", "5"), ("rule.kind", "fedavg")],
    &[("behaviour.kind", "free-riding"), ("behaviour.form", "adaptive-noise")],
    &[("behaviour.kind", "amplifying"), ("rule.kind", "fedavg"), ("epsilon", "0.6")],
    &[("behaviour.kind", "withholding"), ("local.batch", "8"), ("epsilon", "0.6")],
    // Noise is drawn afresh each round from the round's own stream, and flags are remembered.
    &[("privacy.noise", "0.05"), ("behaviour.kind", "shirking"), ("epsilon", "0.6")],
    &[("check_reports", "true"), ("behaviour.kind", "lying"), ("behaviour.within", "0.3")],
];

/// The same, and every other behaviour of the list as it is by default.
fn thinking() -> Vec<Vec<(&'static str, &'static str)>> {
    let has = |name| THINKING.iter().any(|sets| sets.contains(&("behaviour.kind", name)));
    let others = Behaviour::LIST.iter().map(|entry| entry.name).filter(|name| !has(name));
    let others = others.map(|name| vec![("behaviour.kind", name), ("epsilon", "0.6")]);
    THINKING.iter().map(|sets| sets.to_vec()).chain(others).collect()
}

#[test]
fn early_exit_changes_nothing_for_agents_that_think() {
    for sets in thinking() {
        let (early, early_trace) = play(&sets);
        let mut full = trial(&sets);
        full.simulator_mut().unwrap().set_full_losses(true);
        let mut full_trace = Trace::default();
        let full = full.run(&mut [&mut full_trace]).unwrap().unwrap();
        assert_eq!(early_trace.weights, full_trace.weights, "{sets:?}");
        assert_eq!((&early.left, &early.returned), (&full.left, &full.returned), "{sets:?}");
        for (early, full) in early_trace.lines.iter().zip(&full_trace.lines) {
            assert_eq!((&early.left, &early.returned), (&full.left, &full.returned));
            for (index, agent) in early.agents.iter().enumerate() {
                let (said, exact) = (early.loss[index].unwrap(), full.loss[index].unwrap());
                match early.at_least.contains(agent) {
                    true => assert!(exact > said, "{sets:?}: a bound above what is told"),
                    false => assert_eq!(said, exact, "{sets:?}"),
                }
            }
        }
    }
}

/// Stops a trial after some rounds, and keeps its state as a checkpoint would.
struct Cut {
    after: u32,
    state: Option<String>,
}

impl Book for Cut {
    fn round(&mut self, _: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.after -= 1;
        Ok(if self.after == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn between(&mut self, moment: &BetweenRounds<'_>) -> Result<(), Error> {
        if self.after == 0 {
            self.state = Some(serde_json::to_string(&(moment.state)()?).unwrap());
        }
        Ok(())
    }
}

#[test]
fn what_agents_remember_survives_a_checkpoint_bit_for_bit() {
    let problem = [("problem.kind", "huber"), ("step_size", "0.02"), ("rounds", "80")];
    let on_problem = [
        [&problem[..], &[("behaviour.kind", "two-sided"), ("behaviour.patience", "20")]].concat(),
        [&problem[..], &[("behaviour.kind", "shirking"), ("epsilon", "0.5")]].concat(),
        [&problem[..], &[("behaviour.kind", "utility"), ("behaviour.patience", "9")]].concat(),
        [&problem[..], &[("behaviour.kind", "returning"), ("rule.kind", "fedavg")]].concat(),
    ];
    let new = |sets: &[(&str, &str)]| match sets.iter().any(|(key, _)| *key == "problem.kind") {
        true => {
            let sets: Vec<_> = sets.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
            Trial::new(Experiment::parse("", &sets).unwrap()).unwrap()
        }
        false => trial(sets),
    };
    let every = thinking().into_iter().chain(on_problem);
    for sets in every {
        let mut whole = Trace::default();
        let expected = new(&sets).run(&mut [&mut whole]).unwrap().unwrap();
        for after in [3, 17, 38].into_iter().filter(|after| *after < expected.rounds) {
            let mut cut = Cut { after, state: None };
            assert_eq!(new(&sets).run(&mut [&mut cut]).unwrap(), None);
            let mut resumed = new(&sets);
            resumed.resume(serde_json::from_str(&cut.state.unwrap()).unwrap()).unwrap();
            let mut rest = Trace::default();
            let summary = resumed.run(&mut [&mut rest]).unwrap().unwrap();
            assert_eq!(summary, expected, "{sets:?} after {after}");
            assert_eq!(whole.weights[after as usize..], rest.weights, "{sets:?} after {after}");
            assert_eq!(whole.lines[after as usize..], rest.lines, "{sets:?} after {after}");
        }
    }
}

#[test]
fn who_returns_is_recorded_and_counted() {
    let sets = [("behaviour.kind", "returning"), ("rule.kind", "fedavg"), ("epsilon", "0.5")];
    let (summary, trace) = play(&[&sets[..], &[("rounds", "150")]].concat());
    assert!(!summary.returned.is_empty(), "nobody came back");
    assert!(summary.leavers() <= 10 && summary.prediction.left == summary.leavers() as u32);
    // In and out according to the lines: an agent reports exactly while it is in.
    let mut out = std::collections::BTreeSet::new();
    for line in &trace.lines {
        for agent in &line.returned {
            assert!(out.remove(agent) && line.agents.contains(agent));
        }
        for agent in &line.left {
            assert!(out.insert(*agent) && !line.agents.contains(agent));
        }
        assert_eq!(line.agents.len() + out.len(), 10);
    }
    for agent in &summary.agents {
        assert_eq!(agent.entry.left.is_some(), out.contains(&agent.id));
    }
}

#[test]
fn what_sets_a_behaviour_apart_happens() {
    let fedavg = [("rule.kind", "fedavg"), ("epsilon", "0.5"), ("rounds", "150")];
    let with = |sets: &[(&str, &str)]| play(&[&fedavg[..], sets].concat()).0;
    let first = |summary: &Summary| summary.left.first().map_or(u32::MAX, |left| left.round);
    let threshold = with(&[]);
    let foresight = with(&[("behaviour.kind", "foresight"), ("behaviour.steps", "10")]);
    assert!(first(&foresight) < first(&threshold));
    let none = with(&[("behaviour.kind", "foresight"), ("behaviour.steps", "0")]);
    assert_eq!(none.left, threshold.left);
    let shirking = with(&[("behaviour.kind", "shirking")]);
    assert_eq!(shirking.verdict, Verdict::Retained);
    // A cost that no gain makes up for drives everybody out unsatisfied.
    let poor =
        [("behaviour.kind", "utility"), ("behaviour.cost", "1"), ("behaviour.patience", "5")];
    let poor = with(&poor);
    assert_eq!((poor.left.len(), first(&poor)), (10, 6));
    let alone =
        [("behaviour.kind", "two-sided"), ("behaviour.patience", "4"), ("behaviour.alone", "60")];
    assert_eq!(first(&with(&alone)), 5);
    // An agent that pretends to be worse off is not held: ADA-GD pulls it across its floor and
    // loses it.
    let held = [("rule.kind", "ada-gd"), ("rule.on_settled", "halve"), ("epsilon", "0.5")];
    let honest = play(&[&held[..], &[("rounds", "150")]].concat()).0;
    let lying = play(&[&held[..], &[("rounds", "150"), ("behaviour.kind", "lying")]].concat()).0;
    assert!(honest.left.is_empty() && !lying.left.is_empty());
}

#[test]
fn with_nobody_leaving_only_the_departures_are_gone() {
    let sets = [("rule.kind", "fedavg"), ("rounds", "150")];
    let (harmed, _) = play(&sets);
    let whole = |sets: &[(&str, &str)]| {
        let experiment = trial(sets).experiment().clone();
        Trial::nobody_leaves(experiment).unwrap().counterfactual(&mut []).unwrap().unwrap()
    };
    let without = whole(&sets);
    assert!(!harmed.left.is_empty() && without.stop == StopReason::RoundLimit);
    assert!(without.score.get("accuracy").unwrap().min > accuracy(&harmed).min + 0.2);
    // For agents whose only act is to leave, it is the run of agents that never do.
    let (never, _) = play(&[&sets[..], &[("behaviour.kind", "never")]].concat());
    assert_eq!(never.score, without.score);
    // On a named problem too.
    let problem = [("problem.kind", "red-blue"), ("rule.kind", "fedavg")];
    let set: Vec<_> = problem.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    let experiment = Experiment::parse("", &set).unwrap();
    let harmed = Trial::new(experiment.clone()).unwrap().run(&mut []).unwrap().unwrap();
    let without =
        Trial::nobody_leaves(experiment).unwrap().counterfactual(&mut []).unwrap().unwrap();
    assert!(without.score.loss.max < harmed.score.loss.max);
}

#[test]
fn what_an_agent_ends_with_is_compared_with_what_it_makes_alone() {
    let sets = [("rule.kind", "fedavg"), ("rounds", "120"), ("behaviour.kind", "threshold")];
    let mut parting = fedstay_sim::run::DepartureWeights::default();
    let mut trial = trial(&sets);
    let mut summary = trial.run(&mut [&mut parting]).unwrap().unwrap();
    trial.compare_with_alone(&mut summary, &parting).unwrap();
    // All rounds, also where the run ended before.
    let alone = trial.simulator().unwrap().alone(0.2, 120).unwrap();
    for (agent, alone) in summary.agents.iter().zip(alone) {
        let ends = agent.ends_with.as_ref().unwrap();
        let own = agent.alone.as_ref().unwrap();
        assert_eq!(own.loss, alone);
        assert!(ends.of("unseen").is_some() && own.of("unseen").is_some());
        // An agent that left was content with what it left with, whatever became of the model
        // later.
        assert!(agent.entry.left.is_none() || ends.loss <= agent.epsilon);
    }
    assert!(
        summary
            .agents
            .iter()
            .any(|agent| agent.entry.left.is_some() && agent.score.loss > agent.epsilon)
    );
}

#[test]
fn the_key_compares_with_as_many_rounds_alone_as_the_run_might_have_had() {
    let sets = [("rule.kind", "fedavg"), ("rounds", "120"), ("behaviour.kind", "shirking")];
    let (plain, _) = play(&sets);
    let (mut compared, _) = play(&[&sets[..], &[("compare_alone", "true")]].concat());
    let alone = trial(&sets).simulator().unwrap().alone(0.2, 120).unwrap();
    assert!(
        compared.agents.iter().zip(alone).all(|(a, alone)| a.alone.as_ref().unwrap().loss == alone)
    );
    assert!(compared.agents.iter().any(|agent| agent.idle > 0));
    // It adds to the summary and changes nothing else.
    for agent in &mut compared.agents {
        (agent.ends_with, agent.alone, agent.idle) = (None, None, 0);
    }
    assert!(compared.better_than_alone.take().is_some());
    let with_alone = compared.fairness.as_mut().and_then(|fairness| fairness.with_alone.take());
    assert!(with_alone.is_some());
    assert_eq!(compared, plain);
    // On a named problem too.
    let (problem, _) = {
        let set = [("problem.kind", "observation-3"), ("rounds", "50"), ("compare_alone", "true")];
        let set: Vec<_> = set.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        let mut trial = Trial::new(Experiment::parse("", &set).unwrap()).unwrap();
        (trial.run(&mut []).unwrap().unwrap(), trial)
    };
    assert!(problem.agents.iter().all(|agent| agent.alone.is_some() && agent.ends_with.is_some()));
}

#[test]
fn noise_is_paid_for_and_said() {
    let noisy = [("rule.kind", "fedavg"), ("behaviour.kind", "never"), ("rounds", "20")];
    let (clean, _) = play(&noisy);
    let (noisy, trace) = play(&[&noisy[..], &[("privacy.noise", "0.5")]].concat());
    let budget = noisy.privacy.unwrap();
    assert_eq!((budget.reports, clean.privacy), (20, None));
    // μ = (2/0.5)·√(2·20).
    assert!((budget.mu.unwrap() - 4.0 * 40f64.sqrt()).abs() < 1e-12);
    assert!(noisy.score.loss.mean > clean.score.loss.mean);
    assert!(trace.lines.iter().all(|line| line.at_least.is_empty()));
}

#[test]
fn liars_are_flagged_on_a_convex_model_and_honest_agents_are_not() {
    let convex = [("model.kind", "softmax-regression"), ("epsilon", "0.4"), ("rounds", "150")];
    let set = |more: &[(&str, &str)]| {
        let sets = [("step_size", "0.2"), ("eval_every", "50")];
        let sets = sets.iter().chain(&convex).chain(more);
        let sets: Vec<_> = sets.map(|(k, v)| ((*k).into(), (*v).into())).collect();
        Trial::new(Experiment::parse("", &sets).unwrap()).unwrap().run(&mut []).unwrap().unwrap()
    };
    for rule in ["fedavg", "ada-gd", "retain"] {
        let honest = set(&[("rule.kind", rule)]);
        assert!(honest.warnings.is_empty(), "{rule}: {:?}", honest.warnings);
        assert!(honest.flagged.is_empty(), "{rule}: {:?}", honest.flagged);
    }
    let of = "[{kind='lying', agents=[3], within=0.2}, {kind='threshold', share=1.0}]";
    let lied = set(&[("rule.kind", "retain"), ("behaviour.kind", "mixed"), ("behaviour.of", of)]);
    assert_eq!(lied.flagged, [fedstay::AgentId(3)]);
    assert_eq!(lied.warnings.len(), 1, "{:?}", lied.warnings);
    assert!(lied.warnings[0].contains("agent 3"), "{:?}", lied.warnings);
    assert_eq!(lied.agents[3].behaviour.as_deref(), Some("lying"));
}

#[test]
fn a_model_no_better_than_always_the_same_answer_is_empty() {
    let pure = [("rule.kind", "fedavg"), ("partition.kind", "by-class"), ("partition.q", "1")];
    let run = |more: &[(&str, &str)]| play(&[&pure, more].concat()).0;
    let untrained = run(&[("step_size", "1e-9"), ("rounds", "2")]);
    assert!(untrained.left.is_empty(), "it was called unsatisfied");
    assert_eq!((untrained.verdict, untrained.empty), (Verdict::Empty, Some(Empty::Constant)));
    // Ten classes, as frequent: nobody learns anything from that.
    let constant = untrained.constant.as_ref().unwrap().0.clone();
    assert!((constant.loss - 10f64.ln()).abs() < 1e-3, "{constant:?}");
    assert!((constant.of("accuracy").unwrap() - 0.1).abs() < 1e-3, "{constant:?}");
    assert!(untrained.score.loss.mean > constant.loss);
    // Everybody is content with it: it is no better for that.
    let pleased = run(&[("step_size", "1e-9"), ("rounds", "2"), ("epsilon", "50")]);
    assert!(pleased.everybody_content, "it was called benign");
    assert_eq!((pleased.verdict, pleased.empty), (Verdict::Empty, Some(Empty::NobodyTrained)));
    // A trained one is better, and where nobody is measured nobody can say.
    let trained = run(&[("behaviour.kind", "never"), ("rounds", "40")]);
    assert_eq!((trained.empty, trained.constant), (None, untrained.constant));
    let unmeasured = run(&[("step_size", "1e-9"), ("rounds", "2"), ("eval_agents", "none")]);
    assert_eq!((unmeasured.verdict, unmeasured.constant), (Verdict::Unknown, None));
}
