//! The 1,797 handwritten digits of 8×8 pixels that come with the program.
//!
//! Reference: E. Alpaydin and C. Kaynak, *Optical Recognition of Handwritten Digits*, UCI Machine
//! Learning Repository, 1998 (the test part, `optdigits.tes`; CC BY 4.0). `digits.bin` holds them
//! as records of one label byte and 64 pixels from 0 to 16, in the order of the source.

use serde::{Deserialize, Serialize};

use super::{
    Channels, DataError, Dataset, Image, Inputs, Load, LoadedData, Origin, Targets, one_fifth,
};

/// Label and pixels of every digit.
static RECORDS: &[u8] = include_bytes!("digits.bin");

/// The pixels of a digit.
const PIXELS: usize = 64;

pub(super) const ORIGIN: Origin =
    Origin { about: "1,797 handwritten digits of 8×8 pixels, built in", reference: "" };

/// The built-in digits: no download, no file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digits {
    /// The share of every digit's images that is kept for testing.
    #[serde(default = "one_fifth")]
    pub test_share: f64,
}

impl Default for Digits {
    fn default() -> Self {
        Digits { test_share: one_fifth() }
    }
}

impl Load for Digits {
    /// Reads the digits.
    fn load(&self) -> Result<LoadedData, DataError> {
        let records = RECORDS.chunks_exact(1 + PIXELS);
        let data = Dataset {
            groups: None,
            name: "digits".into(),
            targets: Targets::Classes {
                of: records.clone().map(|record| u16::from(record[0])).collect(),
                names: (0..10).map(|digit| digit.to_string()).collect(),
            },
            owners: None,
            inputs: Inputs::Bytes {
                rows: records.flat_map(|record| &record[1..]).copied().collect(),
                scale: vec![1.0 / 16.0; PIXELS],
                shift: vec![0.0; PIXELS],
            },
            image: Some(Image { channels: 1, height: 8, width: 8 }),
        };
        LoadedData::split(data, self.test_share, Channels::Planes(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_the_published_ones() {
        let all = Digits { test_share: 0.0 }.load().unwrap();
        assert_eq!((all.data.len(), all.train, all.data.features()), (1797, 1797, 64));
        let counts = all.data.targets.counts(0..1797);
        assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
        let Inputs::Bytes { rows, .. } = &all.data.inputs else { panic!("digits are bytes") };
        assert_eq!(rows.iter().map(|&pixel| u64::from(pixel)).sum::<u64>(), 561_718);
        assert_eq!(rows.iter().max(), Some(&16));
    }

    #[test]
    fn a_fifth_of_every_digit_is_kept_for_testing() {
        let loaded = Digits::default().load().unwrap();
        let all = loaded.data.targets.counts(0..1797);
        let test = loaded.data.targets.counts(loaded.train..1797);
        for (all, test) in all.into_iter().zip(test) {
            assert_eq!(test, all / 5);
        }
    }

    #[test]
    fn a_share_outside_its_range_is_refused() {
        for test_share in [-0.1, 1.0, f64::NAN] {
            let error = Digits { test_share }.load().unwrap_err();
            assert!(error.to_string().starts_with("data.test_share: "), "{error}");
        }
    }
}
