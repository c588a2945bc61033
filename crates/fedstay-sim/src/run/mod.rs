//! One run of an experiment, and the folder that keeps it.

mod checkpoint;
mod disk;
mod folder;
mod journal;
mod lock;
mod model;
mod reader;
mod seal;
mod tensorboard;
mod trial;

pub use checkpoint::{Asked, Checkpoint, Who, hash_of};
pub(crate) use disk::Identity;
pub use disk::write_whole;
pub(crate) use folder::write_folder;
pub use folder::{CutOff, Driver, Folder, FolderError, Start, made_in_python};
pub use journal::{Journal, Mark};
pub use lock::RunLock;
pub use model::TensorShapes;
pub use reader::{Recorded, read_gram, read_header, read_rounds};
pub use seal::{SUMS, changed_among, changed_since, is_of_a_run};
pub use tensorboard::TensorBoard;
pub use trial::{DepartureWeights, Trial};
pub(crate) use trial::{about, config_text};
