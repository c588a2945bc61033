//! A run in the list: what a look at its folder's files says, without following them.

use crate::delivered::{Delivered, measures};
use crate::inside::Place;
use crate::look::RuleLook;
use crate::run::header;
use crate::settings::{self, Settings};
use crate::status::standing;
use crate::times;
use crate::words::{self, ListWords};
use fedstay::Measure;
use fedstay::record::{AsJson, Header, RoundLine};
use fedstay_draw::words::{Standing, Traces, mean_loss};
use serde::Serialize;
use serde_json::Value;
use std::io::{Read, Seek, SeekFrom};

/// The files that a listing is made from.
pub(crate) const FILES: [&str; 3] = ["rounds.jsonl", "summary.json", "config.toml"];
const MOST_CONFIG: u64 = 1 << 20;
/// The most bytes that are read of the head and of the tail of its rounds.
const MOST_HEAD: u64 = 16 << 20;
const MOST_TAIL: u64 = 1 << 18;

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Listing {
    pub(crate) id: String,
    pub(crate) name: String,
    rule: Option<String>,
    on: Option<String>,
    seed: Option<u64>,
    agents: usize,
    /// The number of rounds asked for, and of those done.
    asked: u32,
    rounds: u32,
    pub(crate) status: Standing,
    /// How far it is, or what came of it.
    brief: ListWords,
    look: RuleLook,
    /// When it began, in milliseconds since 1970.
    began: Option<u64>,
    /// A number that is the run's own, wherever its folder is: its line's pattern is chosen by it.
    mark: u32,
    /// What it delivered, and the verdict on it, once it is over.
    delivered: Option<Delivered>,
    /// What was measured besides the loss, the headline first.
    measures: Vec<Measure>,
    verdict: Option<String>,
    /// The keys of its configuration.
    pub(crate) settings: Settings,
    /// Why it cannot be opened.
    why: Option<String>,
}

impl Listing {
    /// The listing of a run, by the files in its folder.
    pub(crate) fn of(id: &str, name: String, place: &Place) -> Self {
        let head = first_lines(place);
        let last = last_line(place);
        let traces = Traces {
            header: head.header.as_ref().map(Result::is_ok),
            rounds: last.is_some(),
            losses: head.first_loss.zip(last.as_ref().and_then(mean_loss)),
            ..Traces::default()
        };
        let summary = place.read("summary.json", 64 << 20).ok().flatten();
        let summary = summary.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let summary = summary.filter(|summary| !summary.is_null());
        let status = standing(place, summary.is_some(), traces);
        let mut listing = Self {
            id: id.to_owned(),
            name,
            rule: None,
            on: None,
            seed: None,
            agents: 0,
            asked: 0,
            rounds: last.map_or(0, |line| line.round),
            status,
            brief: words::brief(None, status),
            look: RuleLook::of(""),
            began: times::began(place),
            mark: mark(place),
            delivered: None,
            measures: Vec::new(),
            verdict: None,
            settings: Settings::new(),
            why: None,
        };
        if let Ok(Some(config)) = place.read("config.toml", MOST_CONFIG) {
            listing.settings = settings::read(&String::from_utf8_lossy(&config));
        }
        match head.header {
            Some(Ok(header)) => {
                listing.look = RuleLook::of(&header.rule);
                listing.agents = header.count();
                (listing.rule, listing.on) = (Some(header.rule), Some(header.on));
                (listing.seed, listing.asked) = (Some(header.seed), header.rounds);
            }
            Some(Err(why)) => listing.why = Some(format!("rounds.jsonl, line 1: {why}")),
            None if status == Standing::Unreadable => {
                listing.why = Some("rounds.jsonl, line 1: it has no end".into());
            }
            None => {}
        }
        if let Some(summary) = summary {
            listing.brief = words::brief(Some(&summary), listing.status);
            listing.delivered = Some(Delivered::of(&summary));
            listing.measures = measures(&summary);
            listing.verdict = summary["verdict"].as_str().map(ToOwned::to_owned);
        }
        listing
    }
}

/// A number of a run's own: by the name of its folder, and not by where that is.
fn mark(place: &Place) -> u32 {
    let name = place.folder.file_name().unwrap_or_default();
    let whole = fedstay::fingerprint(name.as_encoded_bytes());
    // Both halves of it, in half the bits.
    (whole ^ (whole >> 32)) as u32
}

/// What is at the head of a run's rounds.
struct FirstLines {
    /// The first line; `None` while it has no end.
    header: Option<Result<Header, String>>,
    /// The mean loss of the first round.
    first_loss: Option<f64>,
}

fn first_lines(place: &Place) -> FirstLines {
    let refused = |why: String| FirstLines { header: Some(Err(why)), first_loss: None };
    let file = match place.open("rounds.jsonl") {
        Ok(Some(file)) => file,
        Ok(None) => return refused("the file is gone".into()),
        Err(error) => return refused(error.to_string()),
    };
    let mut bytes = std::io::BufReader::new(file.take(MOST_HEAD));
    let mut line = || {
        let mut line = Vec::new();
        std::io::BufRead::read_until(&mut bytes, b'\n', &mut line).map(|_| line)
    };
    match line() {
        Err(error) => refused(error.to_string()),
        Ok(first) if !first.ends_with(b"\n") && (first.len() as u64) < MOST_HEAD => {
            FirstLines { header: None, first_loss: None }
        }
        Ok(first) => {
            let second = line().ok().and_then(|second| RoundLine::from_json(&second).ok());
            let first_loss = second.as_ref().and_then(mean_loss);
            FirstLines { header: Some(header(&first)), first_loss }
        }
    }
}

/// The last round, from the end of the file: the highest number of a line that is whole. A line behind it with a
/// lower number is not the next of this run.
fn last_line(place: &Place) -> Option<RoundLine> {
    let mut file = place.open("rounds.jsonl").ok()??;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MOST_TAIL))).ok()?;
    let mut end = Vec::new();
    file.take(MOST_TAIL).read_to_end(&mut end).ok()?;
    let whole = &end[..=end.iter().rposition(|byte| *byte == b'\n')?];
    let number = |line: &[u8]| {
        let digits = line.strip_prefix(br#"{"round":"#)?;
        let digits: Vec<u8> = digits.iter().copied().take_while(u8::is_ascii_digit).collect();
        String::from_utf8(digits).ok()?.parse::<u32>().ok()
    };
    let lines = whole.split(|byte| *byte == b'\n');
    let mut numbered: Vec<(u32, &[u8])> =
        lines.filter_map(|line| Some((number(line)?, line))).collect();
    numbered.sort_by_key(|(round, _)| std::cmp::Reverse(*round));
    let read = |line: &[u8]| RoundLine::from_json(line).ok();
    let mut lines = numbered.into_iter().filter_map(|(_, line)| read(line));
    lines.find(|line| line.check().is_ok())
}
