//! The loop and its books. It exists once: the simulator, agents in Python, Flower, the figures and
//! the tests all run through it.

use super::record::{DataRows, Header, RoundLine, Summary, few};
use super::{Assessment, BetweenRounds, Book, Call, Engine, Gathered, RoundRecord};
use crate::policy::Place;
use crate::run::ledger::{Ended, Ledger};
use crate::{AgentId, Decision, Error, Memory, Policy, Server, ServerState, Split, StopReason};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// What a run is, in words, for its header and its summary.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct About {
    /// The rule with its variant, its policy and the behaviour, as shown to people.
    pub label: String,
    /// The behaviour's name.
    pub behaviour: String,
    /// What is trained: the problem's or the data set's name.
    pub on: String,
    /// The seed.
    pub seed: u64,
    /// Whether agents decide on, and report, the loss of their own model after their local work.
    pub own: bool,
    /// Whether agents are known to report the exact gradient at what they were sent.
    pub exact_gradients: bool,
    /// What became of the rows of the data set, where there is one.
    pub rows: Option<DataRows>,
    /// Notes on the run, such as how the data were dealt out.
    pub notes: Vec<String>,
    /// What a reader should know before believing the results.
    pub warnings: Vec<String>,
}

/// A run: a server, an engine that reaches the agents, and the books.
///
/// ```
/// use fedstay::problem::{Federation, Observation3, Problem};
/// use fedstay::{About, Behaviour, Mean, Seed, Server, Session};
///
/// let instance = Problem::from(Observation3::default()).build(Seed(0))?;
/// let targets = vec![instance.epsilon; instance.oracles.len()];
/// let agents = Federation::new(&instance, &targets, &Behaviour::default())?;
/// let server = Server::new(instance.start, Mean::default(), instance.step_size)?;
/// let mut session = Session::new(server, agents, 500, About::default())?;
/// let summary = session.run(&mut [])?.expect("no book ends it");
/// assert_eq!((summary.verdict.name(), summary.left.len()), ("harmful", 2));
/// # Ok::<(), fedstay::Error>(())
/// ```
pub struct Session<E> {
    server: Server,
    engine: E,
    rounds: u32,
    about: About,
    header: Header,
    ledger: Ledger,
    books: Vec<Box<dyn Book>>,
}

/// The state of a session between two rounds, for a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    server: ServerState,
    engine: Memory,
    ledger: Ledger,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    books: BTreeMap<String, Memory>,
}

impl<E: Engine> Session<E> {
    /// A run of at most `rounds` rounds, before its first.
    ///
    /// # Errors
    /// If the rule or the policy asks for something that the engine's agents do not do.
    pub fn new(mut server: Server, engine: E, rounds: u32, about: About) -> Result<Self, Error> {
        if server.rule().facts().sets_loads && !engine.abilities().loads {
            return Err(Error::NotApplied {
                rule: server.rule().name().to_owned(),
                what: "tells every agent how much to work",
            });
        }
        let facts = server.rule().facts();
        for (asks, can, what) in [
            (facts.corrects, engine.abilities().corrections, "corrects every local step"),
            (
                facts.reads_rates,
                engine.abilities().rates,
                "asks how well agents' groups are served",
            ),
        ] {
            if asks && !can {
                return Err(Error::NotApplied { rule: server.rule().name().to_owned(), what });
            }
        }
        let shows = server.policies().first(Place::Shows).map(Policy::name);
        let previews = shows.is_some();
        if let Some(policy) = shows.filter(|_| !engine.abilities().personal) {
            return Err(Error::NotApplied {
                rule: policy.to_owned(),
                what: "shows every agent a model of its own",
            });
        }
        server.expect(rounds);
        let agents = engine.agents();
        let unlisted = engine.count().saturating_sub(agents.len());
        let measures = engine.measures();
        let header = Header { previews, unlisted, measures, ..Header::new(&about, rounds, agents) };
        let (ledger, books) = (Ledger::default(), Vec::new());
        Ok(Self { server, engine, rounds, about, header, ledger, books })
    }

