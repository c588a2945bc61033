//! The server: weights, a rule, and one pure transition.

mod forgetting;
pub mod optimiser;
pub mod policy;
mod state;

pub use forgetting::{ForgetMethod, Forgetting};
pub use optimiser::Optimiser;
pub use policy::{Policies, Policy};
pub use state::{Progress, ServerState};

use crate::memory::inside;
use crate::message::{Correct, kept, measure};
use crate::rule::{Aggregator, Losses, Round, Rule};
use crate::{
    AgentId, Broadcast, Decision, Error, Report, Reports, Split, StopReason, Vector, linalg,
};
use fedstay_kernels::numerics::Machine;
use serde_json::Value;
use state::Clock;

/// A server that turns reports into steps.
///
/// It is pure: no I/O, no clock, no randomness. After an error it is as it was before the call.
#[derive(Debug, Clone)]
pub struct Server {
    weights: Vec<f64>,
    step: Vec<f64>,
    rule: Rule,
    optimiser: Optimiser,
    policies: Policies,
    forgetting: Option<Forgetting>,
    /// How many rounds the run has at most, if somebody said.
    rounds: Option<u32>,
    clock: Clock,
    machine: Machine,
    /// No weight is larger than this, up or down.
    bound: f64,
}

impl Server {
    /// A server before its first round, with a rule from the list. Neither the rule nor a
    /// [policy](Self::with_policy) may remember anything yet: [`from_state`](Self::from_state) is
    /// for those that do.
    pub fn new(weights: Vec<f64>, rule: impl Into<Rule>, step_size: f64) -> Result<Self, Error> {
        let rule = rule.into();
        if !matches!(rule, Rule::Custom(_)) {
            inside::check_fresh("rule", &rule)?;
        }
        Self::begin(weights, rule, step_size)
    }

    /// A server before its first round, with a custom rule; see [`Aggregator`].
    pub fn with_rule(
        weights: Vec<f64>,
        rule: Box<dyn Aggregator>,
        step_size: f64,
    ) -> Result<Self, Error> {
        Self::begin(weights, rule.into(), step_size)
    }

    fn begin(weights: Vec<f64>, rule: Rule, step_size: f64) -> Result<Self, Error> {
        rule.check()?;
        if !(step_size.is_finite() && step_size > 0.0) {
            return Err(Error::bad_parameter("step_size", step_size, "a number above zero"));
        }
        if let Some(index) = weights.iter().position(|weight| !weight.is_finite()) {
            let name = format!("weight {index}");
            return Err(Error::bad_parameter(name, weights[index], "a finite number"));
        }
        let bound = weights.iter().fold(0.0, |bound: f64, weight| bound.max(weight.abs()));
        Ok(Self {
            step: vec![0.0; weights.len()],
            weights,
            rule,
            optimiser: Optimiser::default(),
            policies: Policies::default(),
            forgetting: None,
            rounds: None,
            clock: Clock { round: 0, step_size, initial_step_size: step_size, last_step: 0.0 },
            machine: Machine::default(),
            bound,
        })
    }

    /// This server, computing with this machine. It changes how fast a step comes, not the step.
    #[must_use]
    pub fn with_machine(self, machine: Machine) -> Self {
        Self { machine, ..self }
    }

    /// This server with an optimiser between its rule and its policy.
    pub fn with_optimiser(mut self, optimiser: Optimiser) -> Result<Self, Error> {
        optimiser.check()?;
        inside::check_fresh("server", &optimiser)?;
        self.optimiser = optimiser;
        Ok(self)
    }

    /// This server under a policy, or under several that act one after the other.
    ///
    /// # Errors
    /// If a parameter is out of range, or the policies do not go together in this order.
    pub fn with_policy(mut self, policies: impl Into<Policies>) -> Result<Self, Error> {
        let policies = policies.into();
        policies.check()?;
        policies.check_fresh()?;
        self.policies = policies;
        Ok(self)
    }

    /// This server, which does something about agents that ask to be forgotten when they leave.
    ///
    /// # Errors
    /// If a parameter is out of range, or the rule is a custom one, of which nobody knows how to begin
    /// anew.
    pub fn with_forgetting(mut self, forgetting: Forgetting) -> Result<Self, Error> {
        if matches!(self.rule, Rule::Custom(_)) {
            let must = "left out where the rule is a custom one, which cannot begin anew";
            return Err(Error::bad_parameter("forget.how", forgetting.how.name(), must));
        }
        self.forgetting = Some(forgetting.begin(&self.weights)?);
        Ok(self)
    }

