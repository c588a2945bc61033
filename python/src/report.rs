//! `Report`: what an agent reports, with vectors that stay where they are.

use crate::convert::{Held, Numbers};
use crate::error::blame;
use crate::rates::Rates;
use fedstay::record::called;
use fedstay::{AgentId, Loss, Standing};
use pyo3::prelude::*;

/// One agent's answer to one broadcast.
///
/// `direction` is the gradient at the weights the agent received or, after several local steps, the
/// mean of the gradients along its path. Arrays of float32, float64 or bfloat16 are read where they
/// are, in memory or in a file that is mapped into it (`numpy.memmap`); they must not change until the
/// step is done. NumPy has no bfloat16: give a tensor of PyTorch, an array of `ml_dtypes`, or the bits
/// as `bits.view([("bfloat16", "u2")])`. An agent reports its `loss` and the `epsilon`
/// at which it is content (unless the rule has one for all), or, to keep both to itself, `tau`
/// alone.
///
/// Parameters
/// ----------
/// agent : int
///     The agent's number.
/// direction : array
///     As many numbers as there are weights, in any shape.
/// loss, epsilon : float
///     Its loss at the weights it received, and the loss at which it leaves.
/// standard_error : float, optional
///     The standard error of a loss that is an estimate from a sample: rules then keep more distance.
/// at_least : bool
///     Whether the loss is only a lower bound.
/// tau : float, optional
///     Sent instead of loss and epsilon: see `fedstay.tau`.
/// gradient : array, optional
///     The gradient at the received weights, where `direction` is something else.
/// reach : float, optional
///     The sum of the local step sizes; the server's step size unless given.
/// samples : int
///     The number of samples behind the report.
/// rates : Rates, optional
///     How well the weights it received serve two groups among its rows, for rules that ask
///     (fairfed).
///
/// >>> import fedstay
/// >>> fedstay.Report(3, [1.0, 0.0], loss=0.2, epsilon=0.1)
/// Report(agent=3, loss=0.2, epsilon=0.1)
#[pyclass(frozen, module = "fedstay")]
pub(crate) struct Report {
    pub(crate) agent: AgentId,
    told: GivenStanding,
    direction: Numbers,
    gradient: Option<Numbers>,
    pub(crate) reach: Option<f64>,
    samples: u64,
    rates: Option<Rates>,
}

/// How close the agent is to leaving; without an ε of its own, the rule's counts.
enum GivenStanding {
    Open { loss: Loss, epsilon: Option<f64> },
    Private { tau: f64 },
}

/// A report whose vectors are borrowed from Python.
pub(crate) struct HeldReport<'py> {
    report: Bound<'py, Report>,
    direction: Held<'py>,
    gradient: Option<Held<'py>>,
}

impl<'py> HeldReport<'py> {
    pub(crate) fn new(report: Bound<'py, Report>) -> PyResult<Self> {
        let py = report.py();
        let inner = report.get();
        let direction = inner.direction.hold(py)?;
        let gradient = inner.gradient.as_ref().map(|gradient| gradient.hold(py)).transpose()?;
        Ok(Self { direction, gradient, report })
    }

    /// The core's report; `usual` is the target loss of agents that bring none.
    pub(crate) fn read(&self, usual: Option<f64>) -> PyResult<fedstay::Report<'_>> {
        let report = self.report.get();
        let standing = match report.told {
            GivenStanding::Private { tau } => Standing::Private { tau },
            GivenStanding::Open { loss, epsilon } => {
                let epsilon = epsilon.or(usual).ok_or_else(|| {
                    let why = "has no `epsilon`, the loss at which it leaves; give it one, or give the \
                               rule one for all";
                    blame(format!("{} {why}", called(report.agent, None)), Some(report.agent))
                })?;
                Standing::Open { loss, epsilon }
            }
        };
        Ok(fedstay::Report {
            agent: report.agent,
            standing,
            direction: self.direction.vector()?,
            gradient: self.gradient.as_ref().map(Held::vector).transpose()?,
            reach: report.reach,
            samples: report.samples,
            length: None,
            rates: report.rates.map(|rates| rates.0),
        })
    }
}

impl Report {
    /// A copy of a report of the core, with vectors of its own.
    pub(crate) fn of_core(py: Python<'_>, report: &fedstay::Report<'_>) -> Self {
        let told = match report.standing {
            Standing::Open { loss, epsilon } => {
                GivenStanding::Open { loss, epsilon: Some(epsilon) }
            }
            Standing::Private { tau } => GivenStanding::Private { tau },
        };
        Self {
            agent: report.agent,
            told,
            direction: Numbers::copy(py, report.direction),
            gradient: report.gradient.map(|gradient| Numbers::copy(py, gradient)),
            reach: report.reach,
            samples: report.samples,
            rates: report.rates.map(Rates),
        }
    }

