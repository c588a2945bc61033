//! Unequal agents, several local steps under every rule, agents that are not always there, and how they
//! behave: what must hold for every federation.

use fedstay::record::{RoundLine, Summary};
use fedstay::{AgentId, BetweenRounds, Book, Error, RoundRecord};
use fedstay_sim::experiment::{Experiment, under};
use fedstay_sim::run::Trial;
use std::ops::ControlFlow;

/// A small federation on digits.
const SMALL: &str = "rounds = 30\nstep_size = 0.3\nagents = 6\nepsilon = 0.5\neval_every = 7\n\
    [rule]\nkind = \"fedavg\"\n[data]\nper_agent = 30\n[model]\nkind = \"mlp\"\nhidden = [8]\n";

fn experiment(set: &[(&str, &str)]) -> Experiment {
    let set: Vec<(String, String)> =
        set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Experiment::parse(SMALL, &set).unwrap()
}

fn play(set: &[(&str, &str)]) -> (Summary, Vec<RoundLine>, Vec<f64>) {
    let (mut trial, mut lines) = (Trial::new(experiment(set)).unwrap(), Vec::new());
    let summary = trial.run(&mut [&mut lines]).unwrap().unwrap();
    (summary, lines, trial.server().weights().to_vec())
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

/// Stops a trial after some rounds, and keeps its state as a checkpoint would.
struct Cut {
    after: u32,
    state: Option<String>,
}

impl Book for Cut {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        let over = record.line.round >= self.after;
        Ok(if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn between(&mut self, moment: &BetweenRounds<'_>) -> Result<(), Error> {
        self.state = Some(serde_json::to_string(&(moment.state)()?).unwrap());
        Ok(())
    }
}

/// Asserts that a run which is cut off continues with the same bytes.
fn assert_resumes(set: &[(&str, &str)]) {
    let (expected, whole, weights) = play(set);
    for after in [4, 11].into_iter().filter(|after| *after < expected.rounds) {
        let mut cut = Cut { after, state: None };
        assert_eq!(Trial::new(experiment(set)).unwrap().run(&mut [&mut cut]).unwrap(), None);
        let mut resumed = Trial::new(experiment(set)).unwrap();
        resumed.resume(serde_json::from_str(&cut.state.unwrap()).unwrap()).unwrap();
        let mut rest: Vec<RoundLine> = Vec::new();
        let summary = resumed.run(&mut [&mut rest]).unwrap().unwrap();
        assert_eq!(summary, expected, "{set:?} after {after}");
        assert_eq!(whole[after as usize..], rest, "{set:?} after {after}");
        assert_eq!(resumed.server().weights(), weights, "{set:?} after {after}");
    }
}

/// q-FedAvg at q = 0 *is* FedAvg, whatever the local work; and so are the other rules in their limits.
#[test]
fn rules_in_their_limits_are_averaging_for_every_number_of_local_steps() {
    let limits: [&[(&str, &str)]; 4] = [
        &[("rule.kind", "q-fedavg"), ("rule.q", "0")],
        &[("rule.kind", "afl"), ("rule.gamma", "0")],
        &[("rule.kind", "fedfv"), ("rule.alpha", "1")],
        &[("rule.kind", "mw-fed"), ("rule.c", "1")],
    ];
    let mut ends: Vec<Vec<f64>> = Vec::new();
    for local in [
        &[("local.steps", "1")][..],
        &[("local.steps", "5")],
        &[("local.steps", "5"), ("local.step", "eta/K")],
        &[("local.steps", "3"), ("local.batch", "8"), ("local.mu", "0.1")],
    ] {
        let common = [&[("rounds", "8"), ("behaviour.kind", "never")], local].concat();
        let plain = play(&common).2;
        for limit in limits {
            let weights = play(&[&common[..], limit].concat()).2;
            // Weights are rounded to single precision on their way to the agents.
            assert!(distance(&weights, &plain) < 1e-4, "{local:?}, {limit:?}");
        }
        ends.push(plain);
    }
    let start = Trial::new(experiment(&[])).unwrap().server().weights().to_vec();
    // The converse: how far the agents go matters, so the test could fail.
    let (one, five) = (distance(&ends[0], &start), distance(&ends[1], &start));
    assert!(five > 1.5 * one, "{five} {one}");
    // Five steps of a fifth of the size reach about as far as one.
    assert!(distance(&ends[2], &ends[0]) < 0.5 * distance(&ends[1], &ends[0]));
}

#[test]
fn unequal_agents_tell_how_many_rows_they_have_and_weighing_by_them_matters() {
    struct Samples(Vec<u64>);
    impl Book for Samples {
        fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
            self.0 = record.reports.iter().map(|report| report.samples).collect();
            Ok(ControlFlow::Continue(()))
        }
    }
    let unequal = [("partition.sizes", "power"), ("partition.skew", "1.5"), ("rounds", "5")];
    let mut told = Samples(Vec::new());
    let mut trial = Trial::new(experiment(&unequal)).unwrap();
    trial.run(&mut [&mut told]).unwrap().unwrap();
    assert_eq!(told.0.iter().sum::<u64>(), 180);
    assert!(told.0.is_sorted_by(|a, b| a >= b) && told.0[0] > 90, "{:?}", told.0);

    let weigh = |set: &[(&str, &str)], weigh| {
        play(&[set, &[("rule.weigh", weigh), ("rounds", "5")]].concat())
    };
    let (samples, uniform) = (weigh(&unequal, "samples"), weigh(&unequal, "uniform"));
    assert!(distance(&samples.2, &uniform.2) > 1e-3);
    // With equally many rows it changes no bit.
    assert_eq!(weigh(&[], "samples").2, weigh(&[], "uniform").2);
    for set in [&unequal[..], &[("partition.sizes", "dirichlet"), ("rule.weigh", "samples")]] {
        let more = [("local.batch", "8"), ("local.steps", "2"), ("rounds", "20")];
        assert_resumes(&[set, &more].concat());
    }
}

const SCHEDULES: &[&[(&str, &str)]] = &[
    &[("schedule.kind", "arrive"), ("schedule.every", "3")],
    &[("schedule.kind", "depart"), ("schedule.every", "3")],
    &[("schedule.kind", "round-robin"), ("schedule.turns", "3")],
    &[("schedule.kind", "random")],
    &[("schedule.kind", "markov")],
    &[("schedule.kind", "trace"), ("schedule.path", "shifts")],
];

/// An agent is in exactly one of the columns of every round until it has left, and those that are
/// absent are nowhere called departed.
#[test]
fn an_absent_agent_is_absent_and_has_not_left() {
    for set in SCHEDULES {
        for more in [&[("behaviour.kind", "never")][..], &[("epsilon", "0.9")]] {
            let (summary, lines, _) = play(&[*set, more].concat());
            let mut gone: Vec<AgentId> = Vec::new();
            let mut absent = [0u32; 6];
            for line in &lines {
                let heard = [&line.agents[..], &line.absent, &line.left, &gone].concat();
                let mut everybody = heard.clone();
                everybody.sort_unstable();
                assert_eq!(everybody, (0..6).map(AgentId).collect::<Vec<_>>(), "{set:?}");
                line.absent.iter().for_each(|agent| absent[agent.0 as usize] += 1);
                gone.extend(&line.left);
            }
            for agent in &summary.agents {
                assert_eq!(agent.entry.absent, absent[agent.id.0 as usize]);
                assert_eq!(agent.entry.left.is_some(), gone.contains(&agent.id), "{set:?}");
                assert_eq!(agent.entry.faults, 0);
            }
            assert!(absent.iter().sum::<u32>() > 20, "{set:?}: {absent:?}");
            assert_eq!(gone.is_empty(), more[0].0 == "behaviour.kind", "{set:?}: {gone:?}");
        }
    }
}

#[test]
fn a_run_with_absent_agents_resumes_with_the_same_bytes() {
    let problem = [("problem.kind", "huber"), ("rounds", "20")];
    for set in SCHEDULES {
        assert_resumes(&[*set, &[("epsilon", "0.9"), ("participation", "0.7")]].concat());
        assert_resumes(&[*set, &[("policy.kind", "preview"), ("epsilon", "0.9")]].concat());
        let on_problem: Vec<(&str, &str)> = [*set, &problem].concat();
        let read: Vec<(String, String)> =
            on_problem.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let run = || {
            let mut lines: Vec<RoundLine> = Vec::new();
            let mut trial = Trial::new(Experiment::parse("", &read).unwrap()).unwrap();
            trial.run(&mut [&mut lines]).unwrap().unwrap();
            lines
        };
        let lines = run();
        assert!(lines.iter().any(|line| !line.absent.is_empty()), "{set:?}");
        assert_eq!(lines, run());
    }
}

#[test]
fn a_trace_is_read_from_its_file_and_one_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("times.csv");
    let text = path.to_str().unwrap();
    let set = [("schedule.kind", "trace"), ("schedule.path", text), ("behaviour.kind", "never")];
    let missing = Trial::new(experiment(&set)).err().unwrap().to_string();
    assert!(missing.contains("times.csv") && missing.contains("schedule.path"), "{missing}");
    std::fs::write(&path, "2,1,4\n2,9,\n").unwrap();
    let (_, lines, _) = play(&set);
    let absent: Vec<u32> =
        lines.iter().filter(|line| line.absent == [AgentId(2)]).map(|line| line.round).collect();
    assert_eq!(absent, [5, 6, 7, 8]);
    assert!(lines.iter().all(|line| line.agents.len() + line.absent.len() == 6));
    std::fs::write(&path, "6,1,4\n").unwrap();
    let strange = Trial::new(experiment(&set)).err().unwrap().to_string();
    assert!(strange.contains("line 1") && strange.contains("6 agents"), "{strange}");
}

