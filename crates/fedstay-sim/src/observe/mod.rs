//! What watches a run and keeps it.

mod checkpoint;
mod disk;
mod folder;
mod journal;
mod lock;
mod reader;
mod tensorboard;

pub use checkpoint::{Asked, Checkpoint, hash_of};
pub use disk::write_whole;
pub(crate) use folder::write_folder;
pub use folder::{Folder, FolderError, made_in_python};
pub use journal::{Journal, Mark};
pub use lock::RunLock;
pub use reader::{Recorded, read_gram, read_rounds};
pub use tensorboard::TensorBoard;
