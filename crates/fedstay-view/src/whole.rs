//! Several runs in one answer, so that a page which compares a hundred asks a few times and not hundreds of times.
//!
//! For every run that was asked for, in that order: `u32` length of its details, `u32` length of its
//! series, both little-endian; the details as JSON, padded to four bytes; the series (`series.rs`), padded to
//! four bytes. Both lengths are 0 for a run that is not there.

use serde_json::Value;

/// The most runs in one answer; who asks for more asks again.
pub(crate) const MOST_AT_ONCE: usize = 64;

/// Everything about a run.
pub(crate) struct WholeRun {
    pub(crate) detail: Value,
    /// Its series; `None` while its first line cannot be read.
    pub(crate) series: Option<Vec<u8>>,
}

/// The answer with these runs.
pub(crate) fn encode(runs: impl Iterator<Item = Option<WholeRun>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for run in runs {
        let detail = run.as_ref().map(|run| run.detail.to_string()).unwrap_or_default();
        let series = run.and_then(|run| run.series).unwrap_or_default();
        bytes.extend((detail.len() as u32).to_le_bytes());
        bytes.extend((series.len() as u32).to_le_bytes());
        for part in [detail.as_bytes(), &series] {
            bytes.extend_from_slice(part);
            bytes.resize(bytes.len().next_multiple_of(4), b' ');
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_part_begins_at_a_multiple_of_four() {
        let one = WholeRun { detail: json!({ "name": "é" }), series: Some(vec![1, 2, 3, 4, 5]) };
        let two = WholeRun { detail: json!({}), series: None };
        let bytes = encode([Some(one), None, Some(two)].into_iter());
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!((number(0), number(4)), (13, 5));
        assert_eq!(&bytes[8..21], "{\"name\":\"é\"}".as_bytes());
        assert_eq!(bytes[24..29], [1, 2, 3, 4, 5]);
        assert_eq!((number(32), number(36)), (0, 0), "a run that is not there");
        assert_eq!((number(40), number(44)), (2, 0), "one without a first line");
        assert_eq!(&bytes[48..], b"{}  ");
    }
}
