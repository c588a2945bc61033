//! `Server` and `Decision`.

use crate::convert::{Numbers, described};
use crate::error::{Raised, error, from_core};
use crate::report::{HeldReport, Report};
use crate::workers::machine;
use fedstay::{AgentId, Losses, Policies};
use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A server that turns reports into steps: no I/O, no clock, no randomness of its own.
///
/// Parameters
/// ----------
/// weights : array
///     Where training starts; any shape, kept as float64.
/// rule : Rule, str, dict or an object of your own
///     How reports become a step: an object such as `fedstay.AdaGd()`, a name such as "fedavg", or
///     anything with `aggregate(round)`, see `fedstay.CustomRule`.
/// step_size : float
///     The step size η.
/// policy : Policy, str, dict or a list of them, optional
///     What to do around the rule: "early-stop", "keep-best", "guard", or "preview", under which
///     every agent receives `weights_for` it. Several act in the order of a list.
/// rounds : int, optional
///     How many rounds there will be at most, for a policy that plans ahead.
///
/// >>> import fedstay
/// >>> server = fedstay.Server([0.0, 0.0], fedstay.AdaGd(delta=0.05), 0.1)
/// >>> near = fedstay.Report(0, [1.0, 0.0], loss=0.2, epsilon=0.1)
/// >>> far = fedstay.Report(1, [1.0, 1.0], loss=3.0, epsilon=0.1)
/// >>> server.step([near, far])
/// Decision(case=1, d=[0], nd=[1], stop=None, step_size=0.1)
/// >>> server.weights.round(6).tolist()  # agent 0's loss stays, agent 1 is helped
/// [0.0, -0.1]
///
/// Agents that bring no epsilon have that of the rule, if it has one:
///
/// >>> server = fedstay.Server([0.0, 0.0], fedstay.AdaGd(epsilon=0.1, delta=0.05), step_size=0.1)
/// >>> server.step([fedstay.Report(0, [1.0, 0.0], loss=0.2), fedstay.Report(1, [1.0, 1.0], loss=3.0)]).d
/// [0]
#[pyclass(module = "fedstay")]
pub(crate) struct Server {
    inner: fedstay::Server,
    /// The target loss of agents whose reports bring none.
    epsilon: Option<f64>,
    raised: Raised,
}

/// A server's checkpoint.
#[derive(Serialize, Deserialize)]
struct State {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epsilon: Option<f64>,
    server: fedstay::ServerState,
}

