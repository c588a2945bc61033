//! Many agents: only those that are asked cost anything, what is not measured is not claimed, and
//! neither threads nor a restart change a bit.

use fedstay::record::{MOST_LISTED, RoundLine, Summary};
use fedstay::verdict::Verdict;
use fedstay::{BetweenRounds, Book, Error, RoundRecord, SessionState};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;
use std::ops::ControlFlow;

fn experiment(sets: &[(&str, &str)]) -> Experiment {
    let small =
        [("rounds", "30"), ("step_size", "0.2"), ("model.hidden", "[8]"), ("eval_every", "7")];
    let sets = small.iter().chain(sets).map(|(key, value)| ((*key).into(), (*value).into()));
    Experiment::parse("", &sets.collect::<Vec<_>>()).unwrap()
}

/// Keeps lines and weights, and the state after some round.
#[derive(Default)]
struct Watch {
    lines: Vec<RoundLine>,
    weights: Vec<Vec<u64>>,
    save_after: usize,
    saved: Option<SessionState>,
}

impl Book for Watch {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.lines.push(record.line.clone());
        self.weights.push(record.received.iter().map(|value| value.to_bits()).collect());
        Ok(ControlFlow::Continue(()))
    }

    fn between(&mut self, moment: &BetweenRounds<'_>) -> Result<(), Error> {
        if self.lines.len() == self.save_after {
            self.saved = Some((moment.state)()?);
        }
        Ok(())
    }
}

fn play(sets: &[(&str, &str)], threads: usize) -> (Summary, Watch) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut trial = Trial::new(experiment(sets)).unwrap();
        let mut watch = Watch { save_after: SAVED, ..Watch::default() };
        let summary = trial.run(&mut [&mut watch]).unwrap().unwrap();
        (summary, watch)
    })
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

/// The round after which runs are saved.
const SAVED: usize = 5;

/// What a large run and everything new about it may be.
const RUNS: &[&[(&str, &str)]] = &[
    &[
        ("rule.kind", "fedavg"),
        ("step_size", "0.03"),
        ("local.epochs", "1"),
        ("local.batch", "10"),
        ("epsilon", "0.8"),
    ],
    &[
        ("rule.kind", "fedavg"),
        ("agents", "20000"),
        ("participation", "0.001"),
        ("data.replace", "true"),
        ("data.per_agent", "12"),
        ("eval_agents", "15"),
        ("epsilon", "1.9"),
        ("local.epochs", "2"),
        ("local.batch", "5"),
    ],
    &[
        ("rule.kind", "ada-gd"),
        ("agents", "300"),
        ("participation", "0.1"),
        ("data.replace", "true"),
        ("data.per_agent", "20"),
        ("partition.kind", "dirichlet"),
        ("partition.alpha", "0.3"),
        ("partition.sizes", "dirichlet"),
        ("eval_agents", "none"),
        ("behaviour.kind", "returning"),
        ("epsilon", "1.5"),
    ],
    &[
        ("rule.kind", "fedavg"),
        ("agents", "12"),
        ("participation", "0.5"),
        ("behaviour.kind", "mixed"),
        (
            "behaviour.of",
            "[{kind='shirking', share=0.5}, {kind='competitor', share=0.3}, {kind='free-riding', \
             share=0.2, form='last-delta'}]",
        ),
        ("epsilon", "1.6"),
        ("local.exact_gradient", "true"),
        ("local.epochs", "1"),
        ("local.batch", "16"),
    ],
    &[
        ("rule.kind", "retain"),
        ("rule.delta", "0.02"),
        ("agents", "300"),
        ("partition.kind", "dirichlet"),
        ("partition.alpha", "0.1"),
        ("epsilon", "0.1"),
    ],
    &[
        ("rule.kind", "mw-fed"),
        ("rule.variant", "load"),
        ("local.epochs", "1"),
        ("local.batch", "8"),
        ("epsilon", "1.0"),
        ("agents", "5"),
    ],
];

