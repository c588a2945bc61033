//! The `fedstay` command, as a library: tests and fuzz targets call it without a process.

pub mod command;
mod summary;
