use super::super::cifar10::{PIXELS, RECORD};
use super::*;

/// A picture of `images` images, colours interleaved.
fn png(images: usize, pixel: impl Fn(usize, usize, usize) -> u8) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 1024, images as u32);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    let pixel = &pixel;
    let data: Vec<u8> = (0..images)
        .flat_map(|i| (0..1024).flat_map(move |p| (0..3).map(move |c| pixel(i, p, c))))
        .collect();
    writer.write_image_data(&data).unwrap();
    writer.finish().unwrap();
    file
}

#[test]
fn pictures_become_records_of_three_planes() {
    let file = png(2, |image, pixel, colour| (image * 100 + pixel % 32 + colour * 50) as u8);
    let batch = cifar10::to_batch("p.png", &file, &[7, 3]).unwrap();
    assert_eq!(batch.len(), 2 * RECORD);
    assert_eq!((batch[0], batch[RECORD]), (7, 3));
    let record = &batch[RECORD + 1..];
    for (place, &value) in record.iter().enumerate() {
        let (colour, pixel) = (place / (PIXELS / 3), place % (PIXELS / 3));
        assert_eq!(value, (100 + pixel % 32 + colour * 50) as u8);
    }
}

#[test]
fn pictures_that_are_torn_or_too_short_are_refused() {
    let file = png(2, |_, pixel, _| (pixel % 7) as u8);
    let error = cifar10::to_batch("p.png", &file, &[1; 3]).unwrap_err().to_string();
    assert!(error.contains("p.png: expected 1024×3 RGB bytes, found 1024×2"), "{error}");
    for len in 0..file.len() {
        let torn = cifar10::to_batch("p.png", &file[..len], &[1; 2]);
        assert!(torn.is_err() || len > file.len() - 32, "{len} of {}", file.len());
    }
}

/// A job for one small file.
fn job<'a>(folder: &Path, progress: &'a mut dyn FnMut(Progress)) -> Download<'a> {
    let abc = Published { name: "abc", bytes: 3, md5: "900150983cd24fb0d6963f7d28e17f72" };
    let folder = folder.to_path_buf();
    fs::create_dir_all(folder.join(".partial")).unwrap();
    Download { what: Fetchable::Mnist, folder, missing: vec![abc], new: vec![], progress }
}

#[test]
fn only_the_published_file_gets_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut ignore = |_| ();
    let mut job = job(dir.path(), &mut ignore);
    let abc = job.wants("abc").unwrap();
    let error = job.keep_bytes(abc, b"abd").unwrap_err().to_string();
    assert!(error.contains("type `fedstay data fetch mnist` to try again"), "{error}");
    assert!(!dir.path().join("abc").exists() && job.wants("abc").is_some());
    assert_eq!(fs::read_dir(job.partial()).unwrap().count(), 0);
    job.keep_bytes(abc, b"abc").unwrap();
    assert_eq!(job.wants("abc"), None);
    let fetched = job.end("a test".into(), vec![]);
    assert_eq!(fetched.new, ["abc"]);
    assert!(dir.path().join("abc").exists() && !dir.path().join(".partial").exists());
}

#[test]
fn a_program_that_fails_or_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = Vec::new();
    let mut note = |progress: Progress| told.push(progress);
    let mut job = job(dir.path(), &mut note);
    // Nothing listens on port 9 of this machine, so no network is needed to fail.
    let error = job.download("http://127.0.0.1:9/x", "x", 10).unwrap_err().to_string();
    assert!(error.starts_with("curl failed (") || error.contains("curl is not there"), "{error}");
    // What was downloaded whole before is not asked for again.
    fs::write(job.partial().join("y"), [0; 10]).unwrap();
    job.download("http://127.0.0.1:9/y", "y", 10).unwrap();
    assert!(
        told.iter().any(|progress| progress.doing == "downloading x" && progress.total == Some(10))
    );
}

#[test]
fn every_fetchable_set_is_a_source() {
    for what in Fetchable::ALL {
        assert!(super::super::Source::LIST.iter().any(|entry| entry.name == what.kind()));
        assert_eq!(Fetchable::from_kind(what.kind()), Some(what));
    }
    assert_eq!(Fetchable::from_kind("digits"), None);
}
