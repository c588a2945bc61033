//! Worth: what every agent gives and gets. It reads and never steers.
//!
//! | method | asks | needs |
//! |---|---|---|
//! | `help` | whose loss fell because of whose direction | exact losses, gradients |
//! | `loo`, `shapley`, `gtg`, `core` | what the validation loss would be without an agent | rows nobody trained on |
//! | `cgsv`, `fedce`, `reputation` | how an agent's direction lies relative to the others' | nothing more |
//!
//! One file per family; `docs/members.md` says what each makes of a duplicate and of a free rider.

mod alike;
mod game;
mod help;
mod least_core;

pub use crate::run::record::worth::{AgentWorth, Core, Method, WorthLine, WorthSummary};
pub use game::MOST_FOR_SHAPLEY;

use crate::memory::inside::pairs;
use crate::message::coefficients;
use crate::run::record::Summary;
use crate::{AgentId, Book, Error, Memory, RoundRecord, Vector, linalg};
use alike::Alike;
use game::Game;
use help::Help;
use least_core::Groups;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The most agents whose help to each other is written into every round's line.
const MOST_IN_A_LINE: usize = 16;

/// Says how good weights are on rows that nobody trains on.
pub trait Judge {
    /// The validation loss.
    fn loss(&mut self, weights: &[f64]) -> Result<f64, Error>;
}