/// Nobody there: the model waits, and the run goes on.
#[test]
fn a_round_without_anybody_moves_nothing() {
    let (summary, lines, weights) = play(&[("schedule.kind", "random"), ("schedule.p", "0")]);
    let start = Trial::new(experiment(&[])).unwrap().server().weights().to_vec();
    assert_eq!((summary.rounds, lines.len(), weights), (30, 30, start));
    assert!(summary.left.is_empty() && summary.agents.iter().all(|agent| agent.entry.absent == 30));
}

#[test]
fn a_run_with_several_behaviours_resumes_with_the_same_bytes() {
    for form in ["random", "last-delta", "scaled-delta"] {
        assert_resumes(&[("behaviour.kind", "free-riding"), ("behaviour.form", form)]);
    }
    let mixed = "[{kind='free-riding', agents=[1], form='scaled-delta'}, \
        {kind='withholding', agents=[2]}, {kind='competitor', agents=[3], patience=4}, \
        {kind='threshold', share=1.0}]";
    let mixed = [("behaviour.kind", "mixed"), ("behaviour.of", mixed)];
    assert_resumes(
        &[&mixed[..], &[("local.steps", "2"), ("local.exact_gradient", "true")]].concat(),
    );
    assert_resumes(&[&mixed[..], &[("decides_on", "own"), ("schedule.kind", "markov")]].concat());
}

