//! CIFAR-10: 60,000 colour photographs of 32×32 pixels in 10 classes, 10,000 of them for testing.
//!
//! Reference: A. Krizhevsky, *Learning Multiple Layers of Features from Tiny Images*, 2009. The
//! files are the six "binary version" batches: records of one label byte, then 1,024 red, 1,024
//! green and 1,024 blue bytes.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::cache::folder;
use super::checked::{Checked, Published, bytes, published};
use super::{Channels, DataError, Dataset, Image, Inputs, Load, LoadedData, Origin, Targets};

/// The number of values of a photograph, in all three colours.
pub(super) const PIXELS: usize = 3 * 1024;
/// The bytes of a label and its pixels.
pub(super) const RECORD: usize = 1 + PIXELS;
/// The number of records of a published batch.
pub(super) const BATCH: usize = 10_000;

/// The published batches; the last one is for testing.
pub(super) const FILES: [Published; 6] = [
    batch("data_batch_1.bin", "5dd7e06a14cb22eb9f671a540d1b7c25"),
    batch("data_batch_2.bin", "5ea93a67294ea407fff1d09f752e9692"),
    batch("data_batch_3.bin", "942cd6a4bcdd0dd3c604fbe906cb4421"),
    batch("data_batch_4.bin", "ae636b3ba5c66a11e91e8cb52e771fcb"),
    batch("data_batch_5.bin", "53f37980c15c3d472c316c40844f3f0d"),
    batch("test_batch.bin", "803d5f7f4d78ea53de84dbe85f74fb6d"),
];

const fn batch(name: &'static str, md5: &'static str) -> Published {
    Published { name, bytes: (BATCH * RECORD) as u64, md5 }
}

const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

pub(super) const HINT: &str =
    "type `fedstay data fetch cifar10`, or set data.path to the folder with the binary batches";

pub(super) const ORIGIN: Origin =
    Origin { about: "60,000 colour photographs of 32×32 pixels, 10 classes", reference: "" };

published! {
    /// The CIFAR-10 photographs.
    Cifar10
}

impl Cifar10 {
    /// Whether the six batches are where they are looked for; what is in them is seen when they are read.
    pub fn is_there(&self) -> bool {
        let there = |dir: PathBuf| FILES.iter().all(|file| dir.join(file.name).is_file());
        folder(self.path.as_deref(), "cifar10").is_ok_and(there)
    }
}

impl Load for Cifar10 {
    /// Reads the six batches.
    fn load(&self) -> Result<LoadedData, DataError> {
        let dir = folder(self.path.as_deref(), "cifar10")?;
        let mut batches = Vec::new();
        for published in &FILES {
            let path = dir.join(published.name);
            let file = Checked::open(&path, self.check.then_some(published.md5), HINT)?;
            let records = records(&path, file.len(), self.check)?;
            batches.push((path, file, records));
        }
        // Every size is known and right before memory is allocated, once and exactly.
        let total = batches.iter().map(|(_, _, records)| records).sum::<usize>();
        let mut rows = Vec::new();
        rows.try_reserve_exact(total * PIXELS)
            .map_err(|error| DataError::io(&dir, HINT, std::io::Error::other(error)))?;
        let mut labels = Vec::with_capacity(total);
        let train = total - batches[5].2;
        for (path, mut file, records) in batches {
            read_batch(&path, &mut file, records, &mut rows, &mut labels)?;
            file.finish()?;
        }
        let data = Dataset {
            groups: None,
            name: "cifar10".into(),
            inputs: Inputs::Bytes {
                rows,
                scale: vec![1.0 / 255.0; PIXELS],
                shift: vec![0.0; PIXELS],
            },
            image: Some(Image { channels: 3, height: 32, width: 32 }),
            targets: Targets::Classes { of: labels, names: CLASSES.map(String::from).into() },
            owners: None,
        };
        Ok(LoadedData::whole(data, train, Channels::Planes(3)))
    }
}

