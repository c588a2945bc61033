//! The workers: as many as there are threads, each with a branch of its own. As long as there are
//! enough branches every worker computes alone; when fewer are left, those that remain get the idle
//! threads for their agents. There are never more busy threads than asked for.

use crate::experiment::Experiment;
use crate::lock;
use crate::simulator::population::Population;
use crate::sweep::compute::branch::{self, Branch, Steps};
use crate::sweep::compute::claim::{BEAT, Claimer};
use crate::sweep::compute::shared::{AloneScores, Pools, Populations};
use crate::sweep::compute::single::alone;
use crate::sweep::plan::family::{Family, steps};
use crate::sweep::{Finished, Options, Planned, Store, SweepError, SweepWatch, Tally, WorkDone};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is there to compute.
#[derive(Default)]
struct Queue {
    /// Parts of families that have begun; the last one first, so that few are open at a time.
    branches: Vec<QueuedJob>,
    /// Families that nobody here has begun.
    families: VecDeque<Family>,
    /// Families that another process has.
    elsewhere: VecDeque<Family>,
}

/// Something for one worker.
struct QueuedJob {
    open: Arc<Open>,
    job: FamilyJob,
}

enum FamilyJob {
    /// A shared trajectory from where it stands; `None` from the start.
    Shared(Option<Box<Branch>>),
    /// One run by itself.
    Alone(Arc<Planned>),
}

/// A family that is being computed: released when its last task is over.
struct Open {
    family: Family,
    population: Option<Population>,
    tasks: AtomicUsize,
    spent: Mutex<(Duration, Steps)>,
}

struct Books {
    store: Store,
    tally: Tally,
    /// Local steps of all missing runs, if each is computed alone and nobody leaves.
    total: u64,
    done: u64,
}

/// Where the work is done.
pub(in crate::sweep) struct SweepWorkers<'a> {
    options: Options,
    owner: Claimer,
    watch: &'a dyn SweepWatch,
    path: PathBuf,
    books: Mutex<Books>,
    queue: Mutex<Queue>,
    change: Condvar,
    /// Workers that compute now.
    busy: AtomicUsize,
    failed: AtomicBool,
    populations: Populations,
    alone_scores: AloneScores,
}

/// Says that a worker is no longer busy, however its task ended: the others wait for that.
struct LeavingWorker<'a> {
    busy: &'a AtomicUsize,
    failed: &'a AtomicBool,
    change: &'a Condvar,
}

impl Drop for LeavingWorker<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.failed.store(true, Ordering::SeqCst);
        }
        self.busy.fetch_sub(1, Ordering::SeqCst);
        self.change.notify_all();
    }
}

impl<'a> SweepWorkers<'a> {
    /// Will compute these families; `there` of `planned` runs are already stored.
    pub(in crate::sweep) fn new(
        store: Store,
        families: Vec<Family>,
        (planned, there): (usize, usize),
        options: &Options,
        watch: &'a dyn SweepWatch,
    ) -> Self {
        let total: u64 = families.iter().map(Family::steps).sum();
        let share = if total == 0 { 1.0 } else { 0.0 };
        let tally = Tally { planned, there, share, ..Tally::default() };
        Self {
            options: *options,
            owner: Claimer::me(),
            watch,
            path: store.path().to_owned(),
            books: Mutex::new(Books { store, tally, total, done: 0 }),
            queue: Mutex::new(Queue { families: families.into(), ..Queue::default() }),
            change: Condvar::new(),
            busy: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            populations: Populations::default(),
            alone_scores: AloneScores::default(),
        }
    }

