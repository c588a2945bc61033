//! What watches a run and keeps it.

mod disk;
mod folder;
mod reader;

pub use disk::write_whole;
pub use folder::{Folder, FolderError};
pub use reader::{Recorded, read_gram, read_rounds};
