//! What fedstay's commands share: how they print, show progress, end at Ctrl-C, and the options that
//! several of them take. The commands themselves are in `fedstay-cli` and `fedstay-paper`, and neither
//! knows the other's insides.

mod interrupt;
mod plan;
mod progress;
mod screen;
mod source;
mod spreadsheet;
mod sweep;

pub use interrupt::Interrupt;
pub use plan::PlanProgress;
pub use progress::{Progress, hide};
pub use screen::{Cell, Colour, Column, Screen, ScreenOptions, Table, complain, help_columns};
pub use source::{Guarded, Source, Threads, Usage, pair_of};
pub use spreadsheet::cell;
pub use sweep::compute;