    /// This session with one more book, which is saved with it and enters its summary.
    #[must_use]
    pub fn with_book(mut self, book: impl Book + 'static) -> Self {
        self.books.push(Box::new(book));
        self
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// What the run is, in words.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Adds to what a reader should know before believing the run.
    pub fn warn(&mut self, warnings: impl IntoIterator<Item = String>) {
        self.about.warnings.extend(warnings);
    }

    /// The engine, which reaches the agents.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// The engine, to change how it computes.
    pub fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// The first line of `rounds.jsonl`, with everybody who takes part so far.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Runs rounds until the rule stops, nobody is left, or the rounds are over, and sums up. A
    /// session that was resumed continues with its next round, and one whose last round had been
    /// gathered is only summed up. Returns `None` if a book ended the run early.
    ///
    /// # Errors
    /// If the engine or a book fails; all rounds until then are in the books.
    pub fn run(&mut self, watching: &mut [&mut dyn Book]) -> Result<Option<Summary>, Error> {
        let stop = match self.ledger.stop() {
            Some(stop) => stop,
            None => match self.play(watching)? {
                ControlFlow::Continue(stop) => stop,
                ControlFlow::Break(()) => return Ok(None),
            },
        };
        self.summary(stop).map(Some)
    }

    fn play(
        &mut self,
        watching: &mut [&mut dyn Book],
    ) -> Result<ControlFlow<(), StopReason>, Error> {
        let mut received = Vec::new();
        while self.server.round() < self.rounds {
            let (flow, stop) = self.round(&mut received, watching)?;
            match (flow, stop) {
                (ControlFlow::Break(()), _) => return Ok(ControlFlow::Break(())),
                (_, Some(stop)) => return Ok(ControlFlow::Continue(stop)),
                (_, None) => {}
            }
        }
        Ok(ControlFlow::Continue(StopReason::RoundLimit))
    }

    /// One round: gather, step, enter it into the books.
    fn round(
        &mut self,
        received: &mut Vec<f64>,
        watching: &mut [&mut dyn Book],
    ) -> Result<(ControlFlow<()>, Option<StopReason>), Error> {
        let Self { server, engine, header, ledger, books, .. } = self;
        let strangers = engine.abilities().strangers;
        let loads = server.loads();
        let mut gathered = engine.gather(&Call::next(server, loads.as_deref()))?;
        received.clear();
        received.extend_from_slice(server.weights());
        let (decision, line, dropped) = match strangers {
            true => step_with_the_usable(&mut gathered, server)?,
            false => {
                let (decision, line) = step_with(&gathered, server)?;
                (decision, line, Vec::new())
            }
        };
        let roster = gathered.roster.take();
        let header_changed = roster.is_some();
        if let Some(agents) = roster {
            header.agents = agents;
        }
        let step = if gathered.stop.is_some() { &[] } else { server.displacement() };
        let Gathered { reports, assessment, .. } = &gathered;
        let assessment: Option<&Assessment> = assessment.as_ref();
        let mut line = line;
        if let (Some(measured), Some(assessment)) = (&mut line.assessment, assessment) {
            measured.name_agents(header, assessment);
        }
        let mut record = RoundRecord {
            line,
            header,
            header_changed,
            received,
            step,
            reports,
            decision: &decision,
            assessment,
        };
        books.iter_mut().for_each(|book| book.annotate(&mut record));
        watching.iter_mut().for_each(|book| book.annotate(&mut record));
        ledger.add(&record.line);
        let mut flow = ControlFlow::Continue(());
        let own = books.iter_mut().map(|book| book.as_mut() as &mut dyn Book);
        for book in own.chain(watching.iter_mut().map(|book| &mut **book as &mut dyn Book)) {
            if book.round(&record)?.is_break() {
                flow = ControlFlow::Break(());
            }
        }
        drop(record);
        drop(gathered);
        for (agent, why) in &dropped {
            self.engine.dropped(*agent, why);
        }
        let over = decision.stop.is_some();
        for book in watching.iter_mut() {
            book.between(&BetweenRounds { state: &|| self.state(), over })?;
        }
        Ok((flow, decision.stop))
    }

    /// Sums up a run that a book ended early, as a result and not as an interruption.
    ///
    /// # Errors
    /// If the engine cannot say how good the weights are.
    pub fn conclude(&mut self, stop: StopReason) -> Result<Summary, Error> {
        self.summary(stop)
    }

    /// Evaluates what the server delivers and sums the run up.
    fn summary(&mut self, stop: StopReason) -> Result<Summary, Error> {
        let assessment = self.engine.assess(self.server.delivered())?;
        self.header.agents = self.engine.agents();
        let proves = self.engine.abilities().proves;
        let ended = Ended {
            server: &self.server,
            assessment: &assessment,
            measures: self.engine.measures(),
            roll: &self.header.agents,
            agents: self.engine.count(),
            stop,
            proves,
        };
        let mut summary = self.ledger.summary(&ended, &self.about);
        self.books.iter().for_each(|book| book.enter(&mut summary));
        Ok(summary)
    }

    /// The whole state, for a checkpoint.
    ///
    /// # Errors
    /// If the engine, the rule or a book cannot be saved.
    pub fn state(&self) -> Result<SessionState, Error> {
        let mut books = BTreeMap::new();
        for book in &self.books {
            if let Some(section) = book.section() {
                books.insert(section.to_owned(), book.save()?);
            }
        }
        Ok(SessionState {
            server: self.server.state(),
            engine: self.engine.save()?,
            ledger: self.ledger.clone(),
            books,
        })
    }

    /// Continues from a checkpoint.
    ///
    /// # Errors
    /// If the state is that of another run.
    pub fn resume(&mut self, state: SessionState) -> Result<(), Error> {
        let server = self.server.continued(state.server)?;
        let expected = (self.server.weights().len(), self.server.rule().name());
        let got = (server.weights().len(), server.rule().name());
        if expected != got {
            let why = format!("it is for {got:?} (weights, rule), the run for {expected:?}");
            return Err(Error::BadState { why });
        }
        self.engine.restore(&state.engine)?;
        for book in &mut self.books {
            let memory = book.section().and_then(|section| state.books.get(section));
            memory.map_or(Ok(()), |memory| book.restore(memory))?;
        }
        self.server = server;
        self.ledger = state.ledger;
        // Agents that joined before the checkpoint belong in the header of the rest.
        self.header.agents = self.engine.agents();
        Ok(())
    }
}

/// Takes the server's step with what came back from the agents, and makes the line of the round. No
/// step is taken if the engine ended the run.
///
/// # Errors
/// If the server cannot step with these reports; it is then as it was.
pub fn step_with(
    gathered: &Gathered<'_>,
    server: &mut Server,
) -> Result<(Decision, RoundLine), Error> {
    let (number, weights) = (server.round() + 1, few(server.weights()));
    let (decision, step) = match gathered.stop {
        Some(stop) => {
            let standing = Decision::new(Split::default(), server.step_size());
            (Decision { stop: Some(stop), ..standing }, &[][..])
        }
        None => (server.step(&gathered.reports)?, server.displacement()),
    };
    let Gathered { reports, faults, assessment, .. } = gathered;
    let line = RoundLine::new(number, reports, faults, &decision, step, assessment.as_ref());
    let (absent, arrived) = (gathered.absent.clone(), gathered.arrived.clone());
    Ok((decision, RoundLine { weights, absent, arrived, ..line }))
}

/// Whose reports were dropped, and why.
type Dropped = Vec<(AgentId, String)>;

/// Steps; if that fails because of one report, drops the report as its agent's fault and steps again
/// with the others. Also returns whose reports were dropped, and why.
fn step_with_the_usable(
    gathered: &mut Gathered<'_>,
    server: &mut Server,
) -> Result<(Decision, RoundLine, Dropped), Error> {
    let mut dropped = Vec::new();
    loop {
        let error = match step_with(gathered, server) {
            Ok((decision, mut line)) => {
                line.faults.extend(dropped.iter().cloned());
                line.faults.sort_by_key(|(agent, _)| *agent);
                return Ok((decision, line, dropped));
            }
            Err(error) => error,
        };
        let blamed = match &error {
            Error::StepOverflow { .. } => longest(gathered, server.step_size()),
            error => error.agent(),
        };
        match blamed {
            Some(agent) => {
                gathered.reports.remove(agent);
                dropped.push((agent, error.reason()));
            }
            None => return Err(error),
        }
    }
}

/// The agent whose report would move the weights farthest.
fn longest(gathered: &Gathered<'_>, step_size: f64) -> Option<AgentId> {
    let moves = gathered.reports.iter().map(|report| {
        let reach = report.reach.unwrap_or(step_size);
        (report.agent, reach * crate::linalg::norm(report.direction))
    });
    moves.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(agent, _)| agent)
}
