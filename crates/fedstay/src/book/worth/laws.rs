//! What holds for the books, on whole runs.

use super::*;
use crate::optimiser::Adam;
use crate::problem::{Federation, Instance, Oracle};
use crate::record::RoundLine;
use crate::rule::QFedAvg;
use crate::{About, Behaviour, Mean, Optimiser, Retain, Rule, Server, Session};
use std::sync::Arc;

/// `½ Σ_k stretch_k (w_k − centre_k)²`, to a power.
struct Bowl {
    centre: Vec<f64>,
    stretch: Vec<f64>,
    power: i32,
}

impl Oracle for Bowl {
    fn loss(&self, weights: &[f64]) -> f64 {
        self.square(weights).powi(self.power)
    }

    fn loss_and_gradient(&self, weights: &[f64], gradient: &mut [f64]) -> f64 {
        let outer = f64::from(self.power) * self.square(weights).powi(self.power - 1);
        for (k, g) in gradient.iter_mut().enumerate() {
            *g = outer * self.stretch[k] * (weights[k] - self.centre[k]);
        }
        self.loss(weights)
    }
}

impl Bowl {
    fn square(&self, weights: &[f64]) -> f64 {
        let each = weights.iter().zip(&self.centre).zip(&self.stretch);
        each.map(|((w, c), s)| 0.5 * s * (w - c).powi(2)).sum()
    }
}

/// Six agents in eight dimensions. Agents 0 and 1 are alike, and the last is indifferent.
fn instance(power: i32) -> Instance {
    let bowl = |agent: usize| {
        let k = agent.max(1) as f64;
        let some = if agent == 5 { 0.0 } else { 1.0 };
        let stretch = (0..8).map(|axis| some * (1.0 + 0.2 * (k + f64::from(axis)).sin())).collect();
        let centre = (0..8).map(|axis| (k * f64::from(axis + 1)).cos()).collect();
        Arc::new(Bowl { centre, stretch, power }) as Arc<dyn Oracle>
    };
    Instance {
        oracles: (0..6).map(bowl).collect(),
        start: (0..8).map(|axis| 1.5 * f64::from(axis + 2).sin()).collect(),
        lipschitz: None,
        smoothness: None,
        epsilon: -1.0,
        step_size: if power == 1 { 0.1 } else { 0.005 },
        delta: 0.02,
    }
}

fn session(rule: impl Into<Rule>, optimiser: Optimiser, power: i32) -> Session<Federation> {
    let instance = instance(power);
    let epsilon = [instance.epsilon; 6];
    let federation = Federation::new(&instance, &epsilon, &Behaviour::default()).unwrap();
    let book = Worth::new(&Method::ALL, Some(Box::new(federation.judge()))).unwrap();
    let server = Server::new(instance.start, rule, instance.step_size).unwrap();
    let server = server.with_optimiser(optimiser).unwrap();
    Session::new(server, federation, 12, About::default()).unwrap().with_book(book)
}

fn play(rule: impl Into<Rule>, optimiser: Optimiser, power: i32) -> (Summary, Vec<RoundLine>) {
    let mut lines: Vec<RoundLine> = Vec::new();
    let summary = session(rule, optimiser, power).run(&mut [&mut lines]).unwrap().unwrap();
    (summary, lines)
}

/// How far an agent's loss fell over the whole run, as it reported it itself.
fn fall(lines: &[RoundLine], agent: usize) -> f64 {
    let told = |line: &RoundLine| line.loss[agent].unwrap();
    told(&lines[0]) - told(lines.last().unwrap())
}

fn worth(summary: &Summary, agent: usize) -> AgentWorth {
    summary.agents[agent].worth.unwrap()
}

#[test]
fn help_sums_to_the_fall_of_every_loss_on_quadratics_under_any_rule() {
    let rules: [Rule; 3] =
        [Mean::default().into(), QFedAvg::default().into(), Retain::new(0.02).into()];
    for rule in rules {
        let name = rule.name().to_owned();
        let (summary, lines) = play(rule, Optimiser::default(), 1);
        // Nobody can be content here, so `retain` finds out that it went too far.
        assert_eq!(lines.iter().any(|line| line.reverted), name == "retain", "{name}");
        let matrix = summary.worth.as_ref().unwrap();
        let mut given = 0.0;
        let mut got = 0.0;
        for agent in 0..6 {
            let fall = fall(&lines, agent);
            // All but the way back to earlier weights, which is no agent's doing.
            let told = |line: &RoundLine| line.loss[agent].unwrap();
            let back: f64 = lines
                .windows(2)
                .filter(|pair| pair[0].reverted)
                .map(|pair| told(&pair[0]) - told(&pair[1]))
                .sum();
            let fall = fall - back;
            let row: f64 = matrix.help[agent].iter().sum();
            assert!((row - fall).abs() < 1e-10, "{name}, agent {agent}: {row} for {fall}");
            let own = worth(&summary, agent);
            assert!((own.unexplained.unwrap() - back).abs() < 1e-10, "{name}: {own:?}");
            assert!((own.got.unwrap() + own.own.unwrap() - fall).abs() < 1e-10, "{name}");
            given += own.given.unwrap();
            got += own.got.unwrap();
            let column: f64 = (0..6).filter(|m| *m != agent).map(|m| matrix.help[m][agent]).sum();
            assert!((column - own.given.unwrap()).abs() < 1e-12);
            // The rounds add up to the run.
            let place = |line: &RoundLine| line.worth.as_ref().unwrap().given[agent];
            let rounds: f64 = lines.iter().map(place).sum();
            assert!((rounds - own.given.unwrap()).abs() < 1e-10, "{name}");
        }
        assert!((given - got).abs() < 1e-10, "{name}: what is given is got");
        assert_eq!(matrix.steps, [lines.len() as u32 - 1; 6], "{name}");
    }
}