    /// Computes all of it.
    pub(in crate::sweep) fn run(self) -> Result<Tally, SweepError> {
        let over = AtomicBool::new(false);
        let threads = self.options.threads.max(1);
        let results: Vec<Result<(), SweepError>> = std::thread::scope(|scope| {
            let heart = scope.spawn(|| self.beat(&over));
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.work())).collect();
            let joined = workers.into_iter().map(|worker| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            let results = joined.collect();
            over.store(true, Ordering::SeqCst);
            heart.thread().unpark();
            results
        });
        let books = lock(&self.books);
        // Whatever happened: this process may live on and ask again.
        let released = books.store.release_all(&self.owner);
        let failed = results.into_iter().filter_map(Result::err);
        // The reason, rather than that others stopped because of it.
        match failed.min_by_key(|error| matches!(error, SweepError::Stopped)) {
            Some(error) => Err(error),
            None => {
                released?;
                Ok(books.tally)
            }
        }
    }

    /// Keeps the claims alive. A store that cannot be written to will show elsewhere.
    fn beat(&self, over: &AtomicBool) {
        let Ok(store) = Store::open(&self.path) else { return };
        while !over.load(Ordering::SeqCst) {
            let _ = store.beat(&self.owner);
            std::thread::park_timeout(Duration::from_secs(BEAT));
        }
    }

    fn work(&self) -> Result<(), SweepError> {
        let mut pools = Pools::default();
        let mut work = || -> Result<(), SweepError> {
            while let Some(task) = self.next()? {
                let _done =
                    LeavingWorker { busy: &self.busy, failed: &self.failed, change: &self.change };
                self.compute(task, &mut pools)?;
            }
            Ok(())
        };
        let result = work();
        if result.is_err() {
            self.failed.store(true, Ordering::SeqCst);
            self.change.notify_all();
        }
        result
    }

    /// The next task; `None` when all is done, here and elsewhere, or somebody failed.
    fn next(&self) -> Result<Option<QueuedJob>, SweepError> {
        let mut queue = lock(&self.queue);
        loop {
            if self.failed.load(Ordering::SeqCst) {
                return Ok(None);
            }
            if self.watch.stopped() {
                return Err(SweepError::Stopped);
            }
            if let Some(task) = queue.branches.pop() {
                self.busy.fetch_add(1, Ordering::SeqCst);
                return Ok(Some(task));
            }
            if let Some(family) = queue.families.pop_front() {
                match self.open(family)? {
                    Opened::Tasks(tasks) => queue.branches.extend(tasks),
                    Opened::Elsewhere(family) => queue.elsewhere.push_back(family),
                    Opened::Done => {}
                }
                self.change.notify_all();
                continue;
            }
            if self.busy.load(Ordering::SeqCst) == 0 {
                if queue.elsewhere.is_empty() {
                    return Ok(None);
                }
                // Another process has the rest: look again in a while, it may die.
                let rest = std::mem::take(&mut queue.elsewhere);
                queue.families = rest;
                drop(queue);
                std::thread::sleep(Duration::from_millis(500));
                queue = lock(&self.queue);
                continue;
            }
            let wait = self.change.wait_timeout(queue, Duration::from_millis(500));
            queue = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Claims a family and sees what of it is still missing.
    fn open(&self, mut family: Family) -> Result<Opened, SweepError> {
        let claimed = {
            let mut books = lock(&self.books);
            let claimed = books.store.claim(&family.name, &self.owner)?;
            let there = books.store.keys()?;
            let before = family.runs.len();
            let there = |run: &Arc<Planned>| there.contains(&run.key);
            let done: u64 =
                family.runs.iter().filter(|run| there(run)).map(|run| steps(&run.experiment)).sum();
            family.runs.retain(|run| !there(run));
            books.tally.elsewhere += before - family.runs.len();
            books.done += done;
            if claimed && family.runs.is_empty() {
                books.store.release(&family.name, &self.owner)?;
            }
            claimed
        };
        if family.runs.is_empty() {
            return Ok(Opened::Done);
        }
        if !claimed {
            return Ok(Opened::Elsewhere(family));
        }
        let population = self.populations.of(&family.runs[0].experiment)?;
        let shared = family.runs.len() > 1;
        let jobs: Vec<FamilyJob> = match shared {
            true => vec![FamilyJob::Shared(None)],
            false => vec![FamilyJob::Alone(Arc::clone(&family.runs[0]))],
        };
        let open = Arc::new(Open {
            family,
            population,
            tasks: AtomicUsize::new(jobs.len()),
            spent: Mutex::default(),
        });
        let task = |job| QueuedJob { open: Arc::clone(&open), job };
        Ok(Opened::Tasks(jobs.into_iter().map(task).collect()))
    }

    /// How many threads a busy worker may use now.
    fn share(&self) -> usize {
        (self.options.threads / self.busy.load(Ordering::SeqCst).max(1)).max(1)
    }

    fn compute(&self, task: QueuedJob, pools: &mut Pools) -> Result<(), SweepError> {
        let before = Instant::now();
        let steps = match task.job {
            FamilyJob::Alone(run) => self.alone(&task.open, &run, pools)?,
            FamilyJob::Shared(branch) => {
                self.grow(&task.open, branch.map(|branch| *branch), pools)?
            }
        };
        let mut spent = lock(&task.open.spent);
        spent.0 += before.elapsed();
        spent.1.add(steps);
        if task.open.tasks.fetch_sub(1, Ordering::SeqCst) == 1 {
            let Open { family, .. } = &*task.open;
            let work = WorkDone {
                runs: family.runs.len() as u64,
                seconds: spent.0.as_secs_f64(),
                taken: spent.1.taken,
                alone: spent.1.alone,
                nobody_leaves: spent.1.nobody_leaves,
            };
            let mut books = lock(&self.books);
            books.store.note_work(&work)?;
            books.store.release(&family.name, &self.owner)?;
            let all = &mut books.tally.work;
            all.runs += work.runs;
            all.seconds += work.seconds;
            all.taken += work.taken;
            all.alone += work.alone;
            all.nobody_leaves += work.nobody_leaves;
        }
        Ok(())
    }

    /// One run by itself.
    fn alone(
        &self,
        open: &Open,
        run: &Arc<Planned>,
        pools: &mut Pools,
    ) -> Result<Steps, SweepError> {
        let pool = pools.of(self.share())?;
        let full = self.options.full_losses;
        let population = open.population.clone();
        let (experiment, scores) = (&run.experiment, &self.alone_scores);
        let finished = pool.install(|| alone(experiment, population, scores, full, self.watch))?;
        let count = steps_of(&run.experiment, &finished);
        self.keep(&finished, steps(&run.experiment))?;
        Ok(count)
    }

    /// A shared trajectory until it branches no more; other branches go to the queue.
    fn grow(
        &self,
        open: &Arc<Open>,
        branch: Option<Branch>,
        pools: &mut Pools,
    ) -> Result<Steps, SweepError> {
        let run = &open.family.runs[0];
        let population = open.population.clone().expect("runs that share train on data");
        let mut simulator = branch::simulator(run, population)?;
        simulator.set_full_losses(self.options.full_losses);
        let mut branch = match branch {
            Some(branch) => branch,
            None => Branch::start(&open.family.runs, &simulator)?,
        };
        branch.take_over(&mut simulator);
        let mut spent = Steps::default();
        loop {
            if self.failed.load(Ordering::SeqCst) || self.watch.stopped() {
                return Err(SweepError::Stopped);
            }
            let runs = branch.runs();
            let round = branch.round();
            let each = crate::sweep::plan::family::round_steps(&run.experiment);
            let pool = pools.of(self.share())?;
            let Ok(mut grown) = pool.install(|| branch.grow(&mut simulator)) else {
                // Somewhere training left the floating-point range: each run alone says where.
                lock(&self.books).done -= u64::from(round) * each * runs.len() as u64;
                self.branch_off(open, runs.into_iter().map(FamilyJob::Alone).collect());
                return Ok(spent);
            };
            spent.add(grown.steps);
            let rest = u64::from(run.experiment.rounds - round);
            for finished in &grown.finished {
                self.keep(finished, rest * each)?;
            }
            let going = runs.len() - grown.finished.len();
            self.advance(each * going as u64);
            let Some(next) = grown.branches.pop() else { return Ok(spent) };
            let others: Vec<FamilyJob> = grown
                .branches
                .into_iter()
                .map(|branch| FamilyJob::Shared(Some(Box::new(branch))))
                .collect();
            if !others.is_empty() {
                self.branch_off(open, others);
            }
            next.take_over(&mut simulator);
            branch = next;
        }
    }

    fn branch_off(&self, open: &Arc<Open>, jobs: Vec<FamilyJob>) {
        open.tasks.fetch_add(jobs.len(), Ordering::SeqCst);
        let task = |job| QueuedJob { open: Arc::clone(open), job };
        lock(&self.queue).branches.extend(jobs.into_iter().map(task));
        self.change.notify_all();
    }

    fn keep(&self, finished: &Finished, steps: u64) -> Result<(), SweepError> {
        {
            let mut books = lock(&self.books);
            books.store.insert(finished)?;
            books.tally.computed += 1;
        }
        self.watch.finished(finished);
        self.advance(steps);
        Ok(())
    }

    fn advance(&self, steps: u64) {
        let tally = {
            let mut books = lock(&self.books);
            books.done += steps;
            books.tally.share = books.done as f64 / books.total.max(1) as f64;
            books.tally
        };
        self.watch.advanced(&tally);
    }
}

enum Opened {
    Tasks(Vec<QueuedJob>),
    Elsewhere(Family),
    Done,
}

/// What a run by itself took, from its summary.
fn steps_of(experiment: &Experiment, finished: &Finished) -> Steps {
    let nobody_leaves = steps(experiment);
    let (Some(training), Some(summary)) = (experiment.training(), finished.summary()) else {
        return Steps { taken: nobody_leaves, alone: nobody_leaves, nobody_leaves };
    };
    let received = training.decides_on == crate::training::DecidesOn::Received;
    // Who decides on the received model does not work in the round in which it leaves.
    let rounds = |left: Option<u32>| match left {
        Some(round) => u64::from(round) - u64::from(received),
        None => u64::from(summary.rounds),
    };
    let listed: u64 = summary.agents.iter().map(|agent| rounds(agent.entry.left)).sum();
    let all = listed + summary.unlisted as u64 * rounds(None);
    let share = training.participation;
    let taken = (all as f64 * share).round() as u64 * training.usual_steps();
    Steps { taken, alone: taken, nobody_leaves }
}