/// How many records a batch of `len` bytes holds.
fn records(path: &Path, len: u64, published: bool) -> Result<usize, DataError> {
    let right = match published {
        true => len == FILES[0].bytes,
        false => len > 0 && len.is_multiple_of(RECORD as u64),
    };
    match usize::try_from(len / RECORD as u64) {
        Ok(records) if right => Ok(records),
        _ if published => Err(DataError::wrong(path, bytes(FILES[0].bytes), bytes(len), HINT)),
        _ => {
            let expected = format!("records of {RECORD} bytes");
            Err(DataError::wrong(path, expected, bytes(len), HINT))
        }
    }
}

/// Appends the records of one batch.
fn read_batch(
    path: &Path,
    file: &mut impl Read,
    records: usize,
    rows: &mut Vec<u8>,
    labels: &mut Vec<u16>,
) -> Result<(), DataError> {
    for record in 0..records {
        let start = rows.len();
        rows.resize(start + PIXELS, 0);
        let mut label = [0];
        file.read_exact(&mut label)
            .and_then(|()| file.read_exact(&mut rows[start..]))
            .map_err(|source| DataError::io(path, HINT, source))?;
        if usize::from(label[0]) >= CLASSES.len() {
            let expected = format!("a label from 0 to 9 in record {record}");
            return Err(DataError::wrong(path, expected, label[0].to_string(), HINT));
        }
        labels.push(u16::from(label[0]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two records per batch; pixel values tell batch and record apart.
    fn write(dir: &Path) -> Cifar10 {
        for (number, file) in FILES.iter().enumerate() {
            let mut content = Vec::new();
            for record in 0..2 {
                content.push(((number * 2 + record) % 10) as u8);
                content.extend(std::iter::repeat_n((number * 2 + record) as u8, PIXELS));
            }
            std::fs::write(dir.join(file.name), content).unwrap();
        }
        Cifar10 { path: Some(dir.to_path_buf()), check: false }
    }

    #[test]
    fn five_batches_train_and_the_sixth_tests() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = write(dir.path()).load().unwrap();
        assert_eq!((loaded.data.len(), loaded.train), (12, 10));
        assert_eq!(loaded.data.targets.classes().unwrap().of, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
        assert_eq!(loaded.data.row(11), super::super::Row::Bytes(&[11; PIXELS]));
    }

    #[test]
    fn a_batch_cut_anywhere_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let cifar10 = write(dir.path());
        let path = dir.path().join("data_batch_3.bin");
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        for len in (0..2 * RECORD as u64).rev().filter(|&len| len != RECORD as u64) {
            file.set_len(len).unwrap();
            let error = cifar10.load().unwrap_err().to_string();
            let told =
                format!("data_batch_3.bin: expected records of 3073 bytes, found {len} bytes");
            assert!(error.contains(&told), "{error}");
        }
    }

    #[test]
    fn other_files_than_the_published_ones_say_what_to_type() {
        let dir = tempfile::tempdir().unwrap();
        let mut cifar10 = write(dir.path());
        cifar10.check = true;
        let error = cifar10.load().unwrap_err().to_string();
        assert!(
            error.contains("data_batch_1.bin: expected 30730000 bytes, found 6146 bytes"),
            "{error}"
        );
        assert!(error.contains("fedstay data fetch cifar10"), "{error}");
        cifar10.path = Some(dir.path().join("nowhere"));
        let error = cifar10.load().unwrap_err().to_string();
        assert!(
            error.contains("data_batch_1.bin is not there: type `fedstay data fetch cifar10`"),
            "{error}"
        );
    }

    #[test]
    fn a_label_beyond_the_classes_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let cifar10 = write(dir.path());
        let path = dir.path().join("test_batch.bin");
        let mut content = std::fs::read(&path).unwrap();
        content[RECORD] = 10;
        std::fs::write(&path, content).unwrap();
        let error = cifar10.load().unwrap_err().to_string();
        assert!(
            error.contains("test_batch.bin: expected a label from 0 to 9 in record 1, found 10"),
            "{error}"
        );
    }
}
