//! The `fedstay` command, as a library: drawings and figures are used by others too.

pub mod command;
pub mod draw;
pub mod figure;
mod label;
pub mod picture;
pub mod progress;
mod spreadsheet;
mod story;
mod table;
pub mod tournament;
