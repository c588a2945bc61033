//! A history thinned for the eye: the smallest and largest value of every few rounds, as bytes.
//!
//! A bucket holds 2ᵏ rounds, the fewest such that there are not too many buckets; a bucket that is
//! full never changes again, so a page that follows a run asks only for the last ones. Thinning
//! keeps the extremes: no departure, fault or peak can fall between two drawn points. A page that
//! looks at some of the rounds asks for these alone, and gets smaller buckets.
//!
//! The answer is `u32` length, JSON of that length, padding to four bytes, then little-endian
//! `f32`: for every agent its smallest losses, then (where a bucket has several rounds) its
//! largest; for as many agents as `received` says the same of the model it received; for every
//! track the same; then one byte per agent and bucket for its state. NaN is "not known".

use crate::delivered::track_of;
use crate::history::{History, Track};
use serde::Serialize;
use std::ops::Range;

/// The most numbers that are sent for the losses of all agents.
const BUDGET: usize = 100_000;
/// The most agents whose lines are sent; more cannot be told apart.
pub(crate) const MOST_AGENTS: usize = 500;

/// What the page has already, by its last answer.
#[derive(Debug, Clone, Copy, Default, serde::Deserialize)]
pub(crate) struct SentBefore {
    /// The rounds per bucket.
    #[serde(default)]
    pub(crate) bucket: usize,
    /// The first bucket wanted.
    #[serde(default)]
    pub(crate) from: usize,
    /// Which reading of the file it was.
    #[serde(default)]
    pub(crate) revision: u64,
    /// The first and the last round wanted; all where there is none.
    pub(crate) low: Option<u32>,
    pub(crate) high: Option<u32>,
}

impl SentBefore {
    /// The places of the rounds wanted, with one more on either side.
    fn window(&self, rounds: &[u32]) -> Range<usize> {
        let low = self.low.map_or(0, |low| rounds.partition_point(|round| *round < low));
        let high = self.high.map_or(rounds.len(), |high| {
            rounds.partition_point(|round| *round <= high).saturating_add(1).min(rounds.len())
        });
        let low = low.saturating_sub(1).min(high);
        low..high
    }
}

#[derive(Serialize)]
struct SeriesHead<'a> {
    revision: u64,
    bucket: usize,
    from: usize,
    /// The number of buckets in this answer.
    count: usize,
    /// The number of rounds read.
    rounds: usize,
    /// The first round of every bucket in this answer.
    first: Vec<u32>,
    /// The number of agents whose losses and states follow.
    agents: usize,
    /// The number of agents of which the loss of the received model follows too: 0 where it is the
    /// same.
    received: usize,
    /// Whether mean and worst loss are over all agents; else over those that reported.
    measured: bool,
    tracks: Vec<&'a String>,
}

/// The rounds per bucket, for this many rounds and agents.
pub(crate) fn bucket(rounds: usize, agents: usize) -> usize {
    let most = (BUDGET / agents.clamp(1, MOST_AGENTS)).clamp(200, 1000);
    rounds.div_ceil(most).max(1).next_power_of_two()
}