#[test]
fn threads_change_no_bit() {
    for sets in RUNS {
        let (one, watched) = play(sets, 1);
        for threads in [2, 8] {
            let (other, again) = play(sets, threads);
            assert_eq!(text(&one), text(&other), "{sets:?} with {threads} threads");
            assert_eq!(text(&watched.lines), text(&again.lines), "{sets:?}");
            assert_eq!(watched.weights, again.weights, "{sets:?}");
        }
    }
}

#[test]
fn a_run_that_is_saved_and_continued_is_the_same_bits() {
    for sets in RUNS {
        let (whole, watched) = play(sets, 2);
        let saved = watched.saved.as_ref().unwrap_or_else(|| panic!("{sets:?} ended early"));
        // Through text, as a checkpoint does.
        let saved: SessionState = serde_json::from_str(&text(saved)).unwrap();
        let mut trial = Trial::new(experiment(sets)).unwrap();
        trial.resume(saved).unwrap();
        let mut rest = Watch::default();
        let resumed = trial.run(&mut [&mut rest]).unwrap().unwrap();
        assert_eq!(text(&rest.lines), text(&watched.lines[SAVED..].to_vec()), "{sets:?}");
        assert_eq!(rest.weights, watched.weights[SAVED..], "{sets:?}");
        assert_eq!(text(&resumed), text(&whole), "{sets:?}");
    }
}

#[test]
fn measuring_fewer_agents_changes_what_is_said_and_nothing_else() {
    let sets = |measured: &'static str| {
        [("rule.kind", "fedavg"), ("epsilon", "1.1"), ("rounds", "60"), ("eval_agents", measured)]
    };
    let (all, watched_all) = play(&sets("all"), 2);
    assert!(all.unmeasured == 0 && !all.left.is_empty(), "the test needs departures");
    for measured in ["3", "none"] {
        let (some, watched) = play(&sets(measured), 2);
        assert_eq!(watched.weights, watched_all.weights, "{measured}");
        assert_eq!((&some.left, &some.population), (&all.left, &all.population));
        let wanted = if measured == "3" { 3 } else { 0 };
        assert_eq!((some.unmeasured, some.measured()), (10 - wanted, wanted));
        assert_eq!((some.agents.len(), some.unlisted), (10, 0), "few agents are all listed");
        let known = some.agents.iter().zip(&all.agents).filter(|(some, _)| some.is_measured());
        let known: Vec<_> = known.collect();
        assert_eq!(known.len(), wanted);
        for (some, all) in known {
            assert_eq!(some.score, all.score);
        }
        assert!(!some.everybody_content);
        let lines = watched.lines.iter().filter_map(|line| line.assessment.as_ref());
        for line in lines {
            assert_eq!((line.agents.len(), line.score.loss.len()), (wanted, wanted));
            assert!(line.population.is_some());
        }
    }
}

#[test]
fn a_sample_of_content_agents_is_no_claim_about_everybody() {
    // Everybody is content from the start, and nobody ever leaves.
    let sets = |measured: &'static str| {
        let never = ("behaviour.kind", "never");
        [
            ("rule.kind", "fedavg"),
            never,
            ("epsilon", "50"),
            ("rounds", "20"),
            ("eval_agents", measured),
        ]
    };
    let verdict = |measured| {
        let (summary, _) = play(&sets(measured), 2);
        (summary.verdict, summary.everybody_content, summary.content)
    };
    assert_eq!(verdict("all"), (Verdict::Retained, true, 10));
    assert_eq!(verdict("4"), (Verdict::Retained, false, 4));
    assert_eq!(verdict("none"), (Verdict::Unknown, false, 0));
    let (summary, _) = play(&sets("none"), 2);
    assert!(summary.score.loss.mean.is_nan() && summary.score.measures.is_empty());
    assert!(summary.fairness.is_none());
    // Nobody can be content: a sample may not say that of everybody either.
    let hopeless = |measured: &'static str| {
        let sets = [("rule.kind", "fedavg"), ("epsilon", "0"), ("eval_agents", measured)];
        play(&sets, 2).0.verdict
    };
    assert_eq!((hopeless("all"), hopeless("4")), (Verdict::Unsatisfied, Verdict::Unknown));
}

