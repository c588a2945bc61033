//! A rule of one's own: the trimmed mean, run on a named problem beside two rules of the list.
//!
//! ```text
//! cargo run --example custom_rule
//! ```
//!
//! Every component of the step is the mean of the agents' values without the smallest and the largest
//! share of them, so that a few agents with wild gradients cannot carry the model away (Yin, Chen,
//! Ramchandran, Bartlett, *Byzantine-Robust Distributed Learning*, ICML 2018). Agents here are honest
//! and leave once they are content: the trimmed mean, which does not look at that, loses all of them
//! one by one, as averaging does, and `retain` brings all of them to their target at once.

use fedstay::problem::{Huber, Instance, Problem};
use fedstay::{
    AgentId, Aggregator, Decision, Error, Facts, Mean, Report, Reports, Retain, Round, Seed,
    Server, Vector,
};

/// The mean of what is left after the extremes are cut off, one component at a time.
#[derive(Debug, Clone)]
struct TrimmedMean {
    /// The share that is cut off at either end, below a half.
    share: f64,
}

impl Aggregator for TrimmedMean {
    fn aggregate(&mut self, round: &Round<'_>, step: &mut [f64]) -> Result<Decision, Error> {
        let cut = (self.share * round.reports.len() as f64) as usize;
        for (index, value) in step.iter_mut().enumerate() {
            let directions = round.reports.iter().map(|report| report.direction);
            let mut column: Vec<f64> = directions.filter_map(|g| g.get(index)).collect();
            column.sort_by(f64::total_cmp);
            let kept = &column[cut..column.len() - cut];
            *value = -round.step_size * kept.iter().sum::<f64>() / kept.len() as f64;
        }
        Ok(Decision::new(round.forecast(step, 0.0), round.step_size))
    }

    fn check(&self) -> Result<(), Error> {
        if (0.0..0.5).contains(&self.share) {
            return Ok(());
        }
        Err(Error::bad_parameter("share", self.share, "from 0 to below a half"))
    }

    fn facts(&self) -> Facts {
        Facts { reads_epsilon: false, label: vec!["trimmed-mean"], ..Facts::default() }
    }

    /// It remembers nothing, so there is nothing to save.
    fn save(&self) -> Option<String> {
        Some(String::new())
    }

    fn restore(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }
}

/// What is left of a federation after a run.
struct Outcome {
    rounds: u32,
    left: Vec<(AgentId, u32)>,
    worst_loss: f64,
}

/// Runs agents that leave for good once they are content, with their loss at most ε.
fn play(mut server: Server, instance: &Instance) -> Result<Outcome, Error> {
    let dimension = instance.start.len();
    let mut left: Vec<(AgentId, u32)> = Vec::new();
    for round in 1..=2_000 {
        let mut gradients = Vec::new();
        let mut goodbyes = Vec::new();
        for (index, oracle) in instance.oracles.iter().enumerate() {
            let agent = AgentId(index as u64);
            if left.iter().any(|(gone, _)| *gone == agent) {
                continue;
            }
            let mut gradient = vec![0.0; dimension];
            let loss = oracle.loss_and_gradient(server.weights(), &mut gradient);
            if loss <= instance.epsilon {
                goodbyes.push(agent);
            } else {
                gradients.push((agent, loss, gradient));
            }
        }
        left.extend(goodbyes.iter().map(|agent| (*agent, round)));
        let reports = gradients.iter().map(|(agent, loss, gradient)| {
            Report::new(*agent, *loss, instance.epsilon, Vector::F64(gradient))
        });
        let reports = Reports::with_goodbyes(dimension, reports.collect(), goodbyes)?;
        let decision = server.step(&reports)?;
        if decision.stop.is_some() {
            break;
        }
    }
    let losses = instance.oracles.iter().map(|oracle| oracle.loss(server.delivered()));
    Ok(Outcome { rounds: server.round(), left, worst_loss: losses.fold(f64::MIN, f64::max) })
}

fn main() -> Result<(), Error> {
    let problem = Problem::Huber(Huber { agents: 10, ..Huber::default() });
    let instance = problem.build(Seed(0))?;
    let (start, step_size) = (|| instance.start.clone(), instance.step_size);
    let mut retain = Retain::new(instance.delta);
    retain.smoothness = instance.smoothness;
    println!("{}: {} agents, ε = {}", problem.name(), instance.oracles.len(), instance.epsilon);
    for (name, server) in [
        (
            "trimmed mean",
            Server::with_rule(start(), Box::new(TrimmedMean { share: 0.2 }), step_size)?,
        ),
        ("fedavg", Server::new(start(), Mean::default(), step_size)?),
        ("retain", Server::new(start(), retain, step_size)?),
    ] {
        let Outcome { rounds, left, worst_loss } = play(server, &instance)?;
        println!("{name}: {rounds} rounds, the worst agent ends with a loss of {worst_loss:.3}");
        match left.first() {
            Some((agent, round)) => {
                println!("  {} left, agent {agent} first, in round {round}", left.len());
            }
            None => println!("  nobody left"),
        }
    }
    Ok(())
}
