//! What watches a run and keeps it.

mod checkpoint;
mod disk;
mod folder;
mod journal;
mod lock;
mod model;
mod reader;
mod tensorboard;

pub use checkpoint::{Asked, Checkpoint, hash_of};
pub use disk::write_whole;
pub(crate) use folder::write_folder;
pub use folder::{CutOff, Driver, Folder, FolderError, Start, made_in_python};
pub use journal::{Journal, Mark};
pub use lock::RunLock;
pub use model::Layout;
pub use reader::{Recorded, read_gram, read_rounds};
pub use tensorboard::TensorBoard;