/// The book.
pub struct Worth {
    methods: Vec<Method>,
    judge: Option<Box<dyn Judge>>,
    kept: WorthMemory,
    failed: Option<Error>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct WorthMemory {
    help: Help,
    alike: Alike,
    #[serde(with = "pairs")]
    games: BTreeMap<AgentId, Shares>,
    /// In how many rounds too many agents reported for every group to be judged.
    crowded: u32,
    #[serde(default)]
    groups: Groups,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Shares {
    loo: f64,
    shapley: f64,
    gtg: f64,
}

impl Worth {
    /// A book by these methods.
    ///
    /// # Errors
    /// If one of them needs a judge and there is none.
    pub fn new(methods: &[Method], judge: Option<Box<dyn Judge>>) -> Result<Self, Error> {
        let mut methods = methods.to_vec();
        methods.sort_unstable();
        methods.dedup();
        if judge.is_none() && methods.iter().any(|method| method.needs_judge()) {
            let must = "without loo, shapley, gtg and core where no rows are kept from training";
            return Err(Error::bad_parameter("worth.methods", format!("{methods:?}"), must));
        }
        Ok(Self { methods, judge, kept: WorthMemory::default(), failed: None })
    }

    fn asks(&self, method: Method) -> bool {
        self.methods.contains(&method)
    }

    fn look(&mut self, record: &RoundRecord<'_>) -> Result<WorthLine, Error> {
        let reports = record.reports.as_slice();
        let directions: Vec<Vector<'_>> = reports.iter().map(|report| report.direction).collect();
        let gram = linalg::gram(&directions);
        // The way back to the best weights is nobody's doing in this round.
        let c = match record.decision.reverted {
            true => vec![0.0; reports.len()],
            false => coefficients::of(reports, &gram, record.step, record.line.step_size),
        };
        let agents: Vec<AgentId> = reports.iter().map(|report| report.agent).collect();
        let mut line = WorthLine { agents, ..WorthLine::default() };
        if self.asks(Method::Help) {
            let booked = self.kept.help.look(record, &c);
            let others = || booked.iter().filter(|(helped, by, _)| helped != by);
            for own in &line.agents {
                let given = others().filter(|(_, by, _)| by == own).map(|(_, _, help)| help);
                line.given.push(given.sum());
                let got = others().filter(|(helped, _, _)| helped == own).map(|(_, _, help)| help);
                line.got.push(got.sum());
            }
            (line.by, line.help) = matrix(&line.agents, &booked);
        }
        let seen = self.kept.alike.look(record, &gram, &c);
        line.cgsv = if self.asks(Method::Cgsv) { seen.cgsv } else { Vec::new() };
        line.fedce = if self.asks(Method::Fedce) { seen.fedce } else { Vec::new() };
        if !reports.is_empty() && record.step.iter().any(|value| *value != 0.0) {
            self.play(record, &directions, &c, &mut line)?;
        }
        Ok(line)
    }

    /// The methods that ask what groups are worth.
    fn play(
        &mut self,
        record: &RoundRecord<'_>,
        directions: &[Vector<'_>],
        c: &[f64],
        line: &mut WorthLine,
    ) -> Result<(), Error> {
        let [loo, shapley, gtg, core] = [Method::Loo, Method::Shapley, Method::Gtg, Method::Core]
            .map(|method| self.asks(method));
        let asked = loo || shapley || gtg || core;
        let Some(judge) = self.judge.as_mut().filter(|_| asked) else {
            return Ok(());
        };
        let before = judge.loss(record.received)?;
        let all: f64 = c.iter().sum();
        let mut worth = |group: &[usize]| {
            let own: f64 = group.iter().map(|member| c[*member]).sum();
            // Coefficients of both signs may cancel: a group steps by at most as much more as a single
            // agent would under the mean.
            let most = c.len() as f64;
            let times = if own * all > 0.0 { (all / own).min(most) } else { 1.0 };
            let mut weights = record.received.to_vec();
            for member in group {
                linalg::add_scaled(&mut weights, -times * c[*member], directions[*member]);
            }
            Ok(before - judge.loss(&weights)?)
        };
        let mut game = Game::<Error>::new(c.len(), &mut worth);
        if loo {
            line.loo = game.leave_one_out()?;
        }
        if gtg {
            line.gtg = game.guided(record.line.round)?;
        }
        if shapley {
            match game.shapley()? {
                Some(values) => line.shapley = values,
                None => self.kept.crowded += 1,
            }
        }
        if core {
            let worths = game.groups()?;
            let few = worths.is_some_and(|worths| self.kept.groups.add(&line.agents, &worths));
            self.kept.crowded += u32::from(!few && !shapley);
        }
        for (index, agent) in line.agents.iter().enumerate() {
            let shares = self.kept.games.entry(*agent).or_default();
            let at = |values: &[f64]| values.get(index).copied().unwrap_or(0.0);
            shares.loo += at(&line.loo);
            shares.shapley += at(&line.shapley);
            shares.gtg += at(&line.gtg);
        }
        Ok(())
    }

    /// The least core, if it was asked for and everybody could be judged in every round.
    fn core(&self) -> Option<(Core, Vec<(AgentId, f64)>)> {
        let whole = self.asks(Method::Core) && self.kept.crowded == 0;
        whole.then(|| self.kept.groups.least()).flatten()
    }

    fn of(&self, agent: AgentId) -> AgentWorth {
        let asked = |method, value: f64| self.asks(method).then_some(value);
        let (given, got) = self.kept.help.balance(agent);
        let row = self.kept.help.rows().get(&agent);
        let own = row.and_then(|row| row.by.get(&agent)).copied().unwrap_or(0.0);
        let unexplained = row.map_or(0.0, help::Row::unexplained);
        let seen = self.kept.alike.of(agent);
        let shares = self.kept.games.get(&agent).copied().unwrap_or_default();
        AgentWorth {
            given: asked(Method::Help, given),
            got: asked(Method::Help, got),
            own: asked(Method::Help, own),
            unexplained: asked(Method::Help, unexplained),
            loo: asked(Method::Loo, shares.loo),
            shapley: asked(Method::Shapley, shares.shapley),
            gtg: asked(Method::Gtg, shares.gtg),
            cgsv: seen.cgsv().and_then(|value| asked(Method::Cgsv, value)),
            fedce: seen.fedce().and_then(|value| asked(Method::Fedce, value)),
            reputation: asked(Method::Reputation, seen.reputation()),
            core: None,
        }
    }
}

/// What a round booked as a matrix over who was helped and by whom, if that is small enough for a
/// line.
fn matrix(agents: &[AgentId], booked: &[help::Booked]) -> (Vec<AgentId>, Vec<Vec<f64>>) {
    let mut by: Vec<AgentId> = booked.iter().map(|(_, by, _)| *by).collect();
    by.sort_unstable();
    by.dedup();
    if by.is_empty() || by.len().max(agents.len()) > MOST_IN_A_LINE {
        return (Vec::new(), Vec::new());
    }
    let mut help = vec![vec![0.0; by.len()]; agents.len()];
    for (helped, giver, much) in booked {
        let places = (agents.binary_search(helped), by.binary_search(giver));
        if let (Ok(row), Ok(column)) = places {
            help[row][column] = *much;
        }
    }
    (by, help)
}

impl Book for Worth {
    fn annotate(&mut self, record: &mut RoundRecord<'_>) {
        match self.look(record) {
            Ok(line) => record.line.worth = Some(line),
            Err(error) => self.failed = Some(error),
        }
    }

    fn round(&mut self, _: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.failed.take().map_or(Ok(ControlFlow::Continue(())), Err)
    }

    fn section(&self) -> Option<&'static str> {
        Some("worth")
    }

    fn save(&self) -> Result<Memory, Error> {
        Memory::of(&self.kept)
    }

    fn restore(&mut self, memory: &Memory) -> Result<(), Error> {
        self.kept = memory.read()?;
        Ok(())
    }

    fn enter(&self, summary: &mut Summary) {
        let (core, parts) = self.core().unzip();
        let parts = parts.unwrap_or_default();
        for agent in &mut summary.agents {
            let part = parts.iter().find(|(id, _)| *id == agent.id).map(|(_, part)| *part);
            agent.worth = Some(AgentWorth { core: part, ..self.of(agent.id) });
        }
        let agents: Vec<AgentId> = summary.agents.iter().map(|agent| agent.id).collect();
        let methods = self.methods.clone();
        let mut whole = WorthSummary { methods, agents, core, ..WorthSummary::default() };
        if self.asks(Method::Help) {
            let rows = self.kept.help.rows();
            let cell = |helped: &AgentId, by: &AgentId| {
                rows.get(helped).and_then(|row| row.by.get(by)).copied().unwrap_or(0.0)
            };
            let row = |helped: &AgentId| whole.agents.iter().map(|by| cell(helped, by)).collect();
            whole.help = whole.agents.iter().map(row).collect();
            whole.steps = whole
                .agents
                .iter()
                .map(|agent| rows.get(agent).map_or(0, |row| row.steps))
                .collect();
        }
        summary.worth = Some(whole);
        if self.kept.crowded > 0 {
            summary.warnings.push(format!(
                "worth: in {} rounds more than {MOST_FOR_SHAPLEY} agents reported, so not every group \
                 was judged there; use gtg",
                self.kept.crowded
            ));
        }
    }
}

#[cfg(test)]
mod laws;