/// In their limits, they are the agents of the paper.
#[test]
fn an_honest_factor_and_all_of_the_rows_are_the_threshold() {
    let (expected, lines, weights) = play(&[]);
    for set in [
        [("behaviour.kind", "amplifying"), ("behaviour.factor", "1")],
        [("behaviour.kind", "withholding"), ("behaviour.rows", "1")],
        [("behaviour.kind", "withdrawing"), ("behaviour.after", "1000")],
        [("behaviour.kind", "contagious"), ("behaviour.patience", "100000")],
    ] {
        let (summary, same, there) = play(&set);
        assert_eq!((&summary.left, same, there), (&expected.left, lines.clone(), weights.clone()));
    }
    assert!(!expected.left.is_empty(), "the test needs departures");
    for set in [
        [("behaviour.kind", "amplifying"), ("behaviour.factor", "3")],
        [("behaviour.kind", "withholding"), ("behaviour.rows", "0.2")],
    ] {
        assert_ne!(play(&set).2, weights, "{set:?}");
    }
}

#[test]
fn whoever_sits_out_is_absent_and_comes_back_and_withdrawal_is_a_departure() {
    // The others make the model better than what it makes alone, and it comes back.
    let of = "[{kind='opt-out', agents=[0], grace=2, alone=10}, {kind='never', share=1.0}]";
    let mixed = [("behaviour.kind", "mixed"), ("behaviour.of", of), ("partition.kind", "iid")];
    let (summary, lines, _) = play(&[&mixed[..], &[("rounds", "60")]].concat());
    assert!(summary.left.is_empty());
    let entry = &summary.agents[0].entry;
    assert_eq!((entry.absent + entry.reports, summary.rounds), (60, 60));
    let out: Vec<u32> =
        lines.iter().filter(|line| !line.absent.is_empty()).map(|line| line.round).collect();
    assert_eq!((out.len() as u32, out[0]), (entry.absent, 3), "after its two rounds of grace");
    assert!(lines[59].agents.contains(&AgentId(0)), "it came back");
    // Where everybody sits out, the model stays as it is and nobody comes back.
    let all = [("behaviour.kind", "opt-out"), ("behaviour.grace", "2")];
    let (summary, lines, _) = play(&all);
    assert!(summary.left.is_empty() && lines[2..].iter().all(|line| line.absent.len() == 6));
    assert_eq!((summary.rounds, lines[29].step_norm), (30, 0.0));

    let (summary, ..) = play(&[("behaviour.kind", "withdrawing"), ("behaviour.after", "9")]);
    assert_eq!(summary.rounds, 9);
    assert!(summary.left.iter().all(|left| left.round <= 9) && summary.left.len() == 6);
}

