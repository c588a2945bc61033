//! Books: whatever watches a run and keeps something of it.

use super::record::{Header, RoundLine, Summary};
use super::session::SessionState;
use super::{Assessment, Decision};
use crate::{Error, Memory, Reports};
use std::ops::ControlFlow;

/// One finished round: the line that is kept of it, and what the line was made from.
#[derive(Debug)]
pub struct RoundRecord<'a> {
    /// The line of `rounds.jsonl`.
    pub line: RoundLine,
    /// What the run is, with everybody who takes part.
    pub header: &'a Header,
    /// Whether the header has changed since the round before, because somebody joined.
    pub header_changed: bool,
    /// The server's weights at the start of the round.
    pub received: &'a [f64],
    /// What was added to them; empty in a round that took no step.
    pub step: &'a [f64],
    /// What the agents said.
    pub reports: &'a Reports<'a>,
    /// What the server decided.
    pub decision: &'a Decision,
    /// How good the server's weights are, in rounds in which the engine measures that.
    pub assessment: Option<&'a Assessment>,
}

/// The moment between two rounds, in which a whole run can be saved.
pub struct BetweenRounds<'a> {
    /// Makes the state of the run, when called.
    pub state: &'a dyn Fn() -> Result<SessionState, Error>,
    /// Whether no further round follows.
    pub over: bool,
}

/// Watches a run and keeps something of it: a ledger, a progress bar, a folder.
///
/// A book reads and never steers, but it can end the run early, and it can fail, for instance when
/// the disk is full.
///
/// ```
/// use fedstay::problem::{Federation, Observation3, Problem};
/// use fedstay::{About, Behaviour, Book, Error, Mean, RoundRecord, Seed, Server, Session};
/// use std::ops::ControlFlow;
///
/// /// Ends a run in the round in which somebody leaves, and remembers which that was.
/// #[derive(Default)]
/// struct FirstDeparture(Option<u32>);
///
/// impl Book for FirstDeparture {
///     fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
///         if record.line.left.is_empty() {
///             return Ok(ControlFlow::Continue(()));
///         }
///         self.0 = Some(record.line.round);
///         Ok(ControlFlow::Break(()))
///     }
/// }
///
/// let instance = Problem::from(Observation3::default()).build(Seed(0))?;
/// let targets = vec![instance.epsilon; instance.oracles.len()];
/// let agents = Federation::new(&instance, &targets, &Behaviour::default())?;
/// let server = Server::new(instance.start, Mean::default(), instance.step_size)?;
/// let mut first = FirstDeparture::default();
/// let mut session = Session::new(server, agents, 500, About::default())?;
/// assert!(session.run(&mut [&mut first])?.is_none(), "the book ended it");
/// assert_eq!(first.0, Some(session.server().round()));
/// # Ok::<(), fedstay::Error>(())
/// ```
pub trait Book {
    /// Called after a round. `Break` ends the run after this round, as an interruption and not as a
    /// result.
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error>;

    /// Adds what it finds to a round's line, before any book keeps the line.
    fn annotate(&mut self, record: &mut RoundRecord<'_>) {
        let _ = record;
    }

    /// Called between two rounds, when the run can be saved.
    fn between(&mut self, moment: &BetweenRounds<'_>) -> Result<(), Error> {
        let _ = moment;
        Ok(())
    }

    /// Its name in a checkpoint, for a book that belongs to the session and must survive a restart.
    fn section(&self) -> Option<&'static str> {
        None
    }

    /// Saves what it knows; asked only of a book with a [`section`](Self::section).
    fn save(&self) -> Result<Memory, Error> {
        Ok(Memory::default())
    }

    /// Takes up what [`save`](Self::save) gave.
    fn restore(&mut self, memory: &Memory) -> Result<(), Error> {
        let _ = memory;
        Ok(())
    }

    /// Enters its section of the summary, once the run is over.
    fn enter(&self, summary: &mut Summary) {
        let _ = summary;
    }
}

/// A book that watches nothing.
impl Book for () {
    fn round(&mut self, _: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        Ok(ControlFlow::Continue(()))
    }
}

/// Watches if there is a book.
impl<B: Book> Book for Option<B> {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.as_mut().map_or(Ok(ControlFlow::Continue(())), |book| book.round(record))
    }

    fn annotate(&mut self, record: &mut RoundRecord<'_>) {
        if let Some(book) = self {
            book.annotate(record);
        }
    }

    fn between(&mut self, moment: &BetweenRounds<'_>) -> Result<(), Error> {
        self.as_mut().map_or(Ok(()), |book| book.between(moment))
    }
}

/// Keeps the line of every round.
impl Book for Vec<RoundLine> {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.push(record.line.clone());
        Ok(ControlFlow::Continue(()))
    }
}
