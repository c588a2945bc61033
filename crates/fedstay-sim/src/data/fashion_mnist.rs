//! Fashion-MNIST: 70,000 pieces of clothing of 28×28 pixels, 10,000 of them for testing.
//!
//! Reference: H. Xiao, K. Rasul and R. Vollgraf, *Fashion-MNIST: a Novel Image Dataset for
//! Benchmarking Machine Learning Algorithms*, 2017. Four gzipped IDX files.

use super::checked::published;
use super::idx::{IdxFile, IdxSet};
use super::{DataError, Load, LoadedData, Origin};

/// What Fashion-MNIST is made of. It is published gzipped only.
pub(super) const SET: IdxSet = IdxSet {
    kind: "fashion-mnist",
    classes: [
        "t-shirt",
        "trouser",
        "pullover",
        "dress",
        "coat",
        "sandal",
        "shirt",
        "sneaker",
        "bag",
        "ankle-boot",
    ],
    files: [
        file("train-images-idx3-ubyte", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        file("train-labels-idx1-ubyte", "25c81989df183df01b3e8a0aad5dffbe"),
        file("t10k-images-idx3-ubyte", "bef4ecab320f06d8554ea6380940ec79"),
        file("t10k-labels-idx1-ubyte", "bb300cfdad3c16e7a12a480ee83cd310"),
    ],
    hint: "type `fedstay data fetch fashion-mnist`, \
           or set data.path to the folder with the IDX files",
};

const fn file(name: &'static str, gz_md5: &'static str) -> IdxFile {
    IdxFile { name, md5: None, gz_md5 }
}

pub(super) const ORIGIN: Origin =
    Origin { about: "70,000 pieces of clothing of 28×28 pixels, 10 classes", reference: "" };

published! {
    /// The Fashion-MNIST images.
    FashionMnist
}

impl Load for FashionMnist {
    /// Reads the four files.
    fn load(&self) -> Result<LoadedData, DataError> {
        SET.load(self.path.as_deref(), self.check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_files_it_says_what_to_type() {
        let dir = tempfile::tempdir().unwrap();
        let fashion = FashionMnist { path: Some(dir.path().into()), check: true };
        let error = fashion.load().unwrap_err().to_string();
        assert!(error.contains("is not there: type `fedstay data fetch fashion-mnist`"), "{error}");
    }
}
