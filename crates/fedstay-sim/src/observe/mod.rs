//! What watches a run and keeps it.

mod disk;
mod folder;
mod reader;
mod tensorboard;

pub use disk::write_whole;
pub(crate) use folder::write_folder;
pub use folder::{Folder, FolderError};
pub use reader::{Recorded, read_gram, read_rounds};
pub use tensorboard::TensorBoard;
