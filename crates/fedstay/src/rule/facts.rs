//! What others need to know about a rule beside its step.

/// The facts about a rule that configurations, sweeps, drawings and engines ask for.
///
/// The default is what is safe to assume about a rule of which nothing is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// What a custom rule is called, in headers, summaries and labels; `custom` if it does not say.
    /// Listed rules have the names of the list.
    pub name: Option<String>,
    /// The slack δ of a rule that keeps agents by it. Other rules may have a δ too, but use it only
    /// to watch who is about to leave, so the theorem has nothing to say about theirs.
    pub slack: Option<f64>,
    /// Whether the step depends on the agents' target losses ε. If it does not, runs that differ
    /// only in ε are the same run until somebody leaves.
    pub reads_epsilon: bool,
    /// How far above its target loss an agent's predicted loss may be for it to count as about to
    /// leave, for rules whose split is only a forecast.
    pub margin: f64,
    /// Whether a label that puts this rule in the place of another drops the other's δ. A rule that does keeps
    /// none: its forecast means the target itself, as in the papers it comes from.
    pub drops_delta: bool,
    /// Whether the rule sets loads, which not every engine applies.
    pub sets_loads: bool,
    /// Whether the rule corrects every local step ([`Aggregator::correction`](super::Aggregator)), which
    /// not every engine applies.
    pub corrects: bool,
    /// Whether the rule computes with how well agents' groups are served
    /// ([`Report::rates`](crate::Report::rates)), which not every engine tells.
    pub reads_rates: bool,
    /// Whether the rule takes reports for gradients at the weights that were received, and bounds its step
    /// by what they predict. Where agents take several local steps or sample their rows, the gradient has
    /// to be sent as well.
    pub reads_gradients: bool,
    /// Whether the rule has a parameter `smoothness` that it takes from the problem unless a
    /// configuration gives it.
    pub takes_smoothness: bool,
    /// Whether the rule has a parameter `convex` that it takes from the problem likewise.
    pub takes_convexity: bool,
    /// Whether the rule sees to it that nobody reaches its target loss, so that a run has a
    /// guarantee.
    pub keeps: bool,
    /// Whether the rule takes every report as a cut, `F(w + s) ≥ F + ⟨g, s⟩`, and computes with the
    /// bound. Such a rule is given bounds where others are given estimates.
    pub cuts: bool,
    /// For a rule whose step needs no losses but for the forecast: those of agents that a step this many times
    /// as long as the last could carry to their target loss have to be exact. `None`, the default, stands for
    /// the losses of all agents. [`Aggregator::losses`](super::Aggregator::losses) is answered from it.
    pub near: Option<f64>,
    /// Whether agents take all gradients of a round at the weights they received, instead of along their
    /// own paths.
    pub stands: bool,
    /// Whether the step is made of the inner products of all pairs of reports, which are then computed when
    /// the reports come in, together with their lengths. It changes no bit of the step.
    pub asks_pairs: bool,
    /// Whether the rule writes every number of its step, which then need not be zeros first.
    pub fills_step: bool,
    /// What is changed about the rule, in the words of its label: `halve` in `ada-gd+halve`.
    pub label: Vec<&'static str>,
    /// What a label may change about the rule.
    pub changes: &'static [LabelChange],
    /// The policy that the rule is made for, as a configuration's `[policy]` in TOML. An experiment that names none runs
    /// it under this one; of one that names the same kind, this is what it leaves unsaid.
    pub policy: Option<&'static str>,
}

/// A change to a rule that a label can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelChange {
    /// The word in the label: `halve` in `ada-gd+halve`.
    pub name: &'static str,
    /// What it sets in a configuration's `[rule]`, as TOML.
    pub set: &'static str,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            name: None,
            slack: None,
            reads_epsilon: true,
            margin: 0.0,
            drops_delta: false,
            sets_loads: false,
            corrects: false,
            reads_rates: false,
            reads_gradients: false,
            takes_smoothness: false,
            takes_convexity: false,
            keeps: false,
            cuts: false,
            near: None,
            stands: false,
            asks_pairs: false,
            fills_step: false,
            label: Vec::new(),
            changes: &[],
            policy: None,
        }
    }
}

impl Facts {
    /// The facts about a rule that keeps agents by the slack δ.
    pub(super) fn keeping(slack: f64) -> Self {
        Self { slack: Some(slack), reads_gradients: true, ..Self::default() }
    }

    /// The facts about a rule that computes with ε and only watches departures.
    pub(super) fn watching(margin: f64) -> Self {
        Self { margin, ..Self::default() }
    }

    /// The facts about a rule whose step has nothing to do with ε, and that only watches
    /// departures.
    pub(super) fn blind(margin: f64) -> Self {
        Self { reads_epsilon: false, ..Self::watching(margin) }
    }
    /// The same for a rule that needs to know only the losses near the target losses.
    pub(super) fn near(self, times: f64) -> Self {
        Self { near: Some(times), ..self }
    }
}