/// Elsewhere something is missing, and it is told: losses that are no quadratics, and an optimiser that
/// leaves the span of what agents sent.
#[test]
fn what_no_direction_explains_is_told() {
    let (quartic, lines) = play(Mean::default(), Optimiser::default(), 2);
    let (adam, adam_lines) = play(Mean::default(), Adam::new(0.1).into(), 1);
    for (summary, lines, least) in [(quartic, lines, 1e-6), (adam, adam_lines, 1e-3)] {
        let matrix = summary.worth.as_ref().unwrap();
        let mut largest = 0.0f64;
        for agent in 0..6 {
            let missing = worth(&summary, agent).unexplained.unwrap();
            let row: f64 = matrix.help[agent].iter().sum();
            assert!((row + missing - fall(&lines, agent)).abs() < 1e-10);
            largest = largest.max(missing.abs());
        }
        assert!(largest > least, "{largest}");
    }
}

#[test]
fn equal_agents_have_equal_worth_and_one_that_sends_nothing_gives_nothing() {
    for rule in [Rule::from(Mean::default()), Retain::new(0.02).into()] {
        let (summary, _) = play(rule, Optimiser::default(), 1);
        let scores = |agent| {
            let w = worth(&summary, agent);
            // Not GTG: it draws orders, so it is equal only as far as it has settled.
            [w.given, w.loo, w.shapley, w.cgsv, w.fedce, w.reputation].map(Option::unwrap)
        };
        for (index, (a, b)) in scores(0).into_iter().zip(scores(1)).enumerate() {
            let most = 1e-9 * (1.0 + a.abs());
            assert!((a - b).abs() <= most, "{}, score {index}: {a}, {b}", summary.rule);
        }
        let idle = worth(&summary, 5);
        assert_eq!((idle.given, idle.got), (Some(0.0), Some(0.0)));
        assert_eq!((idle.cgsv, idle.reputation), (Some(0.0), Some(0.0)));
    }
}

/// Over a run the Shapley values of all agents sum to the fall of what is judged.
#[test]
fn shapley_values_share_out_the_fall_of_the_validation_loss() {
    let (summary, _) = play(Mean::default(), Optimiser::default(), 1);
    let instance = instance(1);
    let mean = |weights: &[f64]| {
        instance.oracles.iter().map(|oracle| oracle.loss(weights)).sum::<f64>() / 6.0
    };
    let fall = mean(&instance.start) - mean(summary.weights.as_ref().unwrap());
    let sum: f64 = (0..6).map(|agent| worth(&summary, agent).shapley.unwrap()).sum();
    assert!((sum - fall).abs() < 1e-10, "{sum} for {fall}");
}

#[test]
fn a_run_that_was_cut_off_ends_with_the_same_books() {
    let (whole, _) = play(Mean::default(), Optimiser::default(), 1);
    let mut first = session(Mean::default(), Optimiser::default(), 1);
    let mut after_five = Cut(5);
    assert!(first.run(&mut [&mut after_five]).unwrap().is_none());
    let text = serde_json::to_string(&first.state().unwrap()).unwrap();
    let mut second = session(Mean::default(), Optimiser::default(), 1);
    second.resume(serde_json::from_str(&text).unwrap()).unwrap();
    let resumed = second.run(&mut []).unwrap().unwrap();
    assert_eq!(serde_json::to_string(&resumed).unwrap(), serde_json::to_string(&whole).unwrap());
}

/// Ends a run after this number of rounds.
struct Cut(u32);

impl Book for Cut {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        Ok(if record.line.round == self.0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    }
}

#[test]
fn what_needs_rows_kept_from_training_says_so() {
    assert!(Worth::new(&[Method::Help, Method::Cgsv], None).is_ok());
    for method in Method::ALL.into_iter().filter(|method| method.needs_judge()) {
        let error = Worth::new(&[method], None).err().unwrap().to_string();
        assert!(error.contains("worth.methods"), "{error}");
    }
}

#[test]
fn the_matrices_of_the_rounds_sum_to_that_of_the_summary() {
    let (summary, lines) = play(QFedAvg::default(), Optimiser::default(), 1);
    let whole = summary.worth.unwrap();
    let mut sum = vec![vec![0.0; 6]; 6];
    for line in lines.iter().filter_map(|line| line.worth.as_ref()) {
        for (helped, row) in line.agents.iter().zip(&line.help) {
            for (by, much) in line.by.iter().zip(row) {
                sum[helped.0 as usize][by.0 as usize] += much;
            }
        }
    }
    assert!(whole.help.concat().iter().any(|help| help.abs() > 1e-3));
    for (sum, whole) in sum.concat().iter().zip(whole.help.concat()) {
        assert!((sum - whole).abs() < 1e-12, "{sum} for {whole}");
    }
}