    /// Forgets agents, before anything is made of this round's reports.
    fn forget(&mut self, who: Vec<AgentId>, reports: &Reports<'_>) -> Result<Decision, Error> {
        let Some(forgetting) = &self.forgetting else {
            return Ok(Decision::new(Split::default(), self.clock.step_size));
        };
        let (mut rule, mut optimiser) = (self.rule.clone(), self.optimiser.clone());
        let (mut policies, mut forgetting) = (self.policies.clone(), forgetting.clone());
        inside::put(&mut rule, Value::Null)?;
        inside::put(&mut optimiser, Value::Null)?;
        policies.recall(Value::Null)?;
        self.step = forgetting.forget(&who, &self.weights);
        self.machine.add_scaled(&mut self.weights, 1.0, Vector::F64(&self.step));
        if let Some(rounds) = self.rounds {
            policies.expect(rounds);
        }
        (self.rule, self.optimiser, self.policies) = (rule, optimiser, policies);
        self.forgetting = Some(forgetting);
        self.clock.step_size = self.clock.initial_step_size;
        self.clock.last_step = linalg::norm(Vector::F64(&self.step));
        self.bound += self.clock.last_step;
        self.clock.round += 1;
        let over = reports.is_empty() && reports.absent() == 0;
        Ok(Decision {
            stop: over.then_some(StopReason::EveryoneLeft),
            forgot: who,
            ..Decision::new(Split::by(reports, |_| false), self.clock.step_size)
        })
    }

