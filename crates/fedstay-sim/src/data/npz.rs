//! Arrays of your own, as `numpy.savez("mine.npz", x=x, y=y)` writes them, compressed or not.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zip::ZipArchive;

use super::idx::INFLATION;
use super::labels::Labels;
use super::npy::{Header, Value};
use super::{Channels, DataError, Dataset, Image, Inputs, Load, LoadedData, Origin, one_fifth};

pub(super) const ORIGIN: Origin = Origin {
    about: "NumPy arrays of your own: x with one row per sample, y with the classes",
    reference: "",
};

/// NumPy arrays in one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Npz {
    /// The file.
    pub path: PathBuf,
    /// The array with the features: its first dimension counts the samples.
    #[serde(default = "x")]
    pub x: String,
    /// The array with the classes, as integers.
    #[serde(default = "y")]
    pub y: String,
    /// The share of every class's rows that is kept for testing.
    #[serde(default = "one_fifth")]
    pub test_share: f64,
}

fn x() -> String {
    "x".into()
}

fn y() -> String {
    "y".into()
}

const HINT: &str = "write it with numpy.savez(path, x=x, y=y), x of uint8 or float32 with one \
                    row per sample (numpy.ascontiguousarray), y of integers";

impl Npz {
    /// The file at `path` with every setting at its default.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Npz { path: path.into(), x: x(), y: y(), test_share: one_fifth() }
    }

    /// Hands every value of array `name` to `take`; sizes are checked against the file first.
    fn array(
        &self,
        archive: &mut ZipArchive<BufReader<File>>,
        name: &str,
        mut take: impl FnMut(&Header, Value),
    ) -> Result<Header, DataError> {
        let known: Vec<String> = archive
            .file_names()
            .filter_map(|name| Some(name.ok()?.trim_end_matches(".npy").to_owned()))
            .collect();
        let mut entry = archive.by_name(&format!("{name}.npy")).map_err(|error| {
            let found = format!("{} ({error})", known.join(", "));
            self.wrong(&format!("an array `{name}`"), found)
        })?;
        let (len, packed) = (entry.size(), entry.compressed_size());
        let expected = format!("numbers in `{name}`");
        let header = Header::read(&mut entry).map_err(|found| self.wrong(&expected, found))?;
        let possible = packed.saturating_mul(INFLATION);
        let count = header
            .count()
            .filter(|_| header.file_len() == Some(len) && len <= possible)
            .ok_or_else(|| {
                let expected = format!("`{name}` of shape {:?}", header.shape);
                self.wrong(&expected, format!("{len} bytes, {packed} packed"))
            })?;
        header
            .values
            .read(&mut entry, count, |value| take(&header, value))
            // The checksum is compared at the end of the entry.
            .and_then(|()| entry.read(&mut [0]).map(drop))
            .map_err(|error| self.wrong(&expected, error.to_string()))?;
        Ok(header)
    }

    fn wrong(&self, expected: &str, found: impl Into<String>) -> DataError {
        DataError::wrong(&self.path, expected, found, HINT)
    }
}

impl Load for Npz {
    /// Reads both arrays. An `x` of bytes in three or four dimensions holds images (of one channel,
    /// or channels first); in any other `x`, every feature is standardised by itself.
    fn load(&self) -> Result<LoadedData, DataError> {
        let path = &self.path;
        let file = File::open(path).map_err(|source| {
            DataError::io(path, "set data.path to the file you want to read", source)
        })?;
        let mut archive = ZipArchive::new(BufReader::new(file))
            .map_err(|error| self.wrong("an .npz archive", error.to_string()))?;

        let mut classes = Vec::new();
        let header = self.array(&mut archive, &self.y, |_, value| classes.push(value))?;
        if header.shape.len() != 1 {
            return Err(self.wrong("`y` in one dimension", format!("{:?}", header.shape)));
        }
        let mut labels = Labels::default();
        for class in &classes {
            match class {
                Value::Integer(class) => labels.push(&class.to_string(), ("classes", "data.y"))?,
                Value::Float(_) => return Err(self.wrong("integers in `y`", "floats")),
            }
        }

        let (mut bytes, mut floats) = (Vec::new(), Vec::new());
        let header = self.array(&mut archive, &self.x, |header, value| match value {
            Value::Integer(value) if is_bytes(header) => bytes.push(value as u8),
            value => floats.push(value.as_f32()),
        })?;
        let count = header.shape.first().copied().unwrap_or(0);
        let features = (bytes.len() + floats.len()).checked_div(count).unwrap_or(0);
        if count == 0 || features == 0 || count != classes.len() {
            let expected =
                format!("one row of `x` for each of the {} classes in `y`", classes.len());
            return Err(self.wrong(&expected, format!("an `x` of shape {:?}", header.shape)));
        }
        if let Some(place) = floats.iter().position(|value| !value.is_finite()) {
            let found = format!("{} in row {}", floats[place], place / features);
            return Err(self.wrong("finite numbers in `x`", found));
        }
        labels.check(path, &format!("`{}`", self.y), "data.y")?;
        let inputs = match is_bytes(&header) {
            true => Inputs::Bytes {
                rows: bytes,
                scale: vec![1.0 / 255.0; features],
                shift: vec![0.0; features],
            },
            false => Inputs::Floats { rows: floats, features },
        };
        let name = path.file_stem().map_or("npz".into(), |stem| stem.to_string_lossy().into());
        let data = Dataset {
            name,
            inputs,
            image: image(&header),
            targets: labels.targets(),
            groups: None,
            owners: None,
        };
        LoadedData::split(data, self.test_share, channels(&header))
    }
}

