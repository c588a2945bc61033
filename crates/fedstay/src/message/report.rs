//! What agents tell the server, checked at the door.

use crate::{AgentId, Error, Vector, linalg};
use fedstay_kernels::numerics::projection::FEW;
use fedstay_kernels::numerics::{Gram, Machine};

/// A loss, with what is known about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// The loss over the agent's full local data.
    Exact(f64),
    /// The loss is at least this: evaluation stopped once the agent's decision was settled.
    AtLeast(f64),
    /// An estimate from a sample. Rules widen their margin by the standard error.
    Sampled {
        /// The sample mean.
        mean: f64,
        /// Its standard error.
        standard_error: f64,
    },
}

impl Loss {
    /// What an agent tells that has this loss, and leaves once it is at most `epsilon`.
    pub fn leaves_at(self, epsilon: f64) -> Standing {
        Standing::Open { loss: self, epsilon }
    }

    /// The number to show.
    pub fn value(self) -> f64 {
        match self {
            Self::Exact(value) | Self::AtLeast(value) | Self::Sampled { mean: value, .. } => value,
        }
    }

    /// The loss a careful server plans with: two standard errors below a sampled one.
    pub(crate) fn cautious(self) -> f64 {
        match self {
            Self::Exact(value) | Self::AtLeast(value) => value,
            Self::Sampled { mean, standard_error } => mean - 2.0 * standard_error,
        }
    }

    /// The loss a careful server believes an agent to be content by: two standard errors above a
    /// sampled one.
    pub(crate) fn doubtful(self) -> f64 {
        match self {
            Self::Exact(value) | Self::AtLeast(value) => value,
            Self::Sampled { mean, standard_error } => mean + 2.0 * standard_error,
        }
    }
}

/// What an agent reveals about how close it is to leaving.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// It tells its loss and the target loss at which it is content.
    Open {
        /// The loss at the weights it received.
        loss: Loss,
        /// It leaves once its loss is at most this.
        epsilon: f64,
    },
    /// It tells only the step size at which it would count as about to leave,
    /// `τ = (F − ε − δ)/‖g‖` (see [`tau`]). Enough for ADA-GD, for any step size.
    Private {
        /// That step size; negative for an agent that is about to leave at any step size.
        tau: f64,
    },
}

/// One agent's answer to one broadcast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report<'a> {
    /// The agent.
    pub agent: AgentId,
    /// What it reveals about how close it is to leaving.
    pub standing: Standing,
    /// The mean of the gradients along the agent's local path; with one full-batch step, the
    /// gradient.
    pub direction: Vector<'a>,
    /// The exact gradient at the received weights, if the agent has it; it may be the same vector as
    /// the direction. Predictions and constraints use this one.
    pub gradient: Option<Vector<'a>>,
    /// The sum of the local step sizes, so that the agent's own displacement is
    /// `−reach · direction`. It is the server's step size if not given.
    pub reach: Option<f64>,
    /// The number of samples behind the report.
    pub samples: u64,
    /// The length of the [slope](Self::slope) by [`linalg::norm`], if the maker of the report has
    /// measured it, where the vector was at hand; the server measures it otherwise.
    pub length: Option<f64>,
    /// How well the model it received serves two groups among its rows, where rows have groups and
    /// the rule asks.
    pub rates: Option<Rates>,
}

/// How well a model serves two groups among an agent's rows, in counts, so that those of several
/// agents add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rates {
    /// For each group, how many of the rows that count are classified rightly: for equal opportunity,
    /// those of the positive class.
    pub right: [u64; 2],
    /// For each group, how many rows count.
    pub of: [u64; 2],
    /// How many of all rows are classified rightly.
    pub correct: u64,
    /// How many rows there are.
    pub rows: u64,
}

impl Rates {
    /// The difference between the two groups' rates; `None` if a group has no rows that count.
    pub fn difference(&self) -> Option<f64> {
        let rate = |group: usize| {
            (self.of[group] > 0).then(|| self.right[group] as f64 / self.of[group] as f64)
        };
        Some(rate(0)? - rate(1)?)
    }

