//! A custom engine: three agents with one equation each, run under three rules.
//!
//! ```text
//! cargo run --example custom_engine
//! ```
//!
//! An engine is whatever reaches the agents. This one has them in this process; yours may ask
//! machines over a network. [`Participant`] does what is the same for all agents: it decides,
//! leaves, and stays away. What remains is the work, here the gradient of `½(x·w − y)²`, and
//! carrying the answers.

use fedstay::record::HeaderAgent;
use fedstay::{
    About, AdaGd, AgentAssessment, AgentId, Answer, Assessment, Behaviour, Call, Engine, Error,
    Evidence, Gathered, Loss, Mean, Memory, Participant, ParticipantState, Report, Reports, Retain,
    Score, Server, Session, Vector,
};

/// An agent that wants `x·w = y`, and is content with a loss of ε.
struct Equation {
    participant: Participant,
    x: [f64; 3],
    y: f64,
    gradient: [f64; 3],
}

impl Equation {
    fn new(id: u64, x: [f64; 3], y: f64) -> Self {
        let participant = Participant::new(AgentId(id), 0.05, Behaviour::default());
        Self { participant, x, y, gradient: [0.0; 3] }
    }

    fn error(&self, weights: &[f64]) -> f64 {
        self.x.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() - self.y
    }

    fn loss(&self, weights: &[f64]) -> f64 {
        0.5 * self.error(weights).powi(2)
    }
}

/// What an agent decides on.
struct OwnLoss(f64);

impl Evidence for OwnLoss {
    fn loss(&mut self) -> f64 {
        self.0
    }
}

struct Equations(Vec<Equation>);

impl Engine for Equations {
    fn agents(&self) -> Vec<HeaderAgent> {
        let listed = |agent: &Equation| {
            let Participant { id, epsilon, .. } = agent.participant;
            HeaderAgent { id, epsilon, name: None }
        };
        self.0.iter().map(listed).collect()
    }

    fn gather(&mut self, call: &Call<'_>) -> Result<Gathered<'_>, Error> {
        let (mut reports, mut goodbyes) = (Vec::new(), Vec::new());
        for agent in &mut self.0 {
            let Participant { id, epsilon, .. } = agent.participant;
            let weights = &*call.broadcast.to(id);
            let loss = agent.loss(weights);
            match agent.participant.answer(call.round, &mut OwnLoss(loss), false) {
                Answer::Leaves => goodbyes.push(id),
                Answer::StaysAway | Answer::SitsOut => {}
                Answer::Reports | Answer::Returns => {
                    let error = agent.error(weights);
                    agent.gradient = agent.x.map(|x| error * x);
                    reports.push(Report::new(
                        id,
                        Loss::Exact(loss).leaves_at(epsilon),
                        Vector::F64(&agent.gradient),
                    ));
                }
            }
        }
        Ok(Gathered::new(Reports::with_goodbyes(3, reports, goodbyes)?))
    }

    fn assess(&mut self, weights: &[f64]) -> Result<Assessment, Error> {
        let assessed = |agent: &Equation| AgentAssessment {
            id: agent.participant.id,
            epsilon: agent.participant.epsilon,
            behaviour: None,
            score: Score::new(agent.loss(weights)),
            as_of: None,
            held_back: None,
        };
        Ok(Assessment {
            agents: self.0.iter().map(assessed).collect(),
            population: None,
            constant: None,
        })
    }

    /// Saves who has left, for a run that is interrupted and continued ([`Session::state`]).
    fn save(&self) -> Result<Memory, Error> {
        Memory::of(&self.0.iter().map(|agent| agent.participant.save()).collect::<Vec<_>>())
    }

    fn restore(&mut self, memory: &Memory) -> Result<(), Error> {
        let states: Vec<ParticipantState> = memory.read()?;
        let mut agents = self.0.iter_mut().zip(states);
        agents.try_for_each(|(agent, state)| agent.participant.restore(state))
    }
}

fn play(name: &str, server: Server) -> Result<(), Error> {
    let agents = Equations(vec![
        Equation::new(0, [0.0, 0.0, 1.0], 3.0),
        Equation::new(1, [2.0, 2.0, 1.0], 2.0),
        Equation::new(2, [-1.0, 2.0, 2.0], 1.0),
    ]);
    let about = About { label: name.into(), on: "equations".into(), ..About::default() };
    let mut session = Session::new(server, agents, 200, about)?;
    let Some(summary) = session.run(&mut [])? else { return Ok(()) };
    println!(
        "{name}: {}, {} left, {} rounds",
        summary.verdict.name(),
        summary.left.len(),
        summary.rounds
    );
    for agent in &summary.agents {
        let loss = agent.score.loss;
        let content = if loss <= agent.epsilon { "content" } else { "not content" };
        println!("  {}: loss {loss:.2}, ε = {}, {content}", agent.called(), agent.epsilon);
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let start = || vec![0.0; 3];
    play("fedavg", Server::new(start(), Mean::default(), 0.1)?)?;
    play("ada-gd", Server::new(start(), AdaGd::default(), 0.1)?)?;
    // No loss bends more than ‖x‖² = 9; a rule that knows this can prove that it lands.
    let mut retain = Retain::new(0.05);
    retain.smoothness = Some(9.0);
    play("retain", Server::new(start(), retain, 0.1)?)
}