/// The answer to a page that has part of the series.
pub(crate) fn encode(history: &History, revision: u64, have: SentBefore) -> Vec<u8> {
    let window = have.window(&history.rounds);
    let rounds = window.len();
    let agents = history.agents.len().min(MOST_AGENTS);
    let received = history.received.len().min(agents);
    let bucket = bucket(rounds, agents + received);
    let total = rounds.div_ceil(bucket);
    let part = have.low.is_some() || have.high.is_some();
    let goes_on = have.bucket == bucket && have.revision == revision && !part;
    let from = if goes_on { have.from.min(total) } else { 0 };
    let tracks = &history.tracks;
    let looked = tracks.measured_mean.iter().any(|value| !value.is_nan());
    let (mean, worst) = match looked {
        true => (&tracks.measured_mean, &tracks.measured_worst),
        false => (&tracks.told_mean, &tracks.told_worst),
    };
    let measured = tracks.measured.iter().flat_map(|of| {
        let parts = [("mean", &of.mean), ("worst", &of.worst), ("population", &of.population)];
        parts.map(|(part, track)| (track_of(&of.measure.name, part), track))
    });
    let rest: [(&str, &Track); 8] = [
        ("loss_mean", mean),
        ("loss_worst", worst),
        ("step_size", &tracks.step_size),
        ("step_norm", &tracks.step_norm),
        ("case", &tracks.case),
        ("still_in", &tracks.still_in),
        ("in_d", &tracks.in_d),
        ("content", &tracks.content),
    ];
    let rest = rest.into_iter().map(|(name, track)| (name.to_owned(), track));
    let named: Vec<(String, &Track)> = measured.chain(rest).collect();
    let head = SeriesHead {
        revision,
        bucket,
        from,
        count: total - from,
        rounds,
        first: history.rounds[window.clone()][from * bucket..]
            .iter()
            .step_by(bucket)
            .copied()
            .collect(),
        agents,
        received,
        measured: looked,
        tracks: named.iter().map(|(name, _)| name).collect(),
    };
    let json = serde_json::to_vec(&head).unwrap_or_default();
    let mut bytes = (json.len() as u32).to_le_bytes().to_vec();
    bytes.extend(json);
    bytes.resize(bytes.len().next_multiple_of(4), b' ');
    let losses = history.losses[..agents].iter().chain(&history.received[..received]);
    let columns = losses.chain(named.iter().map(|(_, track)| *track));
    for column in columns {
        let buckets = || column[window.clone()][from * bucket..].chunks(bucket);
        buckets().for_each(|chunk| bytes.extend(extreme(chunk, f32::min).to_le_bytes()));
        if bucket > 1 {
            buckets().for_each(|chunk| bytes.extend(extreme(chunk, f32::max).to_le_bytes()));
        }
    }
    for column in &history.states[..agents] {
        let buckets = column[window.clone()][from * bucket..].chunks(bucket);
        bytes.extend(
            buckets.map(|chunk| chunk.iter().copied().max().map_or(0, |state| state as u8)),
        );
    }
    bytes
}

