//! A custom rule: the trimmed mean, run on a named problem beside two rules of the list.
//!
//! ```text
//! cargo run --example custom_rule
//! ```
//!
//! Every component of the step is the mean of the agents' values without the smallest and the
//! largest share of them, so that a few agents with wild gradients cannot carry the model away
//! (Yin, Chen, Ramchandran, Bartlett, *Byzantine-Robust Distributed Learning*, ICML 2018). Agents
//! here are honest and leave once they are content: the trimmed mean, which does not look at that,
//! loses all of them one by one, as averaging does, and `retain` brings all of them to their target
//! at once.

use fedstay::problem::{Federation, Huber, Instance, Problem};
use fedstay::{
    About, Aggregator, Behaviour, Decision, Error, Facts, Mean, Retain, Round, Seed, Server,
    Session,
};

/// The mean of what is left after the extremes are cut off, one component at a time.
#[derive(Debug, Clone)]
struct TrimmedMean {
    /// The share that is cut off at each end, below a half.
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
        Facts { reads_epsilon: false, name: Some("trimmed-mean".into()), ..Facts::default() }
    }

    /// It remembers nothing, so there is nothing to save.
    fn save(&self) -> Option<String> {
        Some(String::new())
    }

    fn restore(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }
}

/// Runs a server on the problem's agents, which leave for good once they are content.
fn play(name: &str, server: Server, instance: &Instance) -> Result<(), Error> {
    let epsilon = vec![instance.epsilon; instance.oracles.len()];
    let agents = Federation::new(instance, &epsilon, &Behaviour::default())?;
    let mut session = Session::new(server, agents, 2_000, About::default())?;
    let Some(summary) = session.run(&mut [])? else { return Ok(()) };
    println!(
        "{name}: {}, {} left, {} rounds, the worst agent ends with a loss of {:.3}",
        summary.verdict.name(),
        summary.left.len(),
        summary.rounds,
        summary.score.loss.max
    );
    Ok(())
}

fn main() -> Result<(), Error> {
    let problem = Problem::Huber(Huber { agents: 10, ..Huber::default() });
    let instance = problem.build(Seed(0))?;
    let (start, step_size) = (|| instance.start.clone(), instance.step_size);
    let mut retain = Retain::new(instance.delta);
    retain.smoothness = instance.smoothness;
    println!("{}: {} agents, ε = {}", problem.name(), instance.oracles.len(), instance.epsilon);
    let trimmed = Box::new(TrimmedMean { share: 0.2 });
    play("trimmed mean", Server::with_rule(start(), trimmed, step_size)?, &instance)?;
    play("fedavg", Server::new(start(), Mean::default(), step_size)?, &instance)?;
    play("retain", Server::new(start(), retain, step_size)?, &instance)
}