#[test]
fn losses_that_nobody_reads_are_not_computed_and_change_no_weight() {
    let told = |sets: &[(&str, &str)]| {
        let (_, watch) = play(sets, 2);
        let told = watch.lines.iter().flat_map(|line| &line.loss).filter(|loss| loss.is_some());
        (told.count(), watch.weights)
    };
    let plain = [("rule.kind", "fedavg"), ("behaviour.kind", "never"), ("epsilon", "1.0")];
    let with = |more: &[(&'static str, &'static str)]| [&plain[..], more].concat();
    let (all, weights) = told(&plain);
    let (none, same) = told(&with(&[("eval_agents", "none")]));
    assert_eq!((all, none), (300, 0));
    assert_eq!(weights, same);
    // The converse: agents that can leave, rules that read losses, and every check of them need them.
    for needs in [
        &[("behaviour.kind", "threshold"), ("epsilon", "0.01")][..],
        &[("rule.kind", "ada-gd")],
        &[("rule.kind", "q-fedavg")],
        &[("policy.kind", "keep-best")],
        &[("check_reports", "true")],
    ] {
        let sets = [&with(&[("eval_agents", "none")])[..], needs].concat();
        assert!(told(&sets).0 > 0, "{needs:?}");
    }
}

#[test]
fn of_very_many_agents_only_those_to_whom_something_happened_are_listed() {
    let sets = |measured: &'static str| {
        [
            ("rule.kind", "fedavg"),
            ("agents", "50000"),
            ("participation", "0.0004"),
            ("data.replace", "true"),
            ("data.per_agent", "4"),
            ("epsilon", "2.2"),
            ("rounds", "12"),
            ("eval_agents", measured),
        ]
    };
    let (some, watched) = play(&sets("40"), 2);
    let asked: std::collections::BTreeSet<_> =
        watched.lines.iter().flat_map(|line| line.agents.iter().chain(&line.left)).collect();
    assert!(asked.len() > 200 && watched.lines.iter().all(|line| line.agents.len() <= 20));
    assert!((asked.len()..=asked.len() + 40).contains(&some.agents.len()));
    assert_eq!(some.count(), 50_000);
    assert_eq!(some.measured(), 40);
    assert!(some.agents.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert!(text(&some).len() < 100_000 && text(&watched.saved.unwrap()).len() < 200_000);
    // With all of them measured, the figures are everybody's and the list is as short.
    let (all, watched) = play(&sets("all"), 2);
    assert_eq!((all.unmeasured, all.count()), (0, 50_000));
    assert!(all.agents.len() <= asked.len() && all.agents.len() < MOST_LISTED);
    assert_eq!(all.satisfied(), all.content as usize);
    assert!(all.agents.iter().filter(|agent| agent.is_content()).count() < all.satisfied());
    let first = watched.lines[0].assessment.as_ref().unwrap();
    assert!(first.score.loss.is_empty() && first.spread().is_some());
}

#[test]
fn epochs_are_steps_where_both_say_the_same_and_every_rule_takes_them() {
    // With full batches an epoch is a step.
    let of =
        |local: (&'static str, &'static str)| play(&[("rule.kind", "fedavg"), local], 2).1.weights;
    assert_eq!(of(("local.epochs", "3")), of(("local.steps", "3")));
    assert_ne!(of(("local.epochs", "3")), of(("local.steps", "2")));
    for entry in fedstay::Rule::LIST {
        let sets = [
            ("rule.kind", entry.name),
            ("local.epochs", "2"),
            ("local.batch", "32"),
            ("partition.sizes", "power"),
            ("data.group", "brightness"),
            ("rounds", "4"),
        ];
        let (summary, watch) = play(&sets, 2);
        assert!(!watch.lines.is_empty() && summary.score.loss.mean.is_finite(), "{}", entry.name);
    }
    let both = [("local.epochs".to_owned(), "1".to_owned()), ("local.steps".into(), "1".into())];
    let error = Experiment::parse("", &both).unwrap_err().to_string();
    assert!(error.contains("give one of them"), "{error}");
}
