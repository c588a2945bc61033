//! One run of a plan: a way on a seed, and the models that it leaves members with.

use crate::data::{Dataset, Inputs, RowTargets};
use crate::experiment::{Experiment, SpecError};
use crate::run::{DepartureWeights, Trial};
use crate::simulator::Simulator;
use crate::simulator::population::Population;
use crate::sweep;
use fedstay::{AgentId, packed};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a run of a plan left behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PlanRun {
    /// The delivered model, then those that somebody left with.
    pub(super) models: Vec<KeptModel>,
    /// What became of each member.
    pub(super) members: Vec<PlanMember>,
    /// How many bytes go to a member and back for a report.
    pub(super) bytes_per_report: u64,
    /// Why it ended without a model, if its numbers went beyond all bounds.
    pub(super) diverged: Option<String>,
}

/// A model's weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct KeptModel(#[serde(with = "packed")] pub(super) Vec<f64>);

/// What became of a member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PlanMember {
    /// The model that it ends with, by its place.
    pub(super) model: usize,
    /// The round in which it left.
    pub(super) left: Option<u32>,
    /// Whether what it ends with meets its target.
    pub(super) content: bool,
    /// In how many rounds it reported.
    pub(super) reports: u32,
}

/// What a member is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Against {
    Alone,
    Pooled,
    Constant,
}

impl Against {
    pub(super) const ALL: [Self; 3] = [Self::Alone, Self::Pooled, Self::Constant];

    /// Its name, which no rule has.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Pooled => "pooled",
            Self::Constant => "constant",
        }
    }

    /// The models.
    pub(super) fn run(self, simulator: &Simulator) -> Result<PlanRun, SpecError> {
        let baselines = simulator.baselines();
        let models = match self {
            Self::Alone => baselines.alone()?,
            Self::Pooled => vec![baselines.pooled()?],
            Self::Constant => vec![baselines.constant()],
        };
        let last = models.len() - 1;
        let member = |agent: usize| PlanMember {
            model: agent.min(last),
            left: None,
            content: false,
            reports: 0,
        };
        Ok(PlanRun {
            members: (0..simulator.population().agents()).map(member).collect(),
            models: models.into_iter().map(|model| KeptModel(model.weights)).collect(),
            bytes_per_report: 0,
            diverged: None,
        })
    }
}

/// Runs a way; some members may be kept out from the start.
pub(super) fn run_way(
    experiment: &Experiment,
    population: Population,
    without: &[usize],
) -> Result<PlanRun, SpecError> {
    let agents = population.agents();
    let mut trial = Trial::on(experiment.clone(), Some(population))?;
    if let Some(simulator) = trial.simulator_mut() {
        without.iter().for_each(|agent| simulator.set_without(AgentId(*agent as u64)));
    }
    let mut parting = DepartureWeights::default();
    let summary = match trial.run(&mut [&mut parting]) {
        Ok(summary) => summary.ok_or(SpecError::NoTraining)?,
        Err(error) if error.is_divergence() => {
            let nobody = PlanMember { model: 0, left: None, content: false, reports: 0 };
            return Ok(PlanRun {
                models: Vec::new(),
                members: vec![nobody; agents],
                bytes_per_report: 0,
                diverged: Some(error.to_string()),
            });
        }
        Err(error) => return Err(error.into()),
    };
    let server = trial.server();
    let mut models = vec![KeptModel(server.delivered().to_vec())];
    let mut of_round: Vec<(u32, usize)> = Vec::new();
    let mut members = Vec::with_capacity(summary.agents.len());
    for agent in &summary.agents {
        let left = agent.entry.left;
        let model = match left.and_then(|round| Some((round, parting.weights(round)?))) {
            None => 0,
            Some((round, weights)) => match of_round.iter().find(|(known, _)| *known == round) {
                Some((_, place)) => *place,
                None => {
                    of_round.push((round, models.len()));
                    models.push(KeptModel(weights.to_vec()));
                    models.len() - 1
                }
            },
        };
        let content = left.is_some() || agent.is_content();
        members.push(PlanMember { model, left, content, reports: agent.entry.reports });
    }
    let vectors = 2 + u64::from(server.rule().facts().corrects);
    let bytes_per_report = 4 * vectors * server.weights().len() as u64;
    Ok(PlanRun { models, members, bytes_per_report, diverged: None })
}

/// The name of a run: its whole configuration, what it is, who is kept out, and the rows themselves, which may
/// have changed under the same path.
pub(super) fn run_key(
    experiment: &Experiment,
    what: &str,
    without: &[usize],
    rows: &str,
) -> Result<String, SpecError> {
    let text = format!("{} {what} {without:?} {rows}", sweep::key(experiment)?);
    Ok(hex(&Sha256::digest(text.as_bytes())))
}

/// The name of some rows.
pub(super) fn name_of_rows(data: &Dataset) -> String {
    let mut digest = Sha256::new();
    match &data.inputs {
        Inputs::Bytes { rows, .. } => digest.update(&rows[..]),
        Inputs::Floats { rows, .. } => rows.iter().for_each(|x| digest.update(x.to_le_bytes())),
    }
    match data.targets.rows(0..data.len()) {
        RowTargets::Classes(of) => of.iter().for_each(|class| digest.update(class.to_le_bytes())),
        RowTargets::Numbers(of) => of.iter().for_each(|x| digest.update(x.to_le_bytes())),
    }
    hex(&digest.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