/// Whether features stay bytes, unconverted.
fn is_bytes(header: &Header) -> bool {
    (header.values.letter, header.values.size) == ('u', 1)
}

/// Which features are standardised together.
fn channels(header: &Header) -> Channels {
    match *header.shape.as_slice() {
        [_, _, _] if is_bytes(header) => Channels::Planes(1),
        [_, channels @ 1..=4, _, _] if is_bytes(header) => Channels::Planes(channels),
        [_, _, _, _] if is_bytes(header) => Channels::Planes(1),
        _ => Channels::PerFeature,
    }
}

/// The shape of an image: `[samples, height, width]`, or with channels before the height.
fn image(header: &Header) -> Option<Image> {
    match *header.shape.as_slice() {
        [_, height, width] => Some(Image { channels: 1, height, width }),
        [_, channels @ 1..=4, height, width] => Some(Image { channels, height, width }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::*;
    use std::io::{Seek, Write};
    use std::path::Path;
    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    fn npy(descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((text.len() as u16).to_le_bytes());
        file.extend(text.bytes());
        file.extend(values);
        file
    }

    fn write(path: &Path, method: CompressionMethod, arrays: &[(&str, Vec<u8>)]) {
        let mut archive = ZipWriter::new(File::create(path).unwrap());
        for (name, array) in arrays {
            let options = SimpleFileOptions::default().compression_method(method);
            archive.start_file(format!("{name}.npy"), options).unwrap();
            archive.write_all(array).unwrap();
        }
        archive.finish().unwrap();
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn tables_and_images_packed_or_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.npz");
        let y = npy("<i4", "(2,)", &[7, 0, 0, 0, 3, 0, 0, 0]);
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let table = npy("<f4", "(2, 3)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
            write(&path, method, &[("x", table), ("y", y.clone())]);
            let loaded = Npz { test_share: 0.0, ..Npz::new(&path) }.load().unwrap();
            let classes = loaded.data.targets.classes().unwrap();
            assert_eq!(classes.names, ["3", "7"]);
            assert_eq!(classes.of, [1, 0]);
            assert_eq!(loaded.data.row(1), Row::Floats(&[4.0, 5.0, 6.0]));
            assert_eq!(loaded.channels, Channels::PerFeature);
            assert_eq!(loaded.data.image, None);

            let images = npy("|u1", "(2, 3, 1, 2)", &(0..12).collect::<Vec<u8>>());
            write(&path, method, &[("x", images), ("y", y.clone())]);
            let loaded = Npz { test_share: 0.0, ..Npz::new(&path) }.load().unwrap();
            assert_eq!(loaded.data.row(1), Row::Bytes(&[6, 7, 8, 9, 10, 11]));
            assert_eq!(loaded.channels, Channels::Planes(3));
            assert_eq!(loaded.data.image, Some(Image { channels: 3, height: 1, width: 2 }));
        }
    }

    #[test]
    fn arrays_that_do_not_fit_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.npz");
        let y = || ("y", npy("|u1", "(2,)", &[0, 1]));
        let refused = |arrays: &[(&str, Vec<u8>)]| {
            write(&path, CompressionMethod::Stored, arrays);
            Npz::new(&path).load().unwrap_err().to_string()
        };
        assert!(refused(&[y()]).contains("expected an array `x`, found y"));
        let three = npy("|u1", "(3, 1)", &[0, 1, 2]);
        assert!(refused(&[("x", three), y()]).contains("one row of `x` for each of the 2 classes"));
        let nan = npy("<f4", "(2, 1)", &floats(&[1.0, f32::NAN]));
        assert!(refused(&[("x", nan), y()]).contains("found NaN in row 1"));
        let claims = npy("<f8", "(1000000000, 1000)", &[0; 8]);
        assert!(refused(&[("x", claims), y()]).contains("of shape [1000000000, 1000]"));
        let scalar = npy("|u1", "()", &[0]);
        assert!(refused(&[("x", scalar), y()]).contains("shape []"));
        let half = npy("<f4", "(2,)", &floats(&[0.0, 1.0]));
        assert!(refused(&[("y", half)]).contains("expected integers in `y`, found floats"));
        let text = npy("<U1", "(2,)", &[0; 8]);
        assert!(refused(&[("y", text)]).contains("an array of another kind"));
        assert!(refused(&[("y", b"no".to_vec())]).contains("a header that ends early"));
    }

    #[test]
    fn cut_or_altered_anywhere_it_does_not_panic() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mine.npz");
        let x = npy("<f4", "(2, 2)", &floats(&[1.0, 2.0, 3.0, 4.0]));
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            write(&path, method, &[("x", x.clone()), ("y", npy("|u1", "(2,)", &[0, 1]))]);
            let whole = std::fs::read(&path).unwrap();
            // Written in place: some file systems flush a file that is truncated and rewritten.
            let cut = dir.path().join("cut.npz");
            let mut file = File::create(&cut).unwrap();
            let mut put = |content: &[u8]| {
                file.rewind().unwrap();
                file.write_all(content).unwrap();
                file.set_len(content.len() as u64).unwrap();
            };
            for len in 0..whole.len() {
                put(&whole[..len]);
                let error = Npz::new(&cut).load().unwrap_err().to_string();
                assert!(error.contains("cut.npz"), "{error}");
                for byte in [0, 0x7f, 0xff] {
                    let mut altered = whole.clone();
                    altered[len] = byte;
                    put(&altered);
                    let _ = Npz::new(&cut).load();
                }
            }
        }
    }
}
