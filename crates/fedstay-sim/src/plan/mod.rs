//! Plans: would a consortium hold, who would leave, when, at what price, who gains at all, what keeps them?
//!
//! | file | what |
//! |---|---|
//! | `question.rs`, `settle.rs` | what is asked: an experiment, ways to run it, seeds; what it leaves open |
//! | `planner.rs`, `compute.rs`, `kept.rs` | the runs: one for every way and seed, kept in the plan's folder |
//! | `judge.rs`, `resample.rs` | every model on held-back rows: how good it is, how sure that is, how two models differ |
//! | `find.rs`, `answer.rs` | from the runs to findings, and the findings as data |
//! | `recommend.rs` | from the findings to a recommendation: a pure function |
//!
//! Words and pictures are made elsewhere, from a [`PlanAnswer`] alone.

mod answer;
mod compute;
mod error;
mod find;
mod judge;
mod kept;
mod planner;
mod question;
mod recommend;
mod resample;
mod settle;

pub use answer::{
    AVERAGING, CEILING, Findings, Gains, Leaver, Measured, Method, OwnerFinding, PlanAnswer,
    WayFinding, WhenLeaves, WithoutFinding,
};
pub use error::QuestionError;
pub use question::{Question, USUAL_SEEDS};
pub use recommend::{Action, Advice, DO_NOT, PREFERRED, recommend};

use compute::Against;
use find::Evidence;
use kept::KeptRuns;
use planner::{PlanCell, Planner, SeedAbout};
use resample::Sureness;
use std::path::Path;
use std::sync::atomic::AtomicUsize;

/// Watches a plan. Called from several threads.
pub trait PlanWatch: Sync {
    /// So many of all runs are done.
    fn advanced(&self, done: usize, of: usize) {
        let _ = (done, of);
    }
}

impl PlanWatch for () {}

/// Answers a question. Runs that a folder keeps are not computed again.
///
/// # Errors
/// When the data cannot be read, a run fails otherwise than by diverging, or the folder cannot be written.
pub fn answer(
    question: &Question,
    folder: Option<&Path>,
    watch: &dyn PlanWatch,
) -> Result<PlanAnswer, QuestionError> {
    let kept = KeptRuns::within(folder).map_err(|source| QuestionError::Io {
        path: folder.unwrap_or(Path::new(".")).to_owned(),
        source,
    })?;
    let of = (question.labels.len() + Against::ALL.len()) * question.seeds.len();
    let planner = Planner { question, kept, watch, done: AtomicUsize::new(0), of };
    let mut cells: Vec<PlanCell> = Against::ALL.map(PlanCell::Against).to_vec();
    cells.extend(question.labels.iter().cloned().map(PlanCell::Way));
    let mut seeds = Vec::with_capacity(question.seeds.len());
    let mut first: Option<SeedAbout> = None;
    let mut rows_named = Vec::with_capacity(question.seeds.len());
    for seed in &question.seeds {
        let (about, judged) = planner.seed(*seed, &cells)?;
        rows_named.push(about.rows_named.clone());
        first.get_or_insert(about);
        seeds.push(judged);
    }
    let Some(about) = first else { return Err(QuestionError::NothingHeldBack) };
    let rows: usize = about.rows.iter().map(|owner| owner.rows).sum();
    let held: usize = about.rows.iter().map(|owner| owner.held).sum();
    // Where every seed holds back the same rows, further seeds say nothing new about rows.
    let in_common = match rows_named.iter().all(|named| *named == rows_named[0]) {
        true => 1.0,
        false => held as f64 / rows.max(1) as f64,
    };
    let mut evidence = Evidence {
        measures: &about.measures,
        names: &about.names,
        seeds,
        rows: &about.rows,
        sureness: Sureness { seeds: question.seeds.len(), in_common },
    };
    let alone = |evidence: &Evidence<'_>| {
        let owners = evidence.owners(0.0);
        let headline = about.measures[0].name.clone();
        let known =
            owners.into_iter().filter_map(move |owner| Some(owner.alone.get(&*headline)?.value));
        known.collect::<Vec<f64>>()
    };
    let least = Findings::least(&about.measures[0], alone(&evidence).into_iter());
    let mut owners = evidence.owners(least);
    let nothing: Vec<usize> =
        (0..owners.len()).filter(|owner| owners[*owner].gains == Gains::No).collect();
    let some_gain = owners.iter().any(|owner| owner.gains == Gains::Yes);
    let mut without = None;
    if some_gain && !nothing.is_empty() && owners.len() - nothing.len() > 1 {
        for (place, seed) in question.seeds.iter().enumerate() {
            let (_, judged) = planner.seed(*seed, &[PlanCell::Without(nothing.clone())])?;
            evidence.seeds[place].extend(judged);
        }
        without = evidence.without(&owners);
        owners = evidence.owners(least);
    }
    let found = Findings {
        schema: Findings::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        on: about.on,
        owner: about.owner,
        ways: evidence.ways(&question.labels, &owners),
        mean_gain: evidence.mean_gain(),
        without,
        method: Method { seeds: question.seeds.clone(), ..about.method },
        rows: about.data_rows,
        measure: about.measures[0].clone(),
        least,
        owners,
        notes: about.notes,
    };
    Ok(PlanAnswer { recommend: recommend(&found), found })
}