    /// The share of all rows that are classified rightly.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.rows.max(1) as f64
    }

    /// The counts of two agents together.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let both =
            |a: [u64; 2], b: [u64; 2]| [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])];
        Self {
            right: both(self.right, other.right),
            of: both(self.of, other.of),
            correct: self.correct.saturating_add(other.correct),
            rows: self.rows.saturating_add(other.rows),
        }
    }

    /// Whether no count is larger than what it is counted among.
    fn adds_up(&self) -> bool {
        let groups = self.right.iter().zip(&self.of).all(|(right, of)| right <= of);
        let all = self.of[0].saturating_add(self.of[1]) <= self.rows;
        groups && all && self.correct <= self.rows && self.rows > 0
    }
}

impl<'a> Report<'a> {
    /// A report of a full gradient.
    ///
    /// ```
    /// use fedstay::{AgentId, Loss, Report, Vector};
    ///
    /// let gradient = [0.5, -1.0];
    /// let report = Report::new(AgentId(3), Loss::Exact(0.7).leaves_at(0.2), Vector::F64(&gradient));
    /// assert_eq!((report.loss(), report.epsilon()), (Some(Loss::Exact(0.7)), Some(0.2)));
    /// ```
    pub fn new(agent: AgentId, standing: Standing, direction: Vector<'a>) -> Self {
        Self {
            agent,
            standing,
            direction,
            gradient: Some(direction),
            reach: None,
            samples: 1,
            length: None,
            rates: None,
        }
    }

    /// The best gradient at the received weights that the report has.
    pub fn slope(&self) -> Vector<'a> {
        self.gradient.unwrap_or(self.direction)
    }

    /// The gradient, if it is another vector than the direction.
    pub(crate) fn other_gradient(&self) -> Option<Vector<'a>> {
        self.gradient.filter(|gradient| !gradient.is(self.direction))
    }

    /// The loss, if the agent tells it.
    pub fn loss(&self) -> Option<Loss> {
        match self.standing {
            Standing::Open { loss, .. } => Some(loss),
            Standing::Private { .. } => None,
        }
    }

    /// The target loss at which the agent leaves, if it tells that.
    pub fn epsilon(&self) -> Option<f64> {
        match self.standing {
            Standing::Open { epsilon, .. } => Some(epsilon),
            Standing::Private { .. } => None,
        }
    }

    /// The exact (or sampled) loss, or an error that names who asked for it.
    pub fn exact_loss(&self, rule: &'static str) -> Result<f64, Error> {
        let instead = match self.standing {
            Standing::Open {
                loss: Loss::Exact(value) | Loss::Sampled { mean: value, .. }, ..
            } => {
                return Ok(value);
            }
            Standing::Open { loss: Loss::AtLeast(_), .. } => "only a lower bound",
            Standing::Private { .. } => "none (privacy mode)",
        };
        Err(Error::NeedsExactLoss { agent: self.agent, rule, instead })
    }
}

/// The smallest step size at which an agent counts as about to leave: `(F − ε − δ)/‖g‖`.
///
/// ADA-GD's test `F − η‖g‖ ≤ ε + δ` is `τ ≤ η`, so an agent may send `τ` instead of `F` and `ε`,
/// and the split stays the same for every step size. A tie counts as about to leave; a few units in
/// the last place are given away so that rounding cannot push a tie to the wrong side.
pub fn tau(loss: f64, epsilon: f64, delta: f64, norm: f64) -> f64 {
    let floor = epsilon + delta;
    let room = loss - floor - 4.0 * f64::EPSILON * loss.abs().max(floor.abs());
    match (room > 0.0, norm > 0.0) {
        (_, true) => room / norm,
        (true, false) => f64::INFINITY,
        (false, false) => f64::NEG_INFINITY,
    }
}

