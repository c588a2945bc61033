//! What can be listed, by the names a configuration uses, and behaviours for agents in Python.

use crate::convert::described;
use crate::error::{Raised, error, from_core};
use crate::participant::Sight;
use fedstay::list::Entry;
use fedstay::policy::Place;
use fedstay::{AgentId, Choice, Optimiser, Policies, Rule, View};
use pyo3::prelude::*;

/// The list of "rules", "optimisers", "policies", "behaviours" or "schedules": name, one sentence, reference.
#[pyfunction]
pub(crate) fn listed(what: &str) -> PyResult<Vec<(&'static str, &'static str, &'static str)>> {
    let list: &[Entry] = match what {
        "rules" => Rule::LIST,
        "optimisers" => Optimiser::LIST,
        "policies" => Policies::LIST,
        "behaviours" => fedstay::Behaviour::LIST,
        "schedules" => fedstay::Schedule::LIST,
        _ => {
            return Err(error(format!(
                "no list `{what}`: rules, optimisers, policies, behaviours, schedules"
            )));
        }
    };
    Ok(list.iter().map(|entry| (entry.name, entry.about, entry.reference)).collect())
}

/// The keys of an experiment: name, an example of a value, one sentence.
#[pyfunction]
pub(crate) fn keys() -> Vec<(&'static str, &'static str, &'static str)> {
    fedstay_sim::experiment::KEYS.iter().map(|key| (key.name, key.example, key.about)).collect()
}

/// A rule with all its parameters, as JSON; raises for one that does not exist.
#[pyfunction]
pub(crate) fn complete_rule(rule: &Bound<'_, PyAny>) -> PyResult<String> {
    let rule = crate::rule::read(rule, &Raised::default())?;
    rule.check().map_err(from_core)?;
    serde_json::to_string(&rule).map_err(error)
}

/// A policy with all its parameters, as JSON; raises for one that does not exist.
#[pyfunction]
pub(crate) fn complete_policy(policy: &Bound<'_, PyAny>) -> PyResult<String> {
    let policies = crate::server::policies(Some(policy))?;
    serde_json::to_string(&policies).map_err(error)
}

