//! A live page about the folders of runs, served on this machine.
//!
//! A folder is followed while it is written (`follow`), kept in columns (`history`), thinned for
//! the eye (`series`) and shown by a page whose files are part of the program (`page/`). The server
//! answers GET requests for runs it has found under the folders it was given, by id; no request
//! names a file.

mod assets;
mod bundle;
mod configured;
mod connections;
mod delivered;
mod detail;
mod follow;
mod guard;
mod history;
mod inside;
mod library;
mod listing;
mod look;
mod map;
mod patience;
mod run;
mod series;
mod server;
mod settings;
mod spread;
mod status;
mod theory;
mod times;
mod whole;
mod words;
mod worth;

pub use server::View;

use std::net::SocketAddr;

/// Why nothing can be shown.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// A folder does not exist.
    #[error("{0}")]
    Folder(String),
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}: {error}; choose another with --port, or --port 0 for any that is free"
    )]
    Address {
        /// The address.
        address: SocketAddr,
        /// The cause.
        error: std::io::Error,
    },
    /// The machine lacks a resource, threads for instance.
    #[error("{0}")]
    Io(std::io::Error),
}