/// The reports of one round: sorted by agent, one per agent, all finite and of one dimension.
///
/// ```
/// use fedstay::{AgentId, Loss, Report, Reports, Vector};
///
/// let gradient = [1.0, 0.0];
/// let standing = Loss::Exact(2.0).leaves_at(0.1);
/// let report = |agent| Report::new(AgentId(agent), standing, Vector::F64(&gradient));
/// // Two agents report, in whichever order, and a third says goodbye.
/// let reports = Reports::with_goodbyes(2, vec![report(4), report(1)], vec![AgentId(5)])?;
/// assert!(reports.iter().map(|report| report.agent).eq([AgentId(1), AgentId(4)]));
/// assert_eq!(reports.goodbyes(), [AgentId(5)]);
/// // What cannot be used is refused, with the agent that sent it.
/// let refused = Reports::new(3, vec![report(4)]).unwrap_err();
/// assert!(refused.to_string().contains("agent 4"));
/// # Ok::<(), fedstay::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Reports<'a> {
    reports: Vec<Report<'a>>,
    norms: Vec<f64>,
    /// The inner products of all directions, where they were made together with the lengths.
    pairs: Option<Gram>,
    machine: Machine,
    goodbyes: Vec<AgentId>,
    returned: Vec<AgentId>,
    absent: usize,
    newcomers: bool,
    /// By how much each loss fell in translation, of those that were made at other weights than the server's; empty
    /// where none was.
    falls: Vec<Option<f64>>,
}

impl<'a> Reports<'a> {
    /// Checks the reports for weights of `dimension` components. A round without reports is valid:
    /// everyone has left, unless some are [absent](Self::with_absent).
    pub fn new(dimension: usize, reports: Vec<Report<'a>>) -> Result<Self, Error> {
        Self::with_goodbyes(dimension, reports, Vec::new())
    }

    /// Checks the reports, given the agents that said goodbye in this round.
    pub fn with_goodbyes(
        dimension: usize,
        reports: Vec<Report<'a>>,
        goodbyes: Vec<AgentId>,
    ) -> Result<Self, Error> {
        Self::with_machine(dimension, reports, goodbyes, Machine::default())
    }

    /// Checks the reports with this machine, which then also computes the step.
    pub fn with_machine(
        dimension: usize,
        reports: Vec<Report<'a>>,
        goodbyes: Vec<AgentId>,
        machine: Machine,
    ) -> Result<Self, Error> {
        Self::measured(dimension, reports, goodbyes, machine, false)
    }

    /// The same; with `pairs`, the pass that measures the directions makes their inner products as well,
    /// if there are few and no report has a gradient beside its direction.
    pub(crate) fn measured(
        dimension: usize,
        mut reports: Vec<Report<'a>>,
        mut goodbyes: Vec<AgentId>,
        machine: Machine,
        pairs: bool,
    ) -> Result<Self, Error> {
        reports.sort_by_key(|report| report.agent);
        goodbyes.sort_unstable();
        goodbyes.dedup();
        if let Some(pair) = reports.windows(2).find(|pair| pair[0].agent == pair[1].agent) {
            return Err(Error::DuplicateAgent { agent: pair[0].agent });
        }
        if let (0, Some(report)) = (dimension, reports.first()) {
            return Err(Error::EmptyDirection { agent: report.agent });
        }
        for report in &reports {
            if goodbyes.binary_search(&report.agent).is_ok() {
                return Err(Error::ReportAfterGoodbye { agent: report.agent });
            }
            check_numbers(report)?;
            check_dimension(report.agent, "direction", report.direction, dimension)?;
            if let Some(gradient) = report.other_gradient() {
                check_dimension(report.agent, "gradient", gradient, dimension)?;
            }
        }
        let directions: Vec<Vector<'_>> = reports.iter().map(|report| report.direction).collect();
        let pairs = (pairs && reports.len() <= FEW && all_from_directions(&reports))
            .then(|| machine.gram(&directions));
        let norms = match &pairs {
            Some(pairs) => (0..reports.len()).map(|index| pairs.get(index, index).sqrt()).collect(),
            None => lengths(&reports, &machine),
        };
        for (report, norm) in reports.iter().zip(&norms) {
            match report.other_gradient() {
                None => check_finite(report.agent, "direction", report.direction, *norm)?,
                Some(gradient) => {
                    let length = machine.squares(&[report.direction])[0].sqrt();
                    check_finite(report.agent, "direction", report.direction, length)?;
                    check_finite(report.agent, "gradient", gradient, *norm)?;
                }
            }
        }
        Ok(Self {
            reports,
            norms,
            pairs,
            machine,
            goodbyes,
            returned: Vec::new(),
            absent: 0,
            newcomers: false,
            falls: Vec::new(),
        })
    }

