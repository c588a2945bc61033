//! The runs under the folders given: found, listed, and followed while somebody looks.

use crate::delivered::Delivered;
use crate::detail::detail;
use crate::inside::{Place, Stamp};
use crate::look::Look;
use crate::map::Map;
use crate::run::{Run, header};
use crate::series::{self, Have};
use crate::settings::{self, Settings};
use crate::status::standing;
use crate::times;
use crate::whole::Whole;
use crate::words::{self, Brief};
use fedstay::record::{Header, RoundLine};
use fedstay_draw::words::{Standing, Traces, mean_loss};
use fedstay_sim::lock;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::broadcast;

/// The most folders that are searched, and how deep.
const MOST_FOLDERS: usize = 20_000;
const DEEPEST: usize = 6;
/// The most runs that are kept in memory, those asked for last.
const MOST_LOADED: usize = 16;
/// The most streams of events at once; fewer than there may be connections.
const MOST_STREAMS: usize = 60;
/// The files that a listing is made from.
const FILES: [&str; 3] = ["rounds.jsonl", "summary.json", "config.toml"];
const MOST_CONFIG: u64 = 1 << 20;
/// The most bytes that are read of the head and of the tail of its rounds.
const MOST_HEAD: u64 = 16 << 20;
const MOST_TAIL: u64 = 1 << 18;
const BETWEEN_LOOKS: Duration = Duration::from_millis(150);
const BETWEEN_SCANS: Duration = Duration::from_millis(1000);

/// All runs under the folders given.
pub(crate) struct Library {
    roots: Vec<PathBuf>,
    /// The same folders as they were given.
    given: Vec<PathBuf>,
    found: Mutex<BTreeMap<String, Found>>,
    events: broadcast::Sender<String>,
    /// How many streams of events have begun.
    streams: Arc<AtomicUsize>,
}

/// The turn of a stream of events.
pub(crate) struct Turn {
    own: usize,
    begun: Arc<AtomicUsize>,
}

impl Turn {
    /// Whether not too many others have begun since.
    pub(crate) fn lasts(&self) -> bool {
        self.begun.load(Ordering::Relaxed).wrapping_sub(self.own) <= MOST_STREAMS
    }
}

struct Found {
    place: Place,
    listing: Listing,
    /// The stamps of the files that a listing is made from.
    stamps: [Option<Stamp>; FILES.len()],
    run: Option<Arc<Mutex<Run>>>,
    asked: Instant,
}

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Listing {
    id: String,
    name: String,
    rule: Option<String>,
    on: Option<String>,
    seed: Option<u64>,
    agents: usize,
    /// The number of rounds asked for, and of those done.
    asked: u32,
    rounds: u32,
    status: Standing,
    /// How far it is, or what came of it.
    brief: Brief,
    look: Look,
    /// When it began, in milliseconds since 1970.
    began: Option<u64>,
    /// A number that is the run's own, wherever its folder is: its line's pattern is chosen by it.
    mark: u32,
    /// What it delivered, and the verdict on it, once it is over.
    delivered: Option<Delivered>,
    verdict: Option<String>,
    /// The keys of its configuration.
    settings: Settings,
    /// Why it cannot be opened.
    why: Option<String>,
}

impl Library {
    /// The runs under some folders.
    ///
    /// # Errors
    /// When one of them is not a folder.
    pub(crate) fn new(given: &[PathBuf]) -> Result<Self, String> {
        let folder = |root: &PathBuf| match root.canonicalize() {
            Ok(whole) if whole.is_dir() => Ok(whole),
            Ok(_) => Err(format!("{} is not a folder; give the folder of a run", root.display())),
            Err(error) => Err(format!("{}: {error}", root.display())),
        };
        let roots = given.iter().map(folder).collect::<Result<_, _>>()?;
        let (events, _) = broadcast::channel(256);
        let library = Self {
            roots,
            given: given.to_vec(),
            found: Mutex::default(),
            events,
            streams: Arc::default(),
        };
        library.scan();
        Ok(library)
    }

