//! What a reader should know before believing a summary, in sentences.

use super::{Ended, Ledger};
use crate::run::record::{called_together, decimals};
use crate::{About, AgentAssessment, AgentId, Measure, Score, StopReason};

/// A run that covers less than this share of the distance from the first mean loss to the mean ε has
/// hardly moved; one whose losses rose by more than this share of the first has diverged.
const HARDLY: f64 = 0.1;

/// Where the mean loss went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Fell,
    HardlyMoved,
    Rose,
}

impl Course {
    /// The course from a first mean loss to the last one, where the agents want `target` on average.
    fn of(start: f64, end: f64, target: f64) -> Self {
        match () {
            () if end > target && end - start > HARDLY * start.abs() => Self::Rose,
            () if start > target && (start - end) / (start - target) < HARDLY => Self::HardlyMoved,
            () => Self::Fell,
        }
    }
}

/// What the summary found out that warnings speak of.
pub(super) struct Grounds<'a> {
    /// The agents that were measured, now or earlier.
    pub measured: &'a [&'a AgentAssessment],
    /// The agents that were content with the weights that the run began with.
    pub at_start: &'a [AgentId],
    /// The mean score of the delivered weights, if they are no better than a constant prediction.
    pub no_better: Option<Score>,
}

/// A warning if a rule that keeps everybody with one model did not end well, and there are more agents than
/// weights: floors then leave that model hardly any way to go.
fn crowded(ended: &Ended<'_>, measured: &[&AgentAssessment]) -> Option<String> {
    let Ended { server, agents, stop, .. } = *ended;
    let weights = server.weights().len();
    let one_model = server.rule().facts().keeps && server.policies().is_empty();
    let all_content = measured.iter().all(|agent| agent.score.loss <= agent.epsilon);
    let stuck = matches!(stop, StopReason::Stalled | StopReason::RoundLimit) && !all_content;
    (one_model && stuck && agents > weights).then(|| {
        format!(
            "{agents} agents and {weights} weights: one model that keeps more agents than it has weights \
             seldom gets near their target losses; try rule.kind = \"level\" with policy.kind = \"preview\""
        )
    })
}

impl Ledger {
    /// All of them, those about the experiment last.
    pub(super) fn warnings(
        &self,
        ended: &Ended<'_>,
        about: &About,
        found: &Grounds<'_>,
    ) -> Vec<String> {
        let Grounds { measured, at_start, ref no_better } = *found;
        let names = |agents: &[AgentId]| {
            called_together(agents.iter().map(|agent| (*agent, ended.name_of(*agent))))
        };
        let mut warnings = Vec::new();
        if ended.agents == 0 && ended.assessment.agents.is_empty() {
            warnings
                .push("nobody took part, so the model is the one the run began with".to_owned());
        }
        let course = self.course(measured);
        let constant = ended.assessment.constant.as_ref().zip(no_better.as_ref());
        warnings.extend(constant.map(|(constant, own)| {
            let common: Vec<&Measure> = ended
                .measures
                .iter()
                .filter(|measure| constant.0.get(&measure.name).is_some())
                .collect();
            // Where the course says what to try, that is all there is to say.
            let try_this = match course {
                Some(_) => "",
                None => "; try more rounds, another step_size or another model",
            };
            format!(
                "the model has {}; one that gives everybody the same answer, by how frequent the \
                 classes are, has {}{try_this}",
                told(own, &common),
                told(&constant.0, &common)
            )
        }));
        warnings.extend(course);
        let unasked: Vec<AgentId> =
            measured.iter().filter(|agent| agent.as_of.is_some()).map(|agent| agent.id).collect();
        if !unasked.is_empty() {
            warnings.push(format!(
                "not asked about the delivered model, so their losses are those they last told: {}",
                names(&unasked)
            ));
        }
        if !at_start.is_empty() {
            warnings.push(format!(
                "content with the start, left before the first step: {}; no rule can keep an agent that \
                 is content from the start, so choose another start or a smaller epsilon",
                names(at_start)
            ));
        }
        warnings.extend(self.unforeseen(ended, about, at_start.len()));
        let capped: Vec<AgentId> = self.those(|entry| entry.capped > 0).collect();
        if !capped.is_empty() {
            warnings.push(format!(
                "shown the same model again in some rounds, because the nearest that would keep it was \
                 farther away than policy.cap allows: {}; raise policy.cap if that happens often",
                names(&capped)
            ));
        }
        warnings.extend(crowded(ended, measured));
        warnings.extend(about.warnings.iter().cloned());
        warnings
    }