/// What each policy is called, whether it shows agents other weights than the server's, and whether
/// it computes with what reports predict; raises for policies that do not go together.
#[pyfunction]
#[pyo3(signature = (policy))]
pub(crate) fn policy_facts(
    policy: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<(&'static str, bool, bool)>> {
    let policies = crate::server::policies(policy)?;
    policies.check().map_err(from_core)?;
    let facts = policies.iter().map(|policy| (policy.name(), policy.facts()));
    let told =
        facts.map(|(name, facts)| (name, facts.place == Place::Shows, facts.reads_gradients));
    Ok(told.collect())
}

/// The policy that a rule is made for, as TOML, if it is made for one: it runs under that unless another is named.
#[pyfunction]
pub(crate) fn policy_of_rule(rule: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    Ok(crate::rule::read(rule, &Raised::default())?.facts().policy)
}

/// Refuses a rule that sets loads where nobody applies them: the run would follow another rule.
#[pyfunction]
pub(crate) fn refuse_loads(rule: &Bound<'_, PyAny>, place: &str) -> PyResult<()> {
    let rule = crate::rule::read(rule, &Raised::default())?;
    if rule.facts().sets_loads { Err(error(no_loads(rule.name(), place))) } else { Ok(()) }
}

/// What a rule asks of agents beyond a direction and a loss: "corrections", if they are to correct
/// every local step, "rates", if they are to tell how well their groups are served, and "gradients",
/// if it takes what they send for the gradient at the weights they received.
#[pyfunction]
pub(crate) fn asks_of_agents(rule: &Bound<'_, PyAny>) -> PyResult<Vec<&'static str>> {
    let facts = crate::rule::read(rule, &Raised::default())?.facts();
    let asks = [
        (facts.corrects, "corrections"),
        (facts.reads_rates, "rates"),
        (facts.reads_gradients, "gradients"),
    ];
    Ok(asks.into_iter().filter(|(asks, _)| *asks).map(|(_, what)| what).collect())
}

/// Why a rule's loads cannot be applied, and what to use instead.
pub(crate) fn no_loads(rule: &str, place: &str) -> String {
    format!(
        "{rule} with variant \"load\" tells every agent how many samples to work on, and {place} do \
         not do that; use variant=\"weight\", or `fedstay.run`, whose simulator applies loads"
    )
}

/// The smallest step size at which an agent is about to leave: (loss − epsilon − delta)/norm.
///
/// An agent may send it instead of its loss and its epsilon; ADA-GD then decides the same.
///
/// >>> import fedstay
/// >>> round(fedstay.tau(loss=1.0, epsilon=0.1, delta=0.05, norm=2.0), 6)
/// 0.425
#[pyfunction]
#[pyo3(signature = (*, loss, epsilon, delta, norm))]
pub(crate) fn tau(loss: f64, epsilon: f64, delta: f64, norm: f64) -> f64 {
    fedstay::tau(loss, epsilon, delta, norm)
}

/// How an agent decides whether to stay: a name such as "threshold" or a dict as in TOML.
///
/// >>> import fedstay
/// >>> fedstay.Behaviour("threshold").leaves(loss=0.09, epsilon=0.1)
/// True
#[pyclass(module = "fedstay")]
pub(crate) struct Behaviour {
    inner: fedstay::Behaviour,
}

#[pymethods]
impl Behaviour {
    #[new]
    #[pyo3(signature = (behaviour=None))]
    fn new(behaviour: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Self::read(behaviour)
    }

    /// Whether the agent leaves, or, if it is not `present`, stays away.
    ///
    /// `descended(steps, rate)` gives its loss after this many private gradient steps, for
    /// behaviours that look ahead; `step_size` is the server's.
    #[pyo3(signature = (*, loss, epsilon, round=1, agent=0, present=true, step_size=0.0,
        descended=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn leaves(
        &mut self,
        loss: f64,
        epsilon: f64,
        round: u32,
        agent: u64,
        present: bool,
        step_size: f64,
        descended: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let mut sight = Sight::new(loss, step_size, descended);
        let (agent, evidence) = (AgentId(agent), &mut sight);
        let choice = self.inner.decide(&mut View { agent, round, epsilon, present, evidence });
        sight.done()?;
        Ok(choice == Choice::Leave)
    }

    /// The loss it reports instead of the true one.
    fn told(&self, loss: f64) -> f64 {
        self.inner.manner().told(loss)
    }

    /// Whether it works for the report of the round it has just decided to stay in; else it repeats
    /// its last direction.
    #[getter]
    fn works(&self) -> bool {
        self.inner.manner().works
    }

    /// Whether, having left, it still looks at the model and may come back.
    #[getter]
    fn comes_back(&self) -> bool {
        self.inner.comes_back()
    }

    /// Whether it may repeat its last direction.
    #[getter]
    fn repeats(&self) -> bool {
        self.inner.repeats()
    }

    /// One behaviour per agent: the same for all, or a mixed population's, assigned by the seed.
    fn assign(&self, agents: usize, seed: u64) -> PyResult<Vec<Self>> {
        let dealt = self.inner.assign(agents, fedstay::Seed(seed)).map_err(from_core)?;
        Ok(dealt.into_iter().map(|inner| Self { inner }).collect())
    }

    /// The name of the behaviour.
    #[getter]
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn __repr__(&self) -> String {
        format!("Behaviour('{}')", self.inner.name())
    }
}

impl Behaviour {
    /// Reads a name, a dict, another behaviour, or nothing for the default one.
    pub(crate) fn read(value: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(value) = value else { return Ok(Self { inner: Default::default() }) };
        if let Ok(other) = value.cast::<Self>() {
            return Ok(Self { inner: other.borrow().inner.clone() });
        }
        let inner: fedstay::Behaviour = described(value, "behaviour", "threshold")?;
        inner.check().map_err(from_core)?;
        Ok(Self { inner })
    }

    /// The core's behaviour, for labels.
    pub(crate) fn inner(&self) -> &fedstay::Behaviour {
        &self.inner
    }
}