    /// What happens from now on, and for how long somebody may be told. Of more than `MOST_STREAMS` the oldest ends.
    pub(crate) fn subscribe(&self) -> (broadcast::Receiver<String>, Turn) {
        let events = self.events.subscribe();
        let own = self.streams.fetch_add(1, Ordering::Relaxed);
        // Those whose turn is over find out with the next event, which says nothing.
        let _ = self.events.send(String::new());
        (events, Turn { own, begun: self.streams.clone() })
    }

    /// Looks again and again, for as long as anybody else holds the library.
    pub(crate) fn follow(self: Arc<Self>) {
        // Whoever starts a page opens it next: what it then shows is read already.
        if let Some(first) = self.first() {
            self.open(&first);
        }
        let library = Arc::downgrade(&self);
        drop(self);
        let mut scanned = Instant::now();
        while let Some(library) = library.upgrade() {
            let behind = library.poll();
            if scanned.elapsed() >= BETWEEN_SCANS {
                if library.scan() {
                    library.tell(json!({ "kind": "runs" }));
                }
                scanned = Instant::now();
            }
            drop(library);
            if !behind {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        }
    }

    fn tell(&self, event: Value) {
        // An error means that nobody is listening.
        let _ = self.events.send(event.to_string());
    }

    /// Reads what is new in all open runs. Returns whether there is more to read at once.
    fn poll(&self) -> bool {
        let open: Vec<(String, Arc<Mutex<Run>>)> = lock(&self.found)
            .iter()
            .filter_map(|(id, found)| Some((id.clone(), found.run.clone()?)))
            .collect();
        let mut behind = false;
        for (id, run) in open {
            let mut run = lock(&run);
            if run.poll() {
                let rounds = run.history.as_ref().map_or(0, |history| history.rounds.len());
                let told = json!({ "kind": "run", "id": id, "version": run.version, "rounds": rounds,
                    "status": run.status() });
                self.tell(told);
            }
            behind |= run.behind;
        }
        behind
    }

    /// Looks for runs. Returns whether the list has changed.
    fn scan(&self) -> bool {
        let mut places = Vec::new();
        for root in &self.roots {
            let mut left = MOST_FOLDERS;
            search(root, root, DEEPEST, &mut left, &mut places);
        }
        places.sort();
        places.dedup_by(|a, b| a.folder == b.folder);
        let mut changed = false;
        let mut there = Vec::new();
        for place in places {
            let id = id(&place.folder);
            there.push(id.clone());
            let stamps = FILES.map(|name| place.stamp(name));
            let known =
                lock(&self.found).get(&id).map(|found| (found.stamps, found.listing.status));
            // A run that falls silent changes its status although its files stay the same.
            if known.is_some_and(|(before, status)| before == stamps && !status.is_live()) {
                continue;
            }
            let listing = self.list(&id, &place);
            let mut found = lock(&self.found);
            match found.get_mut(&id) {
                Some(found) => {
                    changed |= found.listing != listing;
                    (found.stamps, found.listing) = (stamps, listing);
                }
                None => {
                    let asked = Instant::now();
                    found.insert(id, Found { place, listing, stamps, run: None, asked });
                    changed = true;
                }
            }
        }
        let mut found = lock(&self.found);
        let before = found.len();
        found.retain(|id, _| there.contains(id));
        changed | (found.len() != before)
    }

    fn list(&self, id: &str, place: &Place) -> Listing {
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
        let mut listing = Listing {
            id: id.to_owned(),
            name: self.name(place),
            rule: None,
            on: None,
            seed: None,
            agents: 0,
            asked: 0,
            rounds: last.map_or(0, |line| line.round),
            status,
            brief: words::brief(None, status),
            look: Look::of(""),
            began: times::began(place),
            mark: mark(place),
            delivered: None,
            verdict: None,
            settings: Settings::new(),
            why: None,
        };
        if let Ok(Some(config)) = place.read("config.toml", MOST_CONFIG) {
            listing.settings = settings::read(&String::from_utf8_lossy(&config));
        }
        match head.header {
            Some(Ok(header)) => {
                listing.look = Look::of(&header.rule);
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
            listing.verdict = summary["verdict"].as_str().map(ToOwned::to_owned);
        }
        listing
    }

    /// The folder's name for people: its path under the folder given, with that folder's name.
    fn name(&self, place: &Place) -> String {
        let last = |path: &Path| {
            path.file_name().map_or("/".into(), |name| name.to_string_lossy().into_owned())
        };
        match place.folder.strip_prefix(&place.root) {
            Ok(inner) if inner.as_os_str().is_empty() => last(&place.root),
            Ok(inner) if self.roots.len() > 1 => {
                format!("{}/{}", last(&place.root), inner.display())
            }
            _ => place
                .folder
                .strip_prefix(&place.root)
                .map_or_else(|_| last(&place.folder), |inner| inner.display().to_string()),
        }
    }

    /// The list of runs. Settings that all have in common are sent once.
    pub(crate) fn listings(&self) -> Value {
        let found = lock(&self.found);
        let common = settings::common(found.values().map(|found| &found.listing.settings));
        let one = |found: &Found| {
            let mut listing = found.listing.clone();
            listing.settings.retain(|key, _| !common.contains_key(key));
            listing
        };
        let runs: Vec<Listing> = found.values().map(one).collect();
        drop(found);
        let (first, folders) = (self.first(), self.roots.len());
        json!({ "runs": runs, "common": common, "folders": folders, "first": first })
    }

    /// The run that is shown unless another is asked for: one that is under way, else the first by name that can be
    /// shown.
    fn first(&self) -> Option<String> {
        let found = lock(&self.found);
        let order =
            |found: &&Found| (standing_order(found.listing.status), natural(&found.listing.name));
        found.values().min_by_key(order).map(|found| found.listing.id.clone())
    }

    /// A run, read as far as it is written; it is followed from now on.
    fn open(&self, id: &str) -> Option<(Listing, Arc<Mutex<Run>>)> {
        let mut found = lock(&self.found);
        let entry = found.get_mut(id)?;
        entry.asked = Instant::now();
        let listing = entry.listing.clone();
        if let Some(run) = &entry.run {
            return Some((listing, run.clone()));
        }
        let run = Arc::new(Mutex::new(Run::new(entry.place.clone())));
        entry.run = Some(run.clone());
        forget(&mut found);
        drop(found);
        // Read at once, so that a page opens with what is there. The rest of a huge file is read in
        // turns.
        let mut reading = lock(&run);
        let since = Instant::now();
        while reading.behind && since.elapsed() < Duration::from_secs(5) {
            reading.poll();
        }
        drop(reading);
        Some((listing, run))
    }

    /// Everything about a run except its series.
    pub(crate) fn detail(&self, id: &str) -> Option<Value> {
        let (listing, run) = self.open(id)?;
        Some(self.told(&listing, &lock(&run)))
    }

    fn told(&self, listing: &Listing, run: &Run) -> Value {
        let mut told = detail(listing, run);
        told["next"] = json!(run.next(&self.typed(run.place())));
        told
    }

    /// Both at once: everything about a run, and its series for a page that has part of it.
    pub(crate) fn whole(&self, id: &str, have: Have) -> Option<Whole> {
        let (listing, run) = self.open(id)?;
        let run = lock(&run);
        let history = run.history.as_ref();
        let series = history.map(|history| series::encode(history, run.revision, have));
        Some(Whole { detail: self.told(&listing, &run), series })
    }

    /// The folder of a run as somebody who types in the same place would name it.
    fn typed(&self, place: &Place) -> PathBuf {
        let root = self.roots.iter().position(|root| *root == place.root);
        let given = root.map_or(&place.root, |root| &self.given[root]);
        match place.folder.strip_prefix(&place.root) {
            Ok(inner) if !inner.as_os_str().is_empty() => given.join(inner),
            _ => given.clone(),
        }
    }

    /// The series of a run for a page that has part of it.
    pub(crate) fn series(&self, id: &str, have: Have) -> Option<Vec<u8>> {
        let (_, run) = self.open(id)?;
        let run = lock(&run);
        let history = run.history.as_ref()?;
        Some(series::encode(history, run.revision, have))
    }

    /// The map of a run with two weights.
    pub(crate) fn map(&self, id: &str) -> Option<Option<Map>> {
        let (_, run) = self.open(id)?;
        let run = lock(&run);
        Some(
            run.history
                .as_ref()
                .zip(run.theory.problem())
                .and_then(|(history, instance)| Map::new(history, instance)),
        )
    }
}

/// Runs that are under way come first, those that cannot be shown last.
fn standing_order(status: Standing) -> u8 {
    match status {
        status if status.is_live() => 0,
        Standing::Unreadable => 2,
        _ => 1,
    }
}

/// A name as people sort it: numbers in it count as numbers and come before letters, and capitals do not count.
fn natural(name: &str) -> Vec<(u64, String)> {
    let name = name.to_lowercase();
    let mut parts = Vec::new();
    let mut rest = name.as_str();
    while let Some(first) = rest.chars().next() {
        let other = |sign: char| sign.is_ascii_digit() != first.is_ascii_digit();
        let (part, after) = rest.split_at(rest.find(other).unwrap_or(rest.len()));
        // Text, and numbers too long to be one, are compared as text.
        parts.push((part.parse().unwrap_or(u64::MAX), part.to_owned()));
        rest = after;
    }
    parts
}

/// Lets go of the runs asked for longest ago.
fn forget(found: &mut BTreeMap<String, Found>) {
    let mut asked: Vec<Instant> =
        found.values().filter(|found| found.run.is_some()).map(|found| found.asked).collect();
    asked.sort_by(|a, b| b.cmp(a));
    if let Some(limit) = asked.get(MOST_LOADED) {
        found.values_mut().filter(|found| found.asked <= *limit).for_each(|found| found.run = None);
    }
}

/// Collects the folders with rounds in them. Links are not followed.
fn search(root: &Path, folder: &Path, deep: usize, left: &mut usize, places: &mut Vec<Place>) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let rounds = std::fs::symlink_metadata(folder.join("rounds.jsonl"));
    if rounds.is_ok()
        && let Some(place) = Place::new(root, folder)
    {
        places.push(place);
    }
    if deep == 0 {
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut inner: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|entry| entry.path())
        .collect();
    inner.sort();
    for folder in inner {
        search(root, &folder, deep - 1, left, places);
    }
}

/// An id for a run that does not reveal where it is.
fn id(folder: &Path) -> String {
    format!("{:016x}", fedstay::fingerprint(folder.as_os_str().as_encoded_bytes()))
}

/// A number of a run's own: by the name of its folder, and not by where that is.
fn mark(place: &Place) -> u32 {
    let name = place.folder.file_name().unwrap_or_default();
    let whole = fedstay::fingerprint(name.as_encoded_bytes());
    // Both halves of it, in half the bits.
    (whole ^ (whole >> 32)) as u32
}

/// What is at the head of a run's rounds.
struct Head {
    /// The first line; `None` while it has no end.
    header: Option<Result<Header, String>>,
    /// The mean loss of the first round.
    first_loss: Option<f64>,
}

fn first_lines(place: &Place) -> Head {
    let refused = |why: String| Head { header: Some(Err(why)), first_loss: None };
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
            Head { header: None, first_loss: None }
        }
        Ok(first) => {
            let second = line().ok().and_then(|second| serde_json::from_slice(&second).ok());
            let first_loss = second.as_ref().and_then(|round: &RoundLine| mean_loss(round));
            Head { header: Some(header(&first)), first_loss }
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
    let read = |line: &[u8]| serde_json::from_slice::<RoundLine>(line).ok();
    let mut lines = numbered.into_iter().filter_map(|(_, line)| read(line));
    lines.find(|line| line.check().is_ok())
}
