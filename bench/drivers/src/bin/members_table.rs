//! Prints the tables of docs/members.md: what every score of worth says about ten agents, one of which
//! never works, on three seeds, and about ten of which another holds half of the rows; what agents find
//! that come later; what is left of one that asks to be forgotten; and who leaves while data drift.
//!
//! ```text
//! cargo run --release -p fedstay-bench --bin members_table            all
//! cargo run --release -p fedstay-bench --bin members_table worth      only the scores
//! cargo run --release -p fedstay-bench --bin members_table arrivals   only the newcomers
//! cargo run --release -p fedstay-bench --bin members_table forget     only the ways to forget
//! cargo run --release -p fedstay-bench --bin members_table drift      only the data that drift
//! ```

use fedstay_sim::experiment::Experiment;
use fedstay_sim::run::Trial;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let only = std::env::args().nth(1);
    let asked = |what: &str| only.as_deref().is_none_or(|only| only == what);
    if asked("worth") {
        worth("equal", include_str!("../../../../experiments/worth.toml"))?;
        worth("unequal", include_str!("../../../../experiments/worth-unequal.toml"))?;
    }
    if asked("arrivals") {
        for policy in ["none", "preview"] {
            arrivals(policy)?;
        }
    }
    if asked("forget") {
        for how in ["keep", "retrain", "eraser", "subtract"] {
            forget(how)?;
        }
    }
    if asked("drift") {
        for (rule, policy) in DRIFTING {
            for moves in ["linear", "step", "periodic"] {
                drift(rule, policy, moves)?;
            }
        }
    }
    Ok(())
}

/// The rules and policies that are tried on data that drift.
const DRIFTING: [(&str, &str); 5] = [
    ("fedavg", "none"),
    ("mifa", "none"),
    ("scaffold", "none"),
    ("fedavg", "preview"),
    ("retain", "none"),
];

fn settings<const N: usize>(set: [(&str, String); N]) -> [(String, String); N] {
    set.map(|(key, value)| (key.to_owned(), value))
}

/// What a way to forget leaves of the agent, and what it costs the others: means over three seeds.
fn forget(how: &str) -> Outcome {
    let text = include_str!("../../../../experiments/forget.toml");
    let (mut sums, mut count) = ([0.0; 5], 0.0);
    for seed in 0..3 {
        let set = settings([("seed", seed.to_string()), ("forget.how", format!("{how:?}"))]);
        let Some(summary) = Trial::new(Experiment::parse(text, &set)?)?.run(&mut [])? else {
            continue;
        };
        for forgotten in &summary.forgotten {
            let rest = summary.agents.iter().filter(|agent| agent.id != forgotten.agent);
            let losses: Vec<f64> = rest.map(|agent| agent.score.loss).collect();
            let found = [
                forgotten.loss.unwrap_or(f64::NAN),
                forgotten.membership.unwrap_or(f64::NAN),
                forgotten.recovered.map_or(f64::NAN, f64::from),
                losses.iter().sum::<f64>() / losses.len() as f64,
                summary.population.as_ref().and_then(|p| p.of("accuracy")).unwrap_or(f64::NAN),
            ];
            println!("{how} seed {seed}: {found:.4?}");
            count += 1.0;
            sums.iter_mut().zip(found).for_each(|(sum, value)| *sum += value);
        }
    }
    let means = sums.map(|sum| format!("{:.3}", sum / count));
    println!(
        "{how}: leaver's loss, membership, rounds to recover, others' loss, population: {means:?}"
    );
    Ok(())
}

/// Who leaves while data drift, and what the model is worth at the end: means over three seeds.
fn drift(rule: &str, policy: &str, moves: &str) -> Outcome {
    let text = include_str!("../../../../experiments/drift.toml");
    let mut sums = [0.0; 4];
    for seed in 0..3 {
        let words = [("rule.kind", rule), ("policy.kind", policy), ("stream.moves", moves)];
        let words = settings(words.map(|(key, word)| (key, format!("{word:?}"))));
        let set = [&words[..], &settings([("seed", seed.to_string())])].concat();
        let Some(summary) = Trial::new(Experiment::parse(text, &set)?)?.run(&mut [])? else {
            continue;
        };
        let found = [
            summary.leavers() as f64,
            summary.score.get("accuracy").map_or(f64::NAN, |accuracy| accuracy.mean),
            summary.score.get("accuracy").map_or(f64::NAN, |accuracy| accuracy.min),
            summary.population.as_ref().and_then(|p| p.of("accuracy")).unwrap_or(f64::NAN),
        ];
        sums.iter_mut().zip(found).for_each(|(sum, value)| *sum += value / 3.0);
    }
    let [left, mean, worst, population] = sums;
    println!(
        "{rule}+{policy} {moves}: left {left:.1}, mean {mean:.3}, worst {worst:.3}, population {population:.3}"
    );
    Ok(())
}

fn worth(name: &str, text: &str) -> Outcome {
    println!("{name}: seed agent given got loo shapley gtg cgsv fedce reputation unexplained core");
    for seed in 0..3 {
        let experiment = Experiment::parse(text, &[("seed".to_owned(), seed.to_string())])?;
        let Some(summary) = Trial::new(experiment)?.run(&mut [])? else { continue };
        for agent in &summary.agents {
            let Some(worth) = agent.worth else { continue };
            let scores = [
                worth.given,
                worth.got,
                worth.loo,
                worth.shapley,
                worth.gtg,
                worth.cgsv,
                worth.fedce,
                worth.reputation,
                worth.unexplained,
                worth.core,
            ];
            let known = |score: Option<f64>| score.map_or("-".to_owned(), |s| format!("{s:.4}"));
            let scores: Vec<String> = scores.into_iter().map(known).collect();
            println!("{seed} {} {}", agent.id.0, scores.join(" "));
        }
    }
    Ok(())
}

/// The losses that newcomers find, one line each, and their means.
fn arrivals(policy: &str) -> Outcome {
    println!(
        "{policy}: seed agent round last best of_round mixture mixed content_by(last,best,mixture)"
    );
    let text = include_str!("../../../../experiments/arrivals.toml");
    let (mut sums, mut count, mut left) = ([0.0; 6], 0.0, 0);
    for seed in 0..3 {
        let set = [("seed", seed.to_string()), ("policy.kind", policy.to_owned())];
        let set = set.map(|(key, value)| (key.to_owned(), value));
        let Some(summary) = Trial::new(Experiment::parse(text, &set)?)?.run(&mut [])? else {
            continue;
        };
        left += summary.left.len();
        for agent in &summary.agents {
            let Some(found) = agent.entry.arrival else { continue };
            let best = found.best.unwrap_or(f64::NAN);
            let content = [found.last, best, found.mixture].map(|loss| loss <= agent.epsilon);
            println!(
                "{seed} {} {} {:.4} {best:.4} {} {:.4} {} {content:?}",
                agent.id.0,
                found.round,
                found.last,
                found.of_round.unwrap_or(0),
                found.mixture,
                found.mixed,
            );
            count += 1.0;
            let losses = [found.last, best, found.mixture];
            let content = content.map(|yes| f64::from(u8::from(yes)));
            for (sum, value) in sums.iter_mut().zip(losses.into_iter().chain(content)) {
                *sum += value;
            }
        }
    }
    let means = sums.map(|sum| format!("{:.3}", sum / count));
    println!(
        "{policy}: {left} departures; mean last, best, mixture, share content by each: {means:?}"
    );
    Ok(())
}