    /// A warning if the delivered weights are hardly better than the first ones, because of a step
    /// size that is far too small, a rule that stopped at once, or directions that are not gradients;
    /// or if they are worse, because a rule diverged. Without it, "nobody left" would look like a
    /// success.
    fn course(&self, measured: &[&AgentAssessment]) -> Option<String> {
        let first =
            |agent: &AgentAssessment| self.agent(agent.id).and_then(|entry| entry.first_loss);
        let mean = |of: &dyn Fn(&AgentAssessment) -> f64, over: &[&AgentAssessment]| {
            over.iter().map(|agent| of(agent)).sum::<f64>() / over.len() as f64
        };
        let asked = measured.iter().copied().filter(|agent| agent.as_of.is_none());
        let told = |agent: &&AgentAssessment| self.start.is_some() || first(agent).is_some();
        let over: Vec<&AgentAssessment> = asked.filter(told).collect();
        if over.is_empty() {
            return None;
        }
        let start = match self.start {
            Some(start) => start,
            None => mean(&|agent| first(agent).unwrap_or(f64::NAN), &over),
        };
        let end = mean(&|agent| agent.score.loss, &over);
        let target = mean(&|agent| agent.epsilon, &over);
        let (what, try_this) = match Course::of(start, end, target) {
            Course::Fell => return None,
            Course::HardlyMoved => {
                ("hardly moved", "try more rounds, another step_size or another rule")
            }
            Course::Rose if self.left.iter().any(|left| left.round > 1) => (
                "ROSE, because training diverged or because the model no longer serves those who left",
                "try a smaller step_size, or a rule that keeps agents",
            ),
            Course::Rose => (
                "ROSE, training diverged",
                "try a smaller step_size, another rule, or an epsilon that the agents can reach",
            ),
        };
        let [start, end, target] = [start, end, target].map(decimals);
        Some(format!(
            "the losses {what}: from {start} on average to {end}, where the agents want {target}; \
             {try_this}"
        ))
    }

    /// A warning if agents left that a rule or policy which acts on predictions did not see coming.
    /// Only behaviours that leave at their target loss can be predicted from it.
    fn unforeseen(&self, ended: &Ended<'_>, about: &About, at_start: usize) -> Option<String> {
        let predicts = ended.server.sees_to_keeping() || ended.server.rule().slack().is_some();
        if !predicts || about.behaviour != "threshold" {
            return None;
        }
        let left = self.those(|entry| entry.left.is_some() || entry.returned.is_some()).count();
        let left = left.saturating_sub(at_start);
        let missed = left.saturating_sub(self.foreseen as usize);
        let how_many = match (missed, left) {
            (0, _) => return None,
            (1, 1) => "it was not".to_owned(),
            (missed, left) if missed == left => "none of them was".to_owned(),
            (1, _) => "1 of them was not".to_owned(),
            (missed, _) => format!("{missed} of them were not"),
        };
        let advice = match about.exact_gradients {
            true => {
                "gradients are exact here, so the steps were too long for predictions that rest on them; \
                 lower step_size, or raise rule.delta where the rule has it"
            }
            false => {
                "predictions rest on gradients; where agents train on batches or in several local steps, \
                 set local.exact_gradient = true or leave out local.batch, else lower step_size"
            }
        };
        Some(format!("{left} of {} left and {how_many} predicted: {advice}", ended.agents))
    }
}

/// A mean loss, and what else there is.
fn told(score: &Score, measures: &[&Measure]) -> String {
    let mut text = format!("mean loss {}", decimals(score.loss));
    for measure in measures {
        if let Some(value) = score.of(&measure.name) {
            text.push_str(&format!(" and {} {}", measure.label, measure.shown(value)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_course_of_a_loss_has_a_word_for_each_direction() {
        for (start, end, target, course) in [
            (2.5, 0.5, 0.4, Course::Fell),
            (2.5, 2.4, 0.4, Course::HardlyMoved),
            (2.5, 2.5, 0.4, Course::HardlyMoved),
            (2.5, 2.6, 0.4, Course::HardlyMoved),
            (2.5702, 653.5512, 0.5, Course::Rose),
            (2.5, f64::INFINITY, 0.5, Course::Rose),
            // Under the target from the start, and above it at the end, or still under it.
            (0.4, 18.2, 0.5, Course::Rose),
            (0.2, 0.4, 0.5, Course::Fell),
            (0.0, 0.0, 0.0, Course::Fell),
        ] {
            assert_eq!(Course::of(start, end, target), course, "{start} → {end}, ε {target}");
        }
    }
}