    pub(crate) fn hold_direction<'py>(&self, py: Python<'py>) -> PyResult<Held<'py>> {
        self.direction.hold(py)
    }
}

#[pymethods]
impl Report {
    #[new]
    #[pyo3(signature = (agent, direction, *, loss=None, epsilon=None, standard_error=None,
        at_least=false, tau=None, gradient=None, reach=None, samples=1,
        rates=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        agent: u64,
        direction: &Bound<'_, PyAny>,
        loss: Option<f64>,
        epsilon: Option<f64>,
        standard_error: Option<f64>,
        at_least: bool,
        tau: Option<f64>,
        gradient: Option<&Bound<'_, PyAny>>,
        reach: Option<f64>,
        samples: u64,
        rates: Option<Rates>,
    ) -> PyResult<Self> {
        let agent = AgentId(agent);
        let refuse = |why: &str| Err(blame(format!("{}: {why}", called(agent, None)), Some(agent)));
        let loss = match (loss, standard_error, at_least) {
            (Some(_), Some(_), true) => {
                return refuse("a loss is a lower bound (`at_least`) or an estimate, not both");
            }
            (Some(mean), Some(standard_error), _) => Some(Loss::Sampled { mean, standard_error }),
            (Some(loss), None, true) => Some(Loss::AtLeast(loss)),
            (Some(loss), None, false) => Some(Loss::Exact(loss)),
            (None, ..) => None,
        };
        let told = match (loss, epsilon, tau) {
            (Some(loss), epsilon, None) => GivenStanding::Open { loss, epsilon },
            (None, None, Some(tau)) => GivenStanding::Private { tau },
            _ => return refuse("a report has either `loss` and `epsilon`, or `tau` alone"),
        };
        let read = |value: &Bound<'_, PyAny>, what| Numbers::new(value, what, Some(agent));
        Ok(Self {
            agent,
            told,
            direction: read(direction, "its direction")?,
            gradient: gradient.map(|value| read(value, "its gradient")).transpose()?,
            reach,
            samples,
            rates,
        })
    }

    /// The agent's number.
    #[getter]
    fn agent(&self) -> u64 {
        self.agent.0
    }

    /// Its loss at the weights it received; None where it does not reveal it.
    #[getter]
    fn loss(&self) -> Option<f64> {
        match self.told {
            GivenStanding::Open { loss, .. } => Some(loss.value()),
            GivenStanding::Private { .. } => None,
        }
    }

    /// The loss at which it leaves; None where it does not reveal it.
    #[getter]
    fn epsilon(&self) -> Option<f64> {
        match self.told {
            GivenStanding::Open { epsilon, .. } => epsilon,
            GivenStanding::Private { .. } => None,
        }
    }

    /// Its direction, as it is read: the same memory wherever that was possible.
    #[getter]
    fn direction(&self, py: Python<'_>) -> Py<PyAny> {
        self.direction.to_python(py)
    }

    /// The gradient at the received weights: the direction, unless another one was given.
    #[getter]
    fn gradient(&self, py: Python<'_>) -> Py<PyAny> {
        self.gradient.as_ref().unwrap_or(&self.direction).to_python(py)
    }

    /// The sum of the local step sizes; None for the server's step size, which a rule sees filled
    /// in.
    #[getter]
    fn reach(&self) -> Option<f64> {
        self.reach
    }

    /// How well the weights it received serve two groups among its rows; None if it does not say.
    #[getter]
    fn rates(&self) -> Option<Rates> {
        self.rates
    }

    /// The number of samples behind the report.
    #[getter]
    fn samples(&self) -> u64 {
        self.samples
    }

    /// Raises `fedstay.Error` unless a server with this many weights can use the report. Returns
    /// the length of its direction, or of its gradient where that is longer.
    fn check(slf: Bound<'_, Self>, dimension: usize) -> PyResult<f64> {
        let held = HeldReport::new(slf)?;
        let report = held.read(None)?;
        let alone = fedstay::Report { gradient: None, ..report };
        let lengths = [report, alone].map(|report| {
            let reports = fedstay::Reports::new(dimension, vec![report]);
            reports.map(|reports| reports.norms()[0]).map_err(crate::error::from_core)
        });
        let [slope, direction] = lengths;
        Ok(slope?.max(direction?))
    }

    fn __repr__(&self) -> String {
        let standing = match self.told {
            GivenStanding::Open { loss, epsilon: Some(epsilon) } => {
                format!("loss={}, epsilon={epsilon}", loss.value())
            }
            GivenStanding::Open { loss, epsilon: None } => format!("loss={}", loss.value()),
            GivenStanding::Private { tau } => format!("tau={tau}"),
        };
        format!("Report(agent={}, {standing})", self.agent.0)
    }
}