/// The smallest or largest value, by `f32::min` or `f32::max`, which skip NaN; NaN if there is no
/// other.
fn extreme(chunk: &[f32], pick: impl Fn(f32, f32) -> f32) -> f32 {
    chunk.iter().copied().fold(f32::NAN, pick)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::record::{Header, HeaderAgent, RoundLine};
    use serde_json::{Value, json};

    fn history(agents: u64, rounds: u32) -> History {
        let header = Header {
            schema: Header::SCHEMA.into(),
            version: "0".into(),
            rule: "fedavg".into(),
            on: "x".into(),
            seed: 0,
            rounds,
            agents: (0..agents)
                .map(|id| HeaderAgent { id: fedstay::AgentId(id), epsilon: 0.1, name: None })
                .collect(),
            unlisted: 0,
            sketch: false,
            own: false,
            previews: false,
            measures: fedstay::Measure::usual(),
            rows: None,
        };
        let mut history = History::new(header, false);
        for round in 1..=rounds {
            let loss: Vec<f64> = (0..agents).map(|id| peak(id, round)).collect();
            let line = json!({ "round": round, "agents": (0..agents).collect::<Vec<_>>(), "loss": loss,
                "step_size": 0.1, "step_norm": 0.1, "case": null });
            let line: RoundLine = serde_json::from_value(line).unwrap();
            history.add(line).unwrap();
        }
        history
    }

    /// A loss with one round in which it is 9.
    fn peak(id: u64, round: u32) -> f64 {
        if u64::from(round) == 100 + 7 * id { 9.0 } else { 1.0 / f64::from(round) }
    }

    fn head(bytes: &[u8]) -> (Value, usize) {
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let head = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
        (head, (4 + length).next_multiple_of(4))
    }

    fn floats(bytes: &[u8]) -> Vec<f32> {
        bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
    }

    #[test]
    fn no_peak_falls_between_two_points() {
        let history = history(20, 5000);
        let bytes = encode(&history, 1, SentBefore::default());
        let (head, start) = head(&bytes);
        let (bucket, count) =
            (head["bucket"].as_u64().unwrap(), head["count"].as_u64().unwrap() as usize);
        assert_eq!(bucket, 8);
        assert_eq!(count, 625);
        let numbers = floats(&bytes[start..start + 4 * 2 * 20 * count]);
        for id in 0..20 {
            let largest = &numbers[(2 * id + 1) * count..(2 * id + 2) * count];
            let at = (100 + 7 * id - 1) / 8;
            assert_eq!(largest[at], 9.0, "agent {id}");
            assert_eq!(largest.iter().filter(|value| **value == 9.0).count(), 1);
        }
    }

    #[test]
    fn a_page_that_has_most_of_it_gets_the_rest() {
        let history = history(200, 5000);
        let all = encode(&history, 4, SentBefore::default());
        assert!(all.len() < 700_000, "{} bytes", all.len());
        let (whole, _) = head(&all);
        let bucket = whole["bucket"].as_u64().unwrap() as usize;
        let have = SentBefore { bucket, from: 150, revision: 4, ..SentBefore::default() };
        let rest = encode(&history, 4, have);
        let (part, start) = head(&rest);
        assert_eq!(part["count"], whole["count"].as_u64().unwrap() - 150);
        assert_eq!(part["first"][0], 150 * bucket + 1);
        let count = part["count"].as_u64().unwrap() as usize;
        assert_eq!(rest.len(), start + 8 * count * (200 + 11) + 200 * count);
        // After another reading of the file, or another thinning, everything is sent again.
        for have in [SentBefore { revision: 3, ..have }, SentBefore { bucket: 2, ..have }] {
            assert_eq!(encode(&history, 4, have), all);
        }
    }

    #[test]
    fn the_received_models_losses_follow_where_agents_decide_on_their_own() {
        let mut history = History::new(history(2, 0).header, true);
        for round in 1..=3 {
            let line = json!({ "round": round, "agents": [0, 1], "loss": [0.5, 0.25], "step_size": 0.1,
                "step_norm": 0.1, "case": null,
                "assessment": { "loss": [1.5, 1.25], "accuracy": [], "population": null } });
            history.add(serde_json::from_value(line).unwrap()).unwrap();
        }
        let bytes = encode(&history, 1, SentBefore::default());
        let (head, start) = head(&bytes);
        assert_eq!((&head["received"], &head["measured"]), (&json!(2), &json!(true)));
        let numbers = floats(&bytes[start..start + 4 * 3 * 4]);
        assert_eq!(numbers, [0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 1.5, 1.5, 1.5, 1.25, 1.25, 1.25]);
        assert_eq!(bytes.len(), start + 4 * 3 * (2 + 2 + 11) + 2 * 3);
    }

    #[test]
    fn some_of_the_rounds_have_smaller_buckets() {
        let history = history(200, 5000);
        let whole = head(&encode(&history, 1, SentBefore::default())).0;
        let have = SentBefore { low: Some(1001), high: Some(1100), ..SentBefore::default() };
        let bytes = encode(&history, 1, have);
        let (part, start) = head(&bytes);
        assert!(whole["bucket"].as_u64().unwrap() > 1);
        assert_eq!((&part["bucket"], &part["count"]), (&json!(1), &json!(102)));
        assert_eq!((&part["first"][0], &part["first"][101]), (&json!(1000), &json!(1101)));
        assert_eq!(bytes.len(), start + 102 * (4 * (200 + 11) + 200));
        let none = SentBefore { low: Some(9000), high: Some(10), ..SentBefore::default() };
        assert!(head(&encode(&history, 1, none)).0["count"].as_u64().unwrap() <= 1);
    }

    #[test]
    fn nothing_yet_is_an_answer_too() {
        let bytes =
            encode(&history(3, 0), 0, SentBefore { bucket: 1, from: 99, ..SentBefore::default() });
        assert_eq!(head(&bytes).0["count"], 0);
    }
}