    /// These reports, with the agents among them that had left and came back in this round.
    pub fn with_returned(mut self, mut returned: Vec<AgentId>) -> Result<Self, Error> {
        returned.sort_unstable();
        returned.dedup();
        let reported =
            |agent: &AgentId| self.reports.binary_search_by_key(agent, |r| r.agent).is_ok();
        if let Some(agent) = returned.iter().find(|agent| !reported(agent)) {
            return Err(Error::ReturnWithoutReport { agent: *agent });
        }
        self.returned = returned;
        Ok(self)
    }

    /// These reports, with the number of agents that are still in but were not heard from in this
    /// round: not asked, or silent. Without it, a round in which all agents that were asked say
    /// goodbye is taken for the end of the federation.
    pub fn with_absent(mut self, absent: usize) -> Self {
        self.absent = absent;
        self
    }

    /// These reports, of a federation which agents may join in any round. What such an agent is shown
    /// before it has been heard is then kept.
    pub fn with_newcomers(mut self, newcomers: bool) -> Self {
        self.newcomers = newcomers;
        self
    }

    /// Whether agents may join later, which are not counted as absent.
    pub(crate) fn newcomers(&self) -> bool {
        self.newcomers
    }

    /// The number of agents that are still in but were not heard from in this round.
    pub fn absent(&self) -> usize {
        self.absent
    }

    /// Takes out one agent's report, for a round that cannot be stepped with it. The agent then
    /// counts as absent, not as gone.
    pub(crate) fn remove(&mut self, agent: AgentId) {
        if let Ok(index) = self.reports.binary_search_by_key(&agent, |report| report.agent) {
            self.reports.remove(index);
            self.norms.remove(index);
            if !self.falls.is_empty() {
                self.falls.remove(index);
            }
            self.pairs = None;
            self.absent += 1;
            self.returned.retain(|returned| *returned != agent);
        }
    }

    /// These reports, each changed by `change`, which is given its position and the length of its
    /// slope, and says by how much its loss fell if it was made at other weights.
    pub(crate) fn translated(
        &self,
        change: impl Fn(usize, &mut Report<'a>, &mut f64) -> Option<f64>,
    ) -> Self {
        let mut translated = Self { pairs: None, ..self.clone() };
        let lines = translated.reports.iter_mut().zip(&mut translated.norms).enumerate();
        let changed = lines.map(|(index, (report, norm))| change(index, report, norm));
        let falls = changed.enumerate().map(|(index, fall)| match (fall, self.fall(index)) {
            (None, before) => before,
            (Some(fall), before) => Some(fall + before.unwrap_or_default()),
        });
        translated.falls = falls.collect();
        translated
    }

    /// By how much the loss of this report is lower than the one that was reported, if that was made at other
    /// weights than it speaks of: those that a policy showed its agent.
    pub(crate) fn fall(&self, index: usize) -> Option<f64> {
        self.falls.get(index).copied().flatten()
    }

    /// The reports, by agent.
    pub fn iter(&self) -> std::slice::Iter<'_, Report<'a>> {
        self.reports.iter()
    }

    /// The reports as a slice, by agent.
    pub fn as_slice(&self) -> &[Report<'a>] {
        &self.reports
    }

    /// The length of every report's [slope](Report::slope), in the same order.
    pub fn norms(&self) -> &[f64] {
        &self.norms
    }

    /// The inner products of all directions, in the same order, where they are known.
    pub(crate) fn pairs(&self) -> Option<&Gram> {
        self.pairs.as_ref()
    }

    /// What sums over these vectors are computed with.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The agents that said goodbye in this round.
    pub fn goodbyes(&self) -> &[AgentId] {
        &self.goodbyes
    }

    /// The agents that came back in this round, having said goodbye in an earlier one.
    pub(crate) fn returned(&self) -> &[AgentId] {
        &self.returned
    }

    /// The number of reports.
    pub fn len(&self) -> usize {
        self.reports.len()
    }

    /// Whether nobody reported.
    pub fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }
}