    /// Checks the reports of a round for this server, with its [machine](Self::with_machine), in one
    /// pass over the vectors that also makes what the rule is going to ask about them.
    pub fn admit<'a>(
        &self,
        reports: Vec<Report<'a>>,
        goodbyes: Vec<AgentId>,
    ) -> Result<Reports<'a>, Error> {
        let pairs = self.rule.facts().asks_pairs;
        Reports::measured(self.weights.len(), reports, goodbyes, self.machine.clone(), pairs)
    }

    /// One round: reports in, weights moved, decision out.
    ///
    /// A round without reports moves nothing. If nobody is [absent](Reports::absent) either,
    /// everyone has left, and the run ends as [`StopReason::EveryoneLeft`]. An error leaves the
    /// server as it was: the caller may drop the offending report and try again.
    pub fn step(&mut self, reports: &Reports<'_>) -> Result<Decision, Error> {
        if let Some(report) = reports.iter().find(|r| r.direction.len() != self.weights.len()) {
            return Err(Error::WrongDimension {
                agent: report.agent,
                what: "direction",
                expected: self.weights.len(),
                got: report.direction.len(),
            });
        }
        let asking = self.forgetting.as_ref().map_or(Vec::new(), |f| f.asking(reports));
        let keeps = self.forgetting.as_ref().is_none_or(|f| f.how == ForgetMethod::Keep);
        if !asking.is_empty() && !keeps {
            return self.forget(asking, reports);
        }
        let told = Round {
            number: self.clock.round + 1,
            step_size: self.clock.step_size,
            initial_step_size: self.clock.initial_step_size,
            last_step: self.clock.last_step,
            weights: &self.weights,
            reports,
        };
        // What forgetting replays is added to the step as well.
        if reports.is_empty() || self.forgetting.is_some() || !self.rule.facts().fills_step {
            self.step.fill(0.0);
        }
        if reports.is_empty() {
            self.policies.heard_nobody(&told)?;
            self.clock.round += 1;
            return Ok(Decision {
                stop: (reports.absent() == 0).then_some(StopReason::EveryoneLeft),
                forgot: asking,
                ..Decision::new(Split::default(), self.clock.step_size)
            });
        }
        // The rule sees only the server's weights, whatever anybody was shown.
        let room = self.policies.translations();
        let views = self.policies.views(&self.weights, reports, &self.rule.facts(), &room)?;
        let round = Round { reports: views.common(), ..told };
        // The rule works on a copy of its memory, so that a failure further down costs nothing.
        let mut rule = self.rule.clone();
        let mut optimiser = self.optimiser.clone();
        let mut forgetting = self.forgetting.clone();
        let replayed = forgetting.as_mut().and_then(|f| f.replay(&round, &mut self.step));
        let mut decision = match replayed {
            Some(()) => Decision::new(round.forecast(&self.step, 0.0), self.clock.step_size),
            None => {
                let mut decision = rule.aggregate(&round, &mut self.step)?;
                optimiser.apply(&round, &rule.facts(), &mut self.step, &mut decision)?;
                decision
            }
        };
        // What was measured is about the rule's own step, which nobody changed.
        let own = optimiser.is_plain() && self.policies.is_empty();
        let known = decision.measured.take().filter(|_| own);
        if known.as_ref().is_none_or(|known| !(self.bound + known.length).is_finite()) {
            self.check_overflow()?;
        }
        self.policies.apply(&told, &views, &mut self.step, &mut decision)?;
        if let (None, Some(forgetting)) = (replayed, &mut forgetting) {
            forgetting.note(&round, &self.step);
        }
        decision.forgot = asking;
        let measured = measure(known, reports, &self.step);
        if decision.kept.is_none() {
            let lands = decision.stop == Some(StopReason::Landed);
            let slack = self.rule.slack().unwrap_or(0.0);
            let stay = || kept(reports, &self.step, &measured, slack);
            decision.kept = if lands { Some(true) } else { stay() };
        }

        reports.machine().add_scaled(&mut self.weights, 1.0, Vector::F64(&self.step));
        self.bound += measured.length;
        (self.rule, self.optimiser, self.forgetting) = (rule, optimiser, forgetting);
        self.clock.step_size = decision.step_size;
        self.clock.last_step = measured.length;
        self.clock.round += 1;
        Ok(decision)
    }

    fn check_overflow(&self) -> Result<(), Error> {
        let overflow = self.weights.iter().zip(&self.step).position(|(w, s)| !(w + s).is_finite());
        match overflow {
            None => Ok(()),
            Some(index) => {
                let value = self.weights[index] + self.step[index];
                Err(Error::StepOverflow { index, value, step_size: self.clock.step_size })
            }
        }
    }

    /// The current weights.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The weights to deliver: the current ones, or those the policy or the rule kept.
    pub fn delivered(&self) -> &[f64] {
        self.policies.deliver().or_else(|| self.rule.deliver()).unwrap_or(&self.weights)
    }

    /// What the next round's agents receive.
    pub fn broadcast(&self) -> Broadcast<'_> {
        self.policies
            .broadcast(&self.weights)
            .with_correcting(self.rule.facts().corrects.then_some(&self.rule as &dyn Correct))
    }

    /// Is told how many rounds the run has at most, for a policy that plans ahead.
    pub fn expect(&mut self, rounds: u32) {
        self.rounds = Some(rounds);
        self.policies.expect(rounds);
    }

    /// What the last [`step`](Self::step) added to the weights.
    pub fn displacement(&self) -> &[f64] {
        &self.step
    }

    /// The number of rounds so far.
    pub fn round(&self) -> u32 {
        self.clock.round
    }

    /// The step size in force.
    pub fn step_size(&self) -> f64 {
        self.clock.step_size
    }

    /// The rule.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// The optimiser between the rule and the policy.
    pub fn optimiser(&self) -> &Optimiser {
        &self.optimiser
    }

    /// The policies around the rule, in the order in which they act.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// What it does about agents that ask to be forgotten, if anything.
    pub fn forgetting(&self) -> Option<&Forgetting> {
        self.forgetting.as_ref()
    }

    /// The losses that the rule and the policy compute with in the next round.
    pub fn losses(&self) -> Losses {
        // A rule that keeps agents knows how far its own step reaches, not how far an optimiser's.
        let farther = !self.optimiser.is_plain() && self.rule.slack().is_some();
        if farther || !self.policies.is_empty() {
            return Losses::Exact;
        }
        self.rule.losses(self.clock.step_size, self.clock.last_step)
    }

    /// Whether the rule or the policy sees to it that nobody reaches its target loss.
    pub(crate) fn sees_to_keeping(&self) -> bool {
        self.rule.facts().keeps || self.policies.keep()
    }

    /// Each agent's share of the usual work in the next round, if the rule sets loads.
    pub fn loads(&self) -> Option<Vec<(AgentId, f64)>> {
        self.rule.loads()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AdaGd, Loss, Mean, Report};

    fn one(g: &[f64]) -> Vec<Report<'_>> {
        vec![Report::new(AgentId(0), Loss::Exact(5.0).leaves_at(0.1), Vector::F64(g))]
    }

    #[test]
    fn an_error_leaves_the_server_as_it_was() {
        let mut server = Server::new(vec![1e308, 0.0], Mean::default(), 1e10).unwrap();
        let before = server.state();
        let g = [-1e150, 0.0];
        let reports = vec![Report { reach: Some(1e300), ..one(&g)[0] }];
        let error = server.step(&Reports::new(2, reports).unwrap()).unwrap_err();
        assert!(matches!(error, Error::StepOverflow { index: 0, .. }), "{error}");
        let short = [1.0];
        let wrong = server.step(&Reports::new(1, one(&short)).unwrap()).unwrap_err();
        assert!(matches!(wrong, Error::WrongDimension { agent: AgentId(0), .. }));
        assert_eq!(server.state(), before);
    }

    #[test]
    fn everyone_left_is_an_outcome_and_counts_as_a_round() {
        let mut server = Server::new(vec![1.0], AdaGd::default(), 0.1).unwrap();
        let decision = server.step(&Reports::new(1, vec![]).unwrap()).unwrap();
        assert_eq!(decision.stop, Some(StopReason::EveryoneLeft));
        assert_eq!((server.round(), server.weights()), (1, &[1.0][..]));
        let old: StopReason = serde_json::from_str("\"nobody-left\"").unwrap();
        assert_eq!(old, StopReason::EveryoneLeft, "files of earlier versions are read");
    }

    #[test]
    fn a_round_in_which_all_who_were_asked_leave_is_no_end_while_others_are_still_in() {
        let mut server = Server::new(vec![1.0], Mean::default(), 0.1).unwrap();
        let goodbyes = Reports::with_goodbyes(1, vec![], vec![AgentId(3)]).unwrap();
        let decision = server.step(&goodbyes.with_absent(2)).unwrap();
        assert_eq!((decision.stop, server.round()), (None, 1));
        let g = [1.0];
        server.step(&Reports::new(1, one(&g)).unwrap()).unwrap();
        assert_eq!(server.weights(), [0.9], "the next round is an ordinary one");
    }

    #[test]
    fn parameters_are_checked_once_at_the_start() {
        assert!(Server::new(vec![0.0], Mean::default(), 0.0).is_err());
        assert!(Server::new(vec![f64::NAN], Mean::default(), 0.1).is_err());
        assert!(Server::new(vec![0.0], AdaGd { delta: -1.0, ..AdaGd::default() }, 0.1).is_err());
    }

    #[test]
    fn early_stop_refuses_the_step_that_would_lose_somebody() {
        let policy = Policy::EarlyStop(Default::default());
        let mut server =
            Server::new(vec![0.0], Mean::default(), 1.0).unwrap().with_policy(policy).unwrap();
        let (far, near) = ([1.0], [4.95]);
        assert_eq!(server.step(&Reports::new(1, one(&far)).unwrap()).unwrap().stop, None);
        let weights = server.weights().to_vec();
        let decision = server.step(&Reports::new(1, one(&near)).unwrap()).unwrap();
        assert_eq!(decision.stop, Some(StopReason::EarlyStop));
        assert_eq!((server.weights(), decision.split.d), (&weights[..], vec![AgentId(0)]));
    }

    #[test]
    fn keep_best_delivers_the_best_until_somebody_left() {
        let policy = Policy::KeepBest(Default::default());
        let mut server =
            Server::new(vec![0.0], Mean::default(), 1.0).unwrap().with_policy(policy).unwrap();
        let g = [1.0];
        let report =
            |id, loss| Report::new(AgentId(id), Loss::Exact(loss).leaves_at(0.1), Vector::F64(&g));
        let rounds = [
            vec![report(0, 2.0), report(1, 2.0)],
            vec![report(0, 0.2), report(1, 1.0)],
            vec![report(0, 0.3), report(1, 1.1)],
        ];
        for reports in rounds {
            server.step(&Reports::new(1, reports).unwrap()).unwrap();
        }
        assert_eq!((server.weights(), server.delivered()), (&[-3.0][..], &[-1.0][..]));
        // Agent 0 leaves content: (0.1 + 0.5)/2 beats 0.6. What comes later cannot be judged.
        let leaves = Reports::with_goodbyes(1, vec![report(1, 0.5)], vec![AgentId(0)]).unwrap();
        server.step(&leaves).unwrap();
        let text = serde_json::to_string(&server.state()).unwrap();
        let mut server = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
        server.step(&Reports::new(1, vec![report(1, 0.0)]).unwrap()).unwrap();
        assert_eq!(server.delivered(), [-3.0]);
    }
}
