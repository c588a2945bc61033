//! MNIST, 70,000 handwritten digits, and Fashion-MNIST, as many pieces of clothing: images of 28×28
//! pixels, 10,000 of them for testing. Each is four IDX files, and Fashion-MNIST's are gzipped.
//!
//! References: Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, *Gradient-Based Learning Applied to
//! Document Recognition*, 1998. H. Xiao, K. Rasul and R. Vollgraf, *Fashion-MNIST: a Novel Image
//! Dataset for Benchmarking Machine Learning Algorithms*, 2017.

use super::checked::published;
use super::idx::{IdxFile, IdxSet};
use super::{DataError, Load, LoadedData, Origin};

/// What MNIST is made of.
pub(super) const MNIST: IdxSet = IdxSet {
    kind: "mnist",
    classes: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
    files: [
        IdxFile {
            name: "train-images-idx3-ubyte",
            md5: Some("6bbc9ace898e44ae57da46a324031adb"),
            gz_md5: "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        },
        IdxFile {
            name: "train-labels-idx1-ubyte",
            md5: Some("a25bea736e30d166cdddb491f175f624"),
            gz_md5: "d53e105ee54ea40749a09fcbcd1e9432",
        },
        IdxFile {
            name: "t10k-images-idx3-ubyte",
            md5: Some("2646ac647ad5339dbf082846283269ea"),
            gz_md5: "9fb629c4189551a2d022fa330f9573f3",
        },
        IdxFile {
            name: "t10k-labels-idx1-ubyte",
            md5: Some("27ae3e4e09519cfbb04c329615203637"),
            gz_md5: "ec29112dd5afa0611ce80d1b7f02629c",
        },
    ],
    hint: "type `fedstay data fetch mnist`, or set data.path to the folder with the IDX files",
};

/// What Fashion-MNIST is made of. It is published gzipped only.
pub(super) const FASHION_MNIST: IdxSet = IdxSet {
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
    Origin { about: "70,000 handwritten digits of 28×28 pixels", reference: "" };

pub(super) const FASHION_ORIGIN: Origin =
    Origin { about: "70,000 pieces of clothing of 28×28 pixels, 10 classes", reference: "" };

published! {
    /// The MNIST digits.
    Mnist
}

published! {
    /// The Fashion-MNIST images. Once unpacked, only sizes and labels of their files can be checked.
    FashionMnist
}

impl Load for Mnist {
    fn load(&self) -> Result<LoadedData, DataError> {
        MNIST.load(self.path.as_deref(), self.check)
    }
}

impl Load for FashionMnist {
    fn load(&self) -> Result<LoadedData, DataError> {
        FASHION_MNIST.load(self.path.as_deref(), self.check)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::*;
    use std::io::Write;
    use std::path::Path;

    fn idx(dimensions: &[u32], content: &[u8]) -> Vec<u8> {
        let mut file = (0x0800 + dimensions.len() as u32).to_be_bytes().to_vec();
        dimensions.iter().for_each(|n| file.extend(n.to_be_bytes()));
        file.extend(content);
        file
    }

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    /// Three training images of 2×2 and one for testing, which is gzipped.
    fn write(dir: &Path) -> Mnist {
        let put = |file: usize, suffix: &str, content: &[u8]| {
            std::fs::write(dir.join(format!("{}{suffix}", MNIST.files[file].name)), content)
                .unwrap();
        };
        put(0, "", &idx(&[3, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]));
        put(1, "", &idx(&[3], &[7, 0, 9]));
        put(2, ".gz", &gzip(&idx(&[1, 2, 2], &[13, 14, 15, 16])));
        put(3, ".gz", &gzip(&idx(&[1], &[4])));
        Mnist { path: Some(dir.to_path_buf()), check: false }
    }

    #[test]
    fn plain_and_gzipped_files_are_read_alike() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = write(dir.path()).load().unwrap();
        assert_eq!((loaded.train, loaded.data.features()), (3, 4));
        assert_eq!(loaded.data.targets.classes().unwrap().of, [7, 0, 9, 4]);
        assert_eq!(loaded.data.row(1), Row::Bytes(&[5, 6, 7, 8]));
        assert_eq!(loaded.data.row(3), Row::Bytes(&[13, 14, 15, 16]));
    }

    #[test]
    fn a_file_cut_anywhere_or_too_long_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let mnist = write(dir.path());
        for entry in std::fs::read_dir(dir.path()).unwrap() {
            let path = entry.unwrap().path();
            let whole = std::fs::read(&path).unwrap();
            // The last 8 bytes of a gzip file are its own checksum and size, checked by the
            // decoder.
            for len in 0..whole.len() {
                std::fs::write(&path, &whole[..len]).unwrap();
                let error = mnist.load().unwrap_err().to_string();
                assert!(error.contains(path.file_name().unwrap().to_str().unwrap()), "{error}");
                assert!(error.contains("fedstay data fetch mnist"), "{error}");
            }
            if path.extension().is_none() {
                std::fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
                assert!(mnist.load().is_err());
            }
            std::fs::write(&path, &whole).unwrap();
        }
        assert!(mnist.load().is_ok());
    }

    #[test]
    fn claims_that_no_file_can_hold_are_refused_before_memory_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let mnist = write(dir.path());
        let path = dir.path().join(MNIST.files[0].name);
        for claim in [[u32::MAX; 3], [u32::MAX, 1, 1], [0, 2, 2], [3, 0, 2]] {
            std::fs::write(&path, idx(&claim, &[0; 12])).unwrap();
            assert!(mnist.load().unwrap_err().to_string().contains("after a header of 16"));
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::write(path.with_extension("gz"), gzip(&idx(&[u32::MAX, 28, 28], &[0; 12])))
            .unwrap();
        assert!(mnist.load().unwrap_err().to_string().contains("gzipped"));
    }

    #[test]
    fn labels_must_match_the_images() {
        let dir = tempfile::tempdir().unwrap();
        let mnist = write(dir.path());
        let path = dir.path().join(MNIST.files[1].name);
        std::fs::write(&path, idx(&[2], &[1, 2])).unwrap();
        assert!(mnist.load().unwrap_err().to_string().contains("expected 3 labels, found 2"));
        std::fs::write(&path, idx(&[3], &[1, 2, 10])).unwrap();
        assert!(
            mnist.load().unwrap_err().to_string().contains("expected labels from 0 to 9, found 10")
        );
    }

    #[test]
    fn other_files_than_the_published_ones_are_refused_by_their_sum() {
        let dir = tempfile::tempdir().unwrap();
        let mnist = Mnist { check: true, ..write(dir.path()) };
        let error = mnist.load().unwrap_err().to_string();
        assert!(error.contains("expected MD5 6bbc9ace898e44ae57da46a324031adb"), "{error}");
    }

    #[test]
    fn without_files_it_says_what_to_type() {
        let dir = tempfile::tempdir().unwrap();
        let fashion = FashionMnist { path: Some(dir.path().into()), check: true };
        let error = fashion.load().unwrap_err().to_string();
        assert!(error.contains("is not there: type `fedstay data fetch fashion-mnist`"), "{error}");
    }
}