fn check_numbers(report: &Report<'_>) -> Result<(), Error> {
    let agent = report.agent;
    let finite = |what: &str, value: f64| {
        if value.is_finite() {
            Ok(())
        } else {
            Err(Error::NotFinite { agent, what: what.to_owned(), value })
        }
    };
    match report.standing {
        Standing::Open { loss, epsilon } => {
            finite("loss", loss.value())?;
            if let Loss::Sampled { standard_error, .. } = loss {
                finite("loss's standard error", standard_error)?;
                if standard_error < 0.0 {
                    let must = "zero or more";
                    let what = "loss's standard error";
                    return Err(Error::OutOfRange { agent, what, value: standard_error, must });
                }
            }
            finite("epsilon", epsilon)?;
        }
        // An infinite τ is meaningful: a zero gradient never brings the agent nearer.
        Standing::Private { tau } if tau.is_nan() => finite("tau", tau)?,
        Standing::Private { .. } => {}
    }
    if report.rates.is_some_and(|rates| !rates.adds_up()) {
        let must = "counts of which none exceeds what it is counted among";
        let value = report.rates.map_or(0.0, |rates| rates.correct as f64);
        return Err(Error::OutOfRange { agent, what: "rates", value, must });
    }
    if let Some(reach) = report.reach {
        finite("reach", reach)?;
        if reach < 0.0 {
            let must = "zero or more";
            return Err(Error::OutOfRange { agent, what: "reach", value: reach, must });
        }
    }
    Ok(())
}

