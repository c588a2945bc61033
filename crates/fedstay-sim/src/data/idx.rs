//! IDX, the format of MNIST and its relatives: big-endian header, then bytes; also gzipped.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use super::cache::folder;
use super::checked::{Checked, bytes};
use super::{Channels, DataError, Dataset, Image, Inputs, LoadedData, Targets};

/// Deflate cannot expand one byte to more than this many.
pub(super) const INFLATION: u64 = 1032;

/// One of the four files, under its plain name.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdxFile {
    pub(super) name: &'static str,
    /// The sum of the plain file, where it is known.
    pub(super) md5: Option<&'static str>,
    /// The sum of the file as it is published, gzipped.
    pub(super) gz_md5: &'static str,
}

/// A data set of four IDX files.
pub(super) struct IdxSet {
    pub(super) kind: &'static str,
    pub(super) classes: [&'static str; 10],
    /// Training images and labels, then those for testing.
    pub(super) files: [IdxFile; 4],
    pub(super) hint: &'static str,
}

impl IdxSet {
    /// Reads the four files from `path`, by default from the cache.
    pub(super) fn load(&self, path: Option<&Path>, check: bool) -> Result<LoadedData, DataError> {
        let dir = folder(path, self.kind)?;
        let (mut rows, mut labels, mut pixels, mut train) = (Vec::new(), Vec::new(), 0, 0);
        let mut image = None;
        for pair in self.files.chunks_exact(2) {
            let images = OpenIdx::open(&dir, &pair[0], 3, check, self.hint)?;
            if pixels != 0 && images.item() != pixels {
                let (expected, found) = (pixels.to_string(), images.item().to_string());
                let expected = format!("images of {expected} pixels, as for training");
                return Err(DataError::wrong(&images.path, expected, found, self.hint));
            }
            (train, pixels) = (labels.len(), images.item());
            let count = images.dimensions[0];
            let (height, width) = (images.dimensions[1], images.dimensions[2]);
            image = Some(Image { channels: 1, height, width });
            images.read(&mut rows, self.hint)?;

            let tags = OpenIdx::open(&dir, &pair[1], 1, check, self.hint)?;
            let path = tags.path.clone();
            if tags.dimensions[0] != count {
                let (expected, found) = (format!("{count} labels"), tags.dimensions[0].to_string());
                return Err(DataError::wrong(&path, expected, found, self.hint));
            }
            let mut these = Vec::new();
            tags.read(&mut these, self.hint)?;
            let most = self.classes.len() - 1;
            if let Some(tag) = these.iter().find(|&&tag| usize::from(tag) > most) {
                let expected = format!("labels from 0 to {most}");
                return Err(DataError::wrong(&path, expected, tag.to_string(), self.hint));
            }
            labels.extend(these.into_iter().map(u16::from));
        }
        let data = Dataset {
            groups: None,
            name: self.kind.into(),
            inputs: Inputs::Bytes {
                rows,
                scale: vec![1.0 / 255.0; pixels],
                shift: vec![0.0; pixels],
            },
            image,
            targets: Targets::Classes { of: labels, names: self.classes.map(String::from).into() },
            owners: None,
        };
        Ok(LoadedData::whole(data, train, Channels::Planes(1)))
    }
}

/// An open IDX file whose header has been read and whose size is right or can be.
struct OpenIdx {
    path: PathBuf,
    reader: PlainOrGzip,
    dimensions: Vec<usize>,
    total: usize,
}

enum PlainOrGzip {
    Plain(Checked),
    Gzip(Box<GzDecoder<Checked>>),
}

impl Read for PlainOrGzip {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            PlainOrGzip::Plain(file) => file.read(into),
            PlainOrGzip::Gzip(file) => file.read(into),
        }
    }
}

impl OpenIdx {
    /// Opens the plain file or, where there is none, the gzipped one.
    fn open(
        dir: &Path,
        file: &IdxFile,
        rank: u8,
        check: bool,
        hint: &str,
    ) -> Result<OpenIdx, DataError> {
        let zipped = dir.join(format!("{}.gz", file.name));
        let plain = dir.join(file.name);
        let use_zipped = !plain.exists() && zipped.exists();
        let (path, md5) = if use_zipped { (zipped, Some(file.gz_md5)) } else { (plain, file.md5) };
        let file = Checked::open(&path, md5.filter(|_| check), hint)?;
        let len = file.len();
        let mut reader = match use_zipped {
            true => PlainOrGzip::Gzip(Box::new(GzDecoder::new(file))),
            false => PlainOrGzip::Plain(file),
        };

        let mut header = vec![0; 4 + 4 * usize::from(rank)];
        reader.read_exact(&mut header).map_err(|error| {
            let expected = format!("an IDX header of {}", bytes(header.len() as u64));
            DataError::wrong(&path, expected, format!("{} ({error})", bytes(len)), hint)
        })?;
        let mut numbers =
            header.chunks_exact(4).map(|n| u32::from_be_bytes([n[0], n[1], n[2], n[3]]));
        let magic = numbers.next().unwrap_or(0);
        if magic != 0x0800 + u32::from(rank) {
            let expected = format!(
                "an IDX file of bytes in {rank} dimensions ({:#06x})",
                0x0800 + u32::from(rank)
            );
            return Err(DataError::wrong(&path, expected, format!("{magic:#06x}"), hint));
        }
        let dimensions: Vec<u64> = numbers.map(u64::from).collect();
        let shape = dimensions.iter().map(u64::to_string).collect::<Vec<_>>().join("×");

        // What the header claims must fit the file before any memory is allocated.
        let most = if use_zipped { len.saturating_mul(INFLATION) } else { len };
        let claimed = dimensions.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
        let total = claimed
            .and_then(|n| n.checked_add(header.len() as u64))
            .filter(|&n| n <= most && (use_zipped || n == len) && n > header.len() as u64);
        let Some(total) = total else {
            let expected = format!("{shape} bytes after a header of {}", header.len());
            let found = if use_zipped { format!("{} gzipped", bytes(len)) } else { bytes(len) };
            return Err(DataError::wrong(&path, expected, found, hint));
        };
        let dimensions = dimensions.into_iter().map(|n| n as usize).collect();
        Ok(OpenIdx { path, reader, dimensions, total: total as usize - header.len() })
    }

    /// The bytes of one item.
    fn item(&self) -> usize {
        self.dimensions[1..].iter().product()
    }

    /// Appends everything after the header; more or less than it promised is an error.
    fn read(mut self, into: &mut Vec<u8>, hint: &str) -> Result<(), DataError> {
        let named = |source| DataError::io(&self.path, hint, source);
        into.try_reserve_exact(self.total).map_err(|error| named(std::io::Error::other(error)))?;
        let start = into.len();
        let read = (&mut self.reader).take(self.total as u64 + 1).read_to_end(into);
        let found = match read {
            Ok(read) if read == self.total => {
                return match self.reader {
                    PlainOrGzip::Plain(file) => file.finish(),
                    PlainOrGzip::Gzip(file) => file.into_inner().finish(),
                };
            }
            Ok(read) if read > self.total => "more".to_owned(),
            Ok(read) => bytes(read as u64),
            Err(error) => format!("{} ({error})", bytes((into.len() - start) as u64)),
        };
        let expected = format!("{} after the header", bytes(self.total as u64));
        Err(DataError::wrong(&self.path, expected, found, hint))
    }
}