/// A free rider sends what it says: its displacement is what the model last changed by.
#[test]
fn a_last_delta_is_what_the_model_last_changed_by() {
    struct Check {
        before: Option<Vec<f64>>,
        seen: u32,
    }
    impl Book for Check {
        fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
            let rider = record.reports.iter().find(|report| report.agent == AgentId(1)).unwrap();
            let sent = |index: usize| -0.3 * rider.direction.get(index).unwrap();
            for (index, weight) in record.received.iter().enumerate() {
                let change = self.before.as_ref().map_or(0.0, |before| weight - before[index]);
                assert!((sent(index) - change).abs() < 1e-6, "{} {change}", sent(index));
                self.seen += u32::from(change != 0.0);
            }
            self.before = Some(record.received.to_vec());
            Ok(ControlFlow::Continue(()))
        }
    }
    let of = "[{kind='free-riding', agents=[1]}, {kind='never', share=1.0}]";
    let set = [("behaviour.kind", "mixed"), ("behaviour.of", of), ("rounds", "6")];
    let mut check = Check { before: None, seen: 0 };
    let mut trial =
        Trial::new(experiment(&[&set[..], &[("compare_alone", "true")]].concat())).unwrap();
    let summary = trial.run(&mut [&mut check]).unwrap().unwrap();
    assert!(check.seen > 100);
    assert_eq!((summary.agents[1].idle, summary.agents[0].idle), (6, 0));
}

/// A newcomer finds the model of the round, the best of those that were kept, and a mixture that is no
/// worse than either; the books say what it found, and nothing else changes.
#[test]
fn a_newcomer_is_offered_what_was_kept() {
    let set = [
        ("agents", "12"),
        ("rounds", "40"),
        ("epsilon", "0.9"),
        ("schedule.kind", "arrive"),
        ("schedule.at", "[20, 35]"),
        ("local.batch", "16"),
    ];
    let kept = [&set[..], &[("library.keep", "6"), ("library.every", "8")]].concat();
    let (summary, lines, weights) = play(&kept);
    let arrived: Vec<(u64, u32)> = lines
        .iter()
        .flat_map(|line| &line.arrived)
        .map(|arrival| (arrival.agent.0, arrival.round))
        .collect();
    assert_eq!(arrived, [(10, 20), (11, 35)]);
    for (agent, round) in [(10, 20), (11, 35)] {
        let entry = &summary.agents[agent].entry;
        let found = entry.arrival.unwrap();
        let (best, of) = (found.best.unwrap(), found.of_round.unwrap());
        assert!(of < round && found.mixture <= best.min(found.last) && found.mixed >= 1);
        assert_eq!((entry.absent, found.round), (round - 1, round));
        // What it found under the last model is what it reports of it, or leaves with.
        let line = &lines[round as usize - 1];
        let told = line.agents.iter().position(|id| id.0 == agent as u64);
        match told.map(|place| line.loss[place].unwrap()) {
            Some(told) if line.at_least.is_empty() => assert_eq!(told, found.last),
            Some(bound) => assert!(found.last >= bound),
            None => assert!(line.left.contains(&AgentId(agent as u64)) && found.last <= 0.9),
        }
    }
    assert!(!summary.left.is_empty(), "the test needs departures before somebody comes");
    let (without, _, same) = play(&set);
    assert_eq!((without.left, same), (summary.left, weights), "a library changes no step");
    assert_resumes(&kept);
}