pub(crate) fn policies(value: Option<&Bound<'_, PyAny>>) -> PyResult<Policies> {
    value.map_or(Ok(Policies::default()), |value| described(value, "policy", "guard"))
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (weights, rule, step_size, *, policy=None, rounds=None))]
    fn new(
        weights: &Bound<'_, PyAny>,
        rule: &Bound<'_, PyAny>,
        step_size: f64,
        policy: Option<&Bound<'_, PyAny>>,
        rounds: Option<u32>,
    ) -> PyResult<Self> {
        let weights = Numbers::new(weights, "`weights`", None)?.widened(rule.py())?;
        let policies = self::policies(policy)?;
        let raised = Raised::default();
        let inner = fedstay::Server::new(weights, crate::rule::read(rule, &raised)?, step_size)
            .and_then(|server| server.with_policy(policies));
        let epsilon = match rule.getattr_opt("epsilon")? {
            Some(epsilon) => epsilon.extract()?,
            None => None,
        };
        let mut inner = inner.map_err(from_core)?.with_machine(machine());
        if let Some(rounds) = rounds {
            inner.expect(rounds);
        }
        Ok(Self { inner, epsilon, raised })
    }

    /// One round: reports in, weights moved, decision out.
    ///
    /// `goodbyes` are the numbers of agents that left in this round, and `absent` is how many are
    /// still in but were not heard from. With `newcomers` agents may join later, and what these are
    /// shown under a policy is kept. Other Python threads run in the meantime, and long vectors are
    /// shared among the cores, which changes no bit of the step. After an error the server is as it
    /// was: leave the named agent out and try again.
    #[pyo3(signature = (reports, goodbyes=Vec::new(), absent=0, newcomers=false))]
    fn step(
        &mut self,
        py: Python<'_>,
        reports: Vec<Bound<'_, Report>>,
        goodbyes: Vec<u64>,
        absent: usize,
        newcomers: bool,
    ) -> PyResult<Decision> {
        let held: Vec<HeldReport<'_>> =
            reports.into_iter().map(HeldReport::new).collect::<PyResult<_>>()?;
        let reports: Vec<fedstay::Report<'_>> =
            held.iter().map(|held| held.read(self.epsilon)).collect::<PyResult<_>>()?;
        let goodbyes = goodbyes.into_iter().map(AgentId).collect();
        let server = &mut self.inner;
        let decision = py.detach(|| {
            let reports = server.admit(reports, goodbyes)?;
            server.step(&reports.with_absent(absent).with_newcomers(newcomers))
        });
        Ok(Decision::from(decision.map_err(|why| self.raised.behind(why))?))
    }

    /// The current weights, as a new float64 array.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.weights().to_pyarray(py)
    }

    /// The weights to send to an agent: the current ones, or those that the policy shows it
    /// instead. None stands for an agent that has no number yet.
    fn weights_for<'py>(&self, py: Python<'py>, agent: Option<u64>) -> Bound<'py, PyArray1<f64>> {
        let broadcast = self.inner.broadcast();
        match agent {
            Some(agent) => broadcast.to(AgentId(agent)).to_pyarray(py),
            None => broadcast.newcomers().as_deref().unwrap_or(broadcast.shared()).to_pyarray(py),
        }
    }

    /// What an agent is to add to the gradient of every local step, where the rule corrects them
    /// (scaffold) and the agent has reported before; else None.
    fn correction<'py>(&self, py: Python<'py>, agent: u64) -> Option<Bound<'py, PyArray1<f64>>> {
        Some(self.inner.broadcast().correction(AgentId(agent))?.to_pyarray(py))
    }

    /// The weights to deliver: the current ones, or those that the policy kept.
    #[getter]
    fn delivered<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.delivered().to_pyarray(py)
    }

    /// What the last step added to the weights.
    #[getter]
    fn displacement<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.displacement().to_pyarray(py)
    }

    /// The number of rounds so far.
    #[getter]
    fn round(&self) -> u32 {
        self.inner.round()
    }

    /// The step size in force.
    #[getter]
    fn step_size(&self) -> f64 {
        self.inner.step_size()
    }

    /// The rule's name.
    #[getter]
    fn rule(&self) -> &str {
        self.inner.rule().name()
    }

    /// Whether every loss must be exact in the next round; else lower bounds are enough for agents
    /// that are far from leaving.
    #[getter]
    fn needs_exact_losses(&self) -> bool {
        self.inner.losses() == Losses::Exact
    }

    /// The share of the usual work for each agent in the next round, where the rule sets loads.
    #[getter]
    fn loads(&self) -> Option<BTreeMap<u64, f64>> {
        let loads = self.inner.loads()?;
        Some(loads.into_iter().map(|(agent, share)| (agent.0, share)).collect())
    }

    /// The whole state of the server, for a checkpoint; `Server.from_state` continues from it.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        crate::rule::refuse_unsaved(self.inner.rule())?;
        let state = || State { epsilon: self.epsilon, server: self.inner.state() };
        let bytes = py.detach(|| serde_json::to_vec(&state()));
        let bytes = bytes.map_err(|why| self.raised.take().unwrap_or_else(|| error(why)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A server as it was when `state` was taken; a rule of your own must be given again.
    ///
    /// >>> import fedstay
    /// >>> server = fedstay.Server([1.0, 2.0], "fedavg", 0.1)
    /// >>> fedstay.Server.from_state(server.state()).weights.tolist()
    /// [1.0, 2.0]
    #[staticmethod]
    #[pyo3(signature = (state, rule=None))]
    fn from_state(state: &[u8], rule: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let State { epsilon, server } = serde_json::from_slice(state).map_err(|why| {
            error(format!("these {} bytes are not the state of a server: {why}", state.len()))
        })?;
        let raised = Raised::default();
        let rule = rule.map(|rule| crate::rule::own(rule, &raised)).transpose()?.flatten();
        let inner = match rule {
            Some(rule) => fedstay::Server::from_state_with(server, rule),
            None => fedstay::Server::from_state(server),
        };
        let inner = inner.map_err(|why| raised.behind(why))?.with_machine(machine());
        Ok(Self { inner, epsilon, raised })
    }

    fn __repr__(&self) -> String {
        format!(
            "Server({} weights, {}, round {}, step_size={})",
            self.inner.weights().len(),
            self.inner.rule().name(),
            self.inner.round(),
            self.inner.step_size()
        )
    }
}

/// What the server decided in a round.
#[pyclass(frozen, get_all, module = "fedstay")]
pub(crate) struct Decision {
    /// The agents that are about to leave.
    d: Vec<u64>,
    /// The other agents.
    nd: Vec<u64>,
    /// The paper's case, for rules that act on the prediction.
    case: Option<u8>,
    /// Why the run ends here, if it does.
    stop: Option<&'static str>,
    /// The step size from here on.
    step_size: f64,
    /// How many independent gradients the projection kept clear of.
    rank: Option<usize>,
    /// Whether everybody is brought under their target loss: "certified", "estimated", "no".
    landed: Option<String>,
    /// The agents that had received weights of their own: number, distance from the server's
    /// weights, and loss there as far as its report tells.
    shown: Vec<(u64, f64, f64)>,
    /// The agents whose reports were not taken at their word, and what was done about it: "capped", "moved" or
    /// "benched".
    doubted: Vec<(u64, String)>,
    /// Whether the step leads back to the best weights so far.
    reverted: bool,
}

impl From<fedstay::Decision> for Decision {
    fn from(decision: fedstay::Decision) -> Self {
        let ids = |agents: Vec<AgentId>| agents.into_iter().map(|agent| agent.0).collect();
        let landed = decision.landed.and_then(|landed| serde_json::to_value(landed).ok());
        let why = |why| serde_json::to_value(why).ok()?.as_str().map(str::to_owned);
        let doubted = decision.doubted.iter();
        Self {
            d: ids(decision.split.d),
            nd: ids(decision.split.nd),
            case: decision.case,
            stop: decision.stop.map(fedstay::StopReason::name),
            step_size: decision.step_size,
            rank: decision.projection.map(|projection| projection.rank),
            landed: landed.and_then(|landed| landed.as_str().map(str::to_owned)),
            doubted: doubted.filter_map(|d| Some((d.agent.0, why(d.why)?))).collect(),
            reverted: decision.reverted,
            shown: decision.shown.iter().map(|s| (s.agent.0, s.distance, s.real)).collect(),
        }
    }
}

#[pymethods]
impl Decision {
    fn __repr__(&self) -> String {
        let case = self.case.map_or("None".to_owned(), |case| case.to_string());
        let stop = self.stop.map_or("None".to_owned(), |stop| format!("'{stop}'"));
        format!(
            "Decision(case={case}, d={:?}, nd={:?}, stop={stop}, step_size={})",
            self.d, self.nd, self.step_size
        )
    }
}