/// Whether the length of every slope is still to be measured, and is that of the direction.
fn all_from_directions(reports: &[Report<'_>]) -> bool {
    reports.iter().all(|report| report.length.is_none() && report.other_gradient().is_none())
}

/// The length of every report's slope: as it was measured, else measured now, all in one pass.
fn lengths(reports: &[Report<'_>], machine: &Machine) -> Vec<f64> {
    let open: Vec<&Report<'_>> = reports.iter().filter(|report| report.length.is_none()).collect();
    let slopes: Vec<Vector<'_>> = open.iter().map(|report| report.slope()).collect();
    let mut squares = machine.squares(&slopes).into_iter();
    let length = |report: &Report<'_>| match report.length {
        None => squares.next().unwrap_or_default().sqrt(),
        Some(length) => {
            debug_assert!(length.total_cmp(&linalg::norm(report.slope())).is_eq());
            length
        }
    };
    reports.iter().map(length).collect()
}

fn check_dimension(
    agent: AgentId,
    what: &'static str,
    vector: Vector<'_>,
    expected: usize,
) -> Result<(), Error> {
    match vector.len() {
        got if got != expected => Err(Error::WrongDimension { agent, what, expected, got }),
        _ => Ok(()),
    }
}

/// Checks that all components are finite, given the length of the vector.
fn check_finite(
    agent: AgentId,
    what: &'static str,
    vector: Vector<'_>,
    length: f64,
) -> Result<(), Error> {
    if length.is_finite() {
        return Ok(());
    }
    // Rare: find out which component it was.
    for index in 0..vector.len() {
        if let Some(value) = vector.get(index).filter(|value| !value.is_finite()) {
            return Err(Error::NotFinite { agent, what: format!("{what}[{index}]"), value });
        }
    }
    Err(Error::TooLarge { agent, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(agent: u64, direction: &[f64]) -> Report<'_> {
        Report::new(AgentId(agent), Loss::Exact(1.0).leaves_at(0.1), Vector::F64(direction))
    }

    #[test]
    fn reports_are_sorted_and_measured() {
        let reports =
            Reports::new(2, vec![report(2, &[3.0, 4.0]), report(1, &[0.0, 2.0])]).unwrap();
        assert_eq!(reports.iter().map(|r| r.agent.0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(reports.norms(), [2.0, 5.0]);
    }

    #[test]
    fn each_fault_has_its_own_error_that_names_the_agent() {
        let fault = |reports| Reports::new(2, reports).unwrap_err();
        let nan = [0.0, f64::NAN];
        assert!(matches!(fault(vec![report(7, &nan)]),
            Error::NotFinite { agent: AgentId(7), what, .. } if what == "direction[1]"));
        assert!(matches!(
            fault(vec![report(7, &[1.0])]),
            Error::WrongDimension { agent: AgentId(7), expected: 2, got: 1, .. }
        ));
        assert!(matches!(
            fault(vec![report(7, &[1.0, 1.0]), report(7, &[1.0, 1.0])]),
            Error::DuplicateAgent { agent: AgentId(7) }
        ));
        assert!(matches!(
            fault(vec![report(7, &[1e200, 0.0])]),
            Error::TooLarge { agent: AgentId(7), what: "direction" }
        ));
        assert!(matches!(
            Reports::new(0, vec![report(7, &[])]),
            Err(Error::EmptyDirection { agent: AgentId(7) })
        ));
        let direction = [1.0, 0.0];
        for loss in [f64::NAN, f64::INFINITY] {
            let bad =
                Report::new(AgentId(7), Loss::Exact(loss).leaves_at(0.1), Vector::F64(&direction));
            assert!(matches!(fault(vec![bad]),
                Error::NotFinite { agent: AgentId(7), what, .. } if what == "loss"));
        }
        let rates = Rates { right: [3, 0], of: [2, 1], correct: 3, rows: 3 };
        let miscounted = Report { rates: Some(rates), ..report(7, &direction) };
        assert!(matches!(fault(vec![miscounted]), Error::OutOfRange { what: "rates", .. }));
        let backwards = Report { reach: Some(-1.0), ..report(7, &direction) };
        assert!(matches!(fault(vec![backwards]), Error::OutOfRange { what: "reach", .. }));
        let leaver = Reports::with_goodbyes(2, vec![report(7, &direction)], vec![AgentId(7)]);
        assert_eq!(leaver, Err(Error::ReportAfterGoodbye { agent: AgentId(7) }));
        let silent = Reports::new(2, vec![]).unwrap().with_returned(vec![AgentId(7)]);
        assert_eq!(silent, Err(Error::ReturnWithoutReport { agent: AgentId(7) }));
    }

    #[test]
    fn an_empty_round_is_a_round() {
        assert!(Reports::new(2, vec![]).unwrap().is_empty());
    }

    #[test]
    fn tau_is_where_the_test_flips() {
        assert!(tau(0.5, 0.125, 0.125, 1.0) <= 0.25);
        // A decimal tie, which rounding would otherwise decide: 0.3 − 0.1 against 0.15 + 0.05.
        assert!(tau(0.3, 0.15, 0.05, 1.0) <= 0.1);
        assert!(tau(0.3 + 1e-12, 0.15, 0.05, 1.0) > 0.1);
        assert_eq!(tau(1.0, 0.1, 0.0, 0.0), f64::INFINITY);
        assert_eq!(tau(0.1, 0.1, 0.0, 0.0), f64::NEG_INFINITY);
    }
}