/// Corrections reach every local step: with one of them they cancel, and with several local steps on
/// agents that differ they bring the model to where the mean loss is smaller.
#[test]
fn scaffold_is_averaging_with_one_local_step_and_not_with_several() {
    let common = [("rounds", "20"), ("behaviour.kind", "never"), ("partition.q", "0.9")];
    let with = |rule: &str, more: &[(&str, &str)]| {
        play(&[&common[..], &[("rule.kind", rule)], more].concat())
    };
    let (one, mean) = (with("scaffold", &[]), with("fedavg", &[]));
    assert!(distance(&one.2, &mean.2) < 1e-4, "{}", distance(&one.2, &mean.2));
    let several = [("local.steps", "10"), ("step_size", "0.2")];
    let (own, mean) = (with("scaffold", &several), with("fedavg", &several));
    assert!(distance(&own.2, &mean.2) > 1e-2);
    assert!(
        own.0.score.loss.mean < mean.0.score.loss.mean,
        "{:?} {:?}",
        own.0.score.loss,
        mean.0.score.loss
    );
    // What its agents send is not the gradient, which they send along where they have it.
    let booked = with("scaffold", &[("worth.methods", r#"["help"]"#)]);
    let worth = booked.0.agents[0].worth.unwrap();
    assert!(worth.unexplained.unwrap().abs() < 0.1 * worth.own.unwrap(), "{worth:?}");
    let steps = [("rule.kind", "scaffold"), ("local.steps", "3"), ("local.batch", "8")];
    assert_resumes(&steps);
    assert_resumes(
        &[&steps[..], &[("rule.leavers", "drop"), ("local.exact_gradient", "true")]].concat(),
    );
}

#[test]
fn fairfed_asks_for_groups_and_without_a_beta_is_averaging_by_samples() {
    let fair = [("rule.kind", "fairfed"), ("data.group", "brightness"), ("rounds", "12")];
    let with = |more: &[(&str, &str)]| play(&[&fair[..], more].concat()).2;
    let samples = [("rule.kind", "fedavg"), ("rule.weigh", "samples")];
    let unequal = [("partition.sizes", "power"), ("partition.skew", "1")];
    let (still, mean) = (
        with(&[&unequal[..], &[("rule.beta", "0")]].concat()),
        play(&[&samples[..], &unequal, &[("rounds", "12")]].concat()).2,
    );
    assert!(distance(&still, &mean) < 1e-4, "{}", distance(&still, &mean));
    assert!(distance(&with(&unequal), &mean) > 1e-3, "weights move");
    assert_ne!(with(&[]), with(&[("data.positive", "3")]), "only rows of the class count");
    assert_resumes(&fair);
    assert_resumes(&[&fair[..], &[("data.group", "20"), ("data.positive", "3")]].concat());

    let refused = |set: &[(&str, &str)]| Trial::new(experiment(set)).err().unwrap().to_string();
    let missing = refused(&[("rule.kind", "fairfed")]);
    assert!(missing.starts_with("data.group: fairfed asks how well two groups"), "{missing}");
    let far = refused(&[("data.group", "64")]);
    assert!(far.contains("numbered from 0 to 63"), "{far}");
}

/// Rows arrive over the rounds, agents decide on those that they see, and a resumed run sees the same.
#[test]
fn agents_decide_on_the_rows_that_they_see() {
    let grow = [("stream.kind", "grow"), ("stream.window", "0.2"), ("stream.over", "20")];
    let slide = [("stream.kind", "slide"), ("stream.order", "class"), ("stream.moves", "step")];
    let whole = [("stream.kind", "slide"), ("stream.window", "1.0")];
    let never = [("behaviour.kind", "never")];
    assert_eq!(
        play(&[&never[..], &whole].concat()).1,
        play(&never).1,
        "a window of all rows is none"
    );
    let (_, growing, _) = play(&[&never[..], &grow].concat());
    let (_, usual, _) = play(&never);
    assert_ne!(growing[0].loss, usual[0].loss);
    assert_ne!(growing[0].step_norm, usual[0].step_norm);
    // Once all rows are there, so are the losses; the models are others by then.
    assert_eq!(growing.len(), usual.len());

    // The drift happens in round 16: everybody's loss rises with the rows it sees, and only then.
    let measured = [("eval_every", "1"), ("partition.q", "0.5")];
    let drift = [("stream.over", "15"), ("stream.window", "0.4")];
    let (summary, drifting, _) = play(&[&never[..], &slide, &drift, &measured].concat());
    let (_, still, _) = play(&[&never[..], &measured].concat());
    let mean = |lines: &[RoundLine], round: usize| lines[round - 1].mean_loss().unwrap();
    let rises = |lines: &[RoundLine], round| mean(lines, round) > mean(lines, round - 1);
    assert!(rises(&drifting, 16) && !rises(&drifting, 15) && !rises(&drifting, 17));
    assert!(!rises(&still, 16));
    // What the summary says is about the rows that are seen at the end.
    let last = drifting.last().unwrap().mean_loss().unwrap();
    assert!(
        (summary.score.loss.mean - last).abs() < 0.2 * last,
        "{} {last}",
        summary.score.loss.mean
    );

    for stream in [&grow[..], &slide, &[("stream.kind", "slide"), ("stream.moves", "periodic")]] {
        assert_resumes(stream);
        assert_resumes(&[stream, &[("local.steps", "3"), ("local.batch", "8")]].concat());
    }
}

#[test]
fn an_agent_that_asks_is_forgotten_and_the_others_pay_for_it() {
    let asks = [
        ("behaviour.kind", "mixed"),
        ("behaviour.of", "[{kind='withdrawing', agents=[2], after=12}, {kind='never', share=1.0}]"),
        ("rounds", "60"),
        ("epsilon", "0"),
        ("forget.agents", "[2]"),
    ];
    let with = |how: &str| play(&[&asks[..], &[("forget.how", how)]].concat());
    let told = |how: &str| {
        let (summary, lines, _) = with(how);
        assert_eq!(lines[11].forgot, [AgentId(2)], "{how}");
        let [one] = &summary.forgotten[..] else { panic!("{:?}", summary.forgotten) };
        assert_eq!((one.agent, one.round, one.how.as_str()), (AgentId(2), 12, how));
        assert_eq!(one.loss, Some(summary.agents[2].score.loss));
        (one.clone(), lines)
    };
    let (keep, _) = told("keep");
    let (retrain, lines) = told("retrain");
    assert_eq!(lines[12].mean_loss().map(|loss| loss > 2.0), Some(true), "from the start");
    let (eraser, _) = told("eraser");
    let (subtract, _) = told("subtract");
    for forgotten in [&keep, &retrain, &eraser, &subtract] {
        let shows = forgotten.membership.unwrap();
        assert!((0.0..=1.0).contains(&shows), "{forgotten:?}");
    }
    // Doing nothing costs nothing, beginning again costs about as much as it took to get there.
    assert!(
        keep.recovered < retrain.recovered && retrain.recovered > Some(5),
        "{keep:?} {retrain:?}"
    );
    assert!(keep.loss < retrain.loss, "{keep:?} {retrain:?}");
    for how in ["keep", "retrain", "eraser", "subtract"] {
        let short = [&asks[..], &[("rounds", "30"), ("forget.how", how)]].concat();
        assert_resumes(&short);
    }
}

/// What an agent must tell exactly depends on the slope that it sends, not on the one that it computed.
#[test]
fn agents_that_send_another_slope_tell_their_losses_as_exactly_as_the_rule_needs_them() {
    for behaviour in ["amplifying", "free-riding"] {
        let with =
            [("behaviour.kind", behaviour), ("rule.kind", "ada-gd"), ("rule.on_settled", "halve")];
        play(
            &[&with[..], &[("eval_every", "100"), ("step_size", "0.1"), ("rounds", "60")]].concat(),
        );
    }
}

/// Every rule of the tournament, with what its label adds to it, and the books of worth beside it.
#[test]
fn every_rule_of_the_tournament_resumes_with_the_same_bytes() {
    let file = include_str!("../../../experiments/tournament.toml");
    let file: toml::Table = toml::from_str(file).unwrap();
    let labels: Vec<&str> =
        file["grid"]["label"].as_array().unwrap().iter().filter_map(|l| l.as_str()).collect();
    for optimiser in ["momentum", "adagrad", "adam", "yogi"] {
        assert!(labels.contains(&format!("fedavg+{optimiser}").as_str()), "{optimiser}");
    }
    for label in labels {
        let table = under(toml::Table::new(), label).unwrap();
        let keys = table.iter().flat_map(|(section, keys)| {
            let keys = keys.as_table().unwrap().iter();
            keys.map(move |(key, value)| (format!("{section}.{key}"), value.to_string()))
        });
        let keys: Vec<(String, String)> = keys.collect();
        let mut set: Vec<(&str, &str)> = vec![
            ("data.group", "brightness"),
            ("rounds", "16"),
            ("worth.methods", "['help', 'loo', 'cgsv', 'fedce', 'reputation']"),
        ];
        set.extend(keys.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        assert_resumes(&set);
    }
}

/// What `docs/members.md` says of the newcomers that each way loses is what its command gives.
#[test]
fn the_table_of_newcomers_says_whom_each_way_loses() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let text = std::fs::read_to_string(format!("{root}/experiments/arrivals.toml")).unwrap();
    let told = std::fs::read_to_string(format!("{root}/docs/members.md")).unwrap();
    let (_, told) = told.split_once("## Agents that come later").unwrap();
    let row = |way: &str| {
        let head = format!("| {way} | ");
        let row = told.lines().find_map(|line| line.strip_prefix(&head));
        row.unwrap_or_else(|| panic!("there is no row for {way}")).to_owned()
    };
    let lost = |set: &[(&str, &str)], seed: &str| {
        let set: Vec<(String, String)> = set
            .iter()
            .chain(&[("seed", seed)])
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let experiment = Experiment::parse(&text, &set).unwrap();
        let summary = Trial::new(experiment).unwrap().run(&mut []).unwrap().unwrap();
        let late: Vec<_> = summary.left.iter().filter(|left| left.agent.0 >= 10).collect();
        // A newcomer that preview loses goes in the round after it was first heard.
        for left in late.iter().filter(|_| set[0].1 == "preview") {
            let arrival = summary.agents[left.agent.0 as usize].entry.arrival.unwrap();
            assert_eq!(left.round, arrival.round + 1, "seed {seed}, agent {}", left.agent.0);
        }
        (summary.left.len() - late.len(), late.len())
    };
    let preview = [("policy.kind", "preview")];
    let late: Vec<String> = ["0", "1", "2"]
        .map(|seed| {
            let (first, late) = lost(&preview, seed);
            assert_eq!(first, 0, "seed {seed}");
            late.to_string()
        })
        .to_vec();
    let expected = format!("nobody | **{}** (seeds 0, 1, 2) |", late.join(", "));
    let row_of_preview = row("averaging with `preview`");
    assert!(row_of_preview.starts_with(&expected), "{row_of_preview}; the runs: {expected}");
    assert_eq!(lost(&[("policy.kind", "none")], "0"), (10, 10));
    assert!(row("averaging").starts_with("all ten, on every seed | all ten, on every seed |"));
    let retain = [("rule.kind", "retain"), ("policy.kind", "none")];
    let late = ["0", "1", "2"].map(|seed| lost(&retain, seed)).map(|(first, late)| {
        assert_eq!(first, 0);
        late.to_string()
    });
    let row_of_retain = row("`retain`");
    assert!(
        row_of_retain.starts_with(&format!("nobody | {} |", late.join(", "))),
        "{row_of_retain}; {late:?}"
    );
}
