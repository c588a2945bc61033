//! The `fedstay` command, as a library: tests and fuzz targets call it without a process.

pub mod command;
pub mod figure;
mod interrupt;
mod progress;
mod spreadsheet;
mod summary;
pub mod terminal;
