//! Sweeps: many runs of one experiment, declared in one file, computed once, kept in one store.
//!
//! | file | what |
//! |---|---|
//! | `plan/` | what a file asks for: a grid over a base experiment, with filters |
//! | `key.rs` | the name of a run: a hash of its whole configuration and of the results' number |
//! | `family.rs` | runs that differ only in ε, and whether they provably share work |
//! | `branch.rs` | the shared trajectory, and how it branches where somebody leaves |
//! | `series.rs`, `outcome.rs` | what is kept of a run |
//! | `store.rs` | the SQLite store; `seal.rs`: its checksums; `claim.rs`: several processes on one of them |
//! | `work.rs` | how a sweep is started and watched |
//! | `shop.rs` | the workers: cells in parallel, and agents within a cell when cores are free |
//! | `means.rs` | what they use: pools of threads, data that are dealt out |
//! | `cell.rs`, `parcel.rs` | one run by itself; runs that travel between machines |
//! | `estimate.rs` | how long a sweep will take |
//! | `sketch.rs` | a stored run as a folder to look at |
//! | `frame.rs`, `columns.rs` | results: runs to choose from, and columns for other programs |
//! | `stats.rs` | means, confidence, paired differences |

mod branch;
mod cell;
mod claim;
mod columns;
mod estimate;
mod family;
mod frame;
mod key;
mod means;
mod outcome;
mod parcel;
mod plan;
mod seal;
mod series;
mod shop;
mod sketch;
pub mod stats;
mod store;
mod work;

pub use cell::run_cell;
pub use columns::{Column, Values};
pub use estimate::{Estimate, estimate};
pub use family::{Family, families};
pub use frame::{Frame, Record, same_value};
pub use key::{BUILD, RESULTS, key};
pub use outcome::{Finished, Outcome};
pub use parcel::{Parcel, ParcelError, run_family};
pub use plan::{Axis, Plan, PlanError, Planned};
pub use series::{Point, Series};
pub use sketch::sketch;
pub use store::{Store, StoreError, Work, usual_store};
pub use work::{Options, SweepError, SweepWatch, Tally, missing, run};
