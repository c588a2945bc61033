//! A stored run as a run's folder, at once and without computing anything: the rounds in which
//! somebody left or everybody was measured, and the verdict. It is what `fedstay view` shows of a
//! sweep; the whole run, with every agent's loss in every round, has to be computed again.

use crate::run::{FolderError, about, config_text, write_folder};
use crate::sweep::{Finished, Planned, Point};
use fedstay::AgentId;
use fedstay::record::{AssessmentLine, Header, HeaderAgent, RoundLine, Summary};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Writes the folder, unless the run diverged: nothing is known about its agents then. Tells whether
/// it was written.
///
/// # Errors
/// When it cannot be written to.
pub fn sketch(run: &Planned, finished: &Finished, path: &Path) -> Result<bool, FolderError> {
    let Some(summary) = finished.summary() else { return Ok(false) };
    let agent = |agent: &fedstay::record::AgentSummary| HeaderAgent {
        id: agent.id,
        epsilon: agent.epsilon,
        name: agent.name.clone(),
    };
    let agents = summary.agents.iter().map(agent).collect();
    let header = Header {
        version: summary.version.clone(),
        sketch: true,
        unlisted: summary.unlisted,
        measures: summary.measures.clone(),
        rows: summary.rows.clone(),
        ..Header::new(&about(&run.experiment, None), run.experiment.rounds, agents)
    };
    let config = config_text(&run.experiment)?;
    write_folder(path, &config, &header, &lines(summary, &finished.series.0), summary)?;
    Ok(true)
}

/// The rounds about which something is known.
fn lines(summary: &Summary, points: &[Point]) -> Vec<RoundLine> {
    let points: BTreeMap<u32, &Point> = points.iter().map(|point| (point.round, point)).collect();
    let mut rounds: BTreeSet<u32> = points.keys().copied().collect();
    rounds.extend(summary.left.iter().map(|left| left.round));
    rounds.extend(summary.returned.iter().map(|back| back.round));
    rounds.insert(summary.rounds);
    let mut present: BTreeSet<AgentId> = summary.agents.iter().map(|agent| agent.id).collect();
    let line = |round: u32| {
        let left: Vec<AgentId> =
            summary.left.iter().filter(|left| left.round == round).map(|left| left.agent).collect();
        let returned = summary.returned.iter().filter(|back| back.round == round);
        let returned: Vec<AgentId> = returned.map(|back| back.agent).collect();
        present.retain(|agent| !left.contains(agent));
        present.extend(&returned);
        let last = round == summary.rounds;
        RoundLine {
            agents: present.iter().copied().collect(),
            loss: vec![None; present.len()],
            left,
            returned,
            stop: last.then_some(summary.stop),
            landed: if last { summary.landed } else { None },
            assessment: points.get(&round).map(|point| measured(point)),
            ..RoundLine::unknown(round)
        }
    };
    rounds.into_iter().map(line).collect()
}

fn measured(point: &Point) -> AssessmentLine {
    AssessmentLine {
        population: point.population.clone().filter(|score| score.loss.is_finite()),
        over: point.over.clone(),
        ..AssessmentLine::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::read_rounds;
    use crate::sweep::{Plan, run_cell};

    #[test]
    fn a_sketch_has_what_the_store_knows() {
        let text = "rounds = 40\nstep_size = 0.3\nepsilon = 0.9\neval_every = 5\n[rule]\nkind = \
                    \"fedavg\"\n[data]\nper_agent = 24\n[model]\nhidden = [8]\n[grid]\nseed = [0]";
        let plan = Plan::parse(text, Path::new("."), &[]).unwrap();
        let run = &plan.runs[0];
        let finished = run_cell(&run.experiment.to_toml().unwrap()).unwrap();
        let summary = finished.summary().unwrap();
        assert!(!summary.left.is_empty());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        assert!(sketch(run, &finished, &path).unwrap());

        let read = read_rounds(&path.join("rounds.jsonl")).unwrap();
        assert!(read.header.sketch && read.unreadable.is_empty());
        let left: Vec<(u32, AgentId)> =
            read.rounds.iter().flat_map(|l| l.left.iter().map(|a| (l.round, *a))).collect();
        let known: Vec<(u32, AgentId)> = summary.left.iter().map(|l| (l.round, l.agent)).collect();
        assert_eq!(left, known);
        let measured: Vec<&RoundLine> =
            read.rounds.iter().filter(|line| line.assessment.is_some()).collect();
        assert_eq!(measured.len(), finished.series.0.len());
        for (line, point) in measured.iter().zip(&finished.series.0) {
            let over = line.assessment.as_ref().unwrap().over.clone();
            assert_eq!((line.round, line.agents.len() as u32), (point.round, point.present));
            assert_eq!(over, point.over);
        }
        let text = std::fs::read_to_string(path.join("summary.json")).unwrap();
        assert_eq!(&serde_json::from_str::<Summary>(&text).unwrap(), summary);
    }
}
