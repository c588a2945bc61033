//! Sweeps: many runs of one experiment, declared in one file, computed once, kept in one store.
//!
//! | room | file | what |
//! |---|---|---|
//! | `plan/` | `mod.rs`, `base.rs`, `expand.rs` | what a file asks for: a grid over a base experiment, with filters |
//! | | `key.rs` | the name of a run: a hash of its whole configuration and of the results' number |
//! | | `family.rs` | runs that differ only in ε, and whether they provably share work |
//! | `compute/` | `mod.rs` | how a sweep is started and watched |
//! | | `workers.rs` | the workers: runs in parallel, and agents within a run when cores are free |
//! | | `shared.rs` | what they share: pools of threads, data that are dealt out, what agents make alone |
//! | | `claim.rs` | several processes on one store |
//! | | `branch.rs` | the shared trajectory, and how it branches where somebody leaves |
//! | | `single.rs`, `package.rs` | one run by itself; runs that travel between machines |
//! | | `estimate.rs` | how long a sweep will take |
//! | `results/` | `outcome.rs`, `series.rs` | what is kept of a run |
//! | | `store.rs`, `seal.rs` | the SQLite store, and its checksums |
//! | | `frame.rs`, `columns.rs` | runs to choose from, and columns for other programs |
//! | | `stats.rs` | means, confidence, paired differences |
//! | | `sketch.rs` | a stored run as a folder to look at |

mod compute;
mod plan;
mod results;

pub use compute::estimate::{Estimate, estimate};
pub use compute::package::{Package, PackageError, run_family};
pub use compute::shared::AloneScores;
pub use compute::single::run_cell;
pub use compute::{Options, SweepError, SweepWatch, Tally, missing, run};
pub use plan::family::{Family, families};
pub use plan::key::{BUILD, RESULTS, key};
pub use plan::{Axis, Plan, Planned};
pub use results::columns::{Column, Values};
pub use results::frame::{Frame, Record, same_value};
pub use results::outcome::{Finished, Outcome};
pub use results::query::{Field, QueryTable};
pub use results::series::{Point, Series};
pub use results::sketch::sketch;
pub use results::stats;
pub use results::store::{Store, StoreError, WorkDone, usual_store};
