//! Every run of a seed, judged on every member's held-back rows.

use super::compute::PlanRun;
use super::error::QuestionError;
use super::find::Judged;
use super::resample::{Redrawn, Redraws};
use crate::measure::Listed;
use crate::model::Said;
use crate::simulator::Simulator;
use fedstay::{AgentId, Measure};
use rayon::prelude::*;

/// Judges every run on every member's held-back rows.
pub(super) fn judge(
    simulator: &Simulator,
    seed: u64,
    measures: &[Measure],
    runs: Vec<PlanRun>,
) -> Result<Vec<Judged>, QuestionError> {
    let listed: Vec<&Listed> =
        measures.iter().filter_map(|measure| Listed::find(&measure.name)).collect();
    let agents = simulator.population().agents();
    let mut said: Vec<Vec<Option<Said>>> = Vec::with_capacity(runs.len());
    let mut delivered: Vec<Vec<Option<f64>>> = Vec::with_capacity(runs.len());
    for run in &runs {
        if run.models.is_empty() {
            said.push(vec![None; agents]);
            delivered.push(vec![None; listed.len()]);
            continue;
        }
        let ends: Vec<(AgentId, &[f64])> = run
            .members
            .iter()
            .enumerate()
            .map(|(agent, member)| (AgentId(agent as u64), &run.models[member.model].0[..]))
            .collect();
        said.push(simulator.said_held_back_each(&ends)?);
        let whole = simulator.said_held_back(&run.models[0].0)?.into_iter().flatten().collect();
        let whole = Said::together(whole);
        let of = |listed: &&Listed| whole.as_ref().and_then(|whole| listed.of(whole));
        delivered.push(listed.iter().map(of).collect());
    }
    // One member after the other: the draws of all would take much memory.
    let each: Vec<Vec<Vec<Option<Redrawn>>>> = (0..agents)
        .into_par_iter()
        .map(|owner| {
            let any = said.iter().find_map(|said| said[owner].as_ref());
            let redraws = any.map(|any| Redraws::of(any, seed, owner));
            let of_run = |said: &Vec<Option<Said>>| {
                let of =
                    |listed: &&Listed| redraws.as_ref()?.measure(listed, said[owner].as_ref()?);
                listed.iter().map(of).collect()
            };
            said.iter().map(of_run).collect()
        })
        .collect();
    let mut by_run: Vec<Vec<Vec<Option<Redrawn>>>> =
        (0..runs.len()).map(|_| Vec::with_capacity(agents)).collect();
    for owner in each {
        owner.into_iter().enumerate().for_each(|(run, redrawn)| by_run[run].push(redrawn));
    }
    let judged = runs.into_iter().zip(by_run).zip(delivered);
    Ok(judged
        .map(|((mut run, redrawn), delivered)| {
            run.models.clear();
            Judged { run, redrawn, delivered }
        })
        .collect())
}
