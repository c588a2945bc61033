//! The runs under the folders given: found, listed, and followed while somebody looks.

use crate::delivered::{Delivered, to_agents};
use crate::history::Source;
use crate::inside::Place;
use crate::landscape::{Landscape, landscape};
use crate::look::Look;
use crate::run::{Run, Status, header};
use crate::series::{self, Have};
use crate::words::{self, Brief};
use fedstay_draw::words::State;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::broadcast;

/// Folders that are looked into at most, and how deep.
const MOST_FOLDERS: usize = 20_000;
const DEEPEST: usize = 6;
/// Runs that are kept in memory at most, the last asked for.
const MOST_LOADED: usize = 16;
const BETWEEN_LOOKS: Duration = Duration::from_millis(150);
const BETWEEN_SCANS: Duration = Duration::from_millis(1000);
/// Rows of the table of agents.
const MOST_ROWS: usize = 500;

/// All runs.
pub(crate) struct Library {
    roots: Vec<PathBuf>,
    found: Mutex<BTreeMap<String, Found>>,
    events: broadcast::Sender<String>,
}

struct Found {
    place: Place,
    listing: Listing,
    stamp: Stamp,
    run: Option<Arc<Mutex<Run>>>,
    asked: Instant,
}

/// When and how long the two files were that a listing is made from.
type Stamp = [Option<(SystemTime, u64)>; 2];

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Listing {
    id: String,
    name: String,
    rule: Option<String>,
    on: Option<String>,
    seed: Option<u64>,
    agents: usize,
    /// The rounds asked for, and those done.
    asked: u32,
    rounds: u32,
    status: Status,
    /// How far it is, or what came of it.
    brief: Brief,
    look: Look,
    /// Why it cannot be opened.
    why: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Library {
    /// The runs under some folders.
    ///
    /// # Errors
    /// When one of them is no folder.
    pub(crate) fn new(roots: &[PathBuf]) -> Result<Self, String> {
        let folder = |root: &PathBuf| match root.canonicalize() {
            Ok(whole) if whole.is_dir() => Ok(whole),
            Ok(_) => Err(format!("{} is no folder; give the folder of a run", root.display())),
            Err(error) => Err(format!("{}: {error}", root.display())),
        };
        let roots = roots.iter().map(folder).collect::<Result<_, _>>()?;
        let (events, _) = broadcast::channel(256);
        let library = Self { roots, found: Mutex::default(), events };
        library.scan();
        Ok(library)
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<String> {
        self.events.subscribe()
    }

    /// Looks again and again, for as long as anybody else holds the library.
    pub(crate) fn follow(self: Arc<Self>) {
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
        // Without anybody who listens there is nobody to tell.
        let _ = self.events.send(event.to_string());
    }

    /// Looks at all runs that are open. Returns whether there is more to read at once.
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
            let stamp = ["rounds.jsonl", "summary.json"].map(|name| stamp(&place, name));
            let known = lock(&self.found).get(&id).map(|found| (found.stamp, found.listing.status));
            // A run that falls silent changes without its files doing so.
            if known.is_some_and(|(before, status)| before == stamp && status != Status::Running) {
                continue;
            }
            let listing = self.list(&id, &place);
            let mut found = lock(&self.found);
            match found.get_mut(&id) {
                Some(found) => {
                    changed |= found.listing != listing;
                    (found.stamp, found.listing) = (stamp, listing);
                }
                None => {
                    let asked = Instant::now();
                    found.insert(id, Found { place, listing, stamp, run: None, asked });
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
        let mut listing = Listing {
            id: id.to_owned(),
            name: self.name(place),
            rule: None,
            on: None,
            seed: None,
            agents: 0,
            asked: 0,
            rounds: last_round(place).unwrap_or(0),
            status: status(place),
            brief: words::brief(None, status(place)),
            look: Look::of(""),
            why: None,
        };
        match first_line(place).and_then(|line| header(&line)) {
            Ok(header) => {
                listing.look = Look::of(&header.rule);
                listing.agents = header.agents.len();
                (listing.rule, listing.on) = (Some(header.rule), Some(header.on));
                (listing.seed, listing.asked) = (Some(header.seed), header.rounds);
            }
            Err(why) => listing.why = Some(format!("rounds.jsonl, line 1: {why}")),
        }
        let summary = place.read("summary.json", 64 << 20).ok().flatten();
        let summary = summary.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        if let Some(summary) = summary {
            listing.brief = words::brief(Some(&summary), listing.status);
        }
        listing
    }

    /// The folder as it is called from outside: under the folder given, with that folder's name.
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

    /// The list.
    pub(crate) fn listings(&self) -> Value {
        let found = lock(&self.found);
        let runs: Vec<&Listing> = found.values().map(|found| &found.listing).collect();
        json!({ "runs": runs, "folders": self.roots.len() })
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
        // The first look, so that a page opens with what is there. A huge file is read on by turns.
        let mut reading = lock(&run);
        let since = Instant::now();
        while reading.behind && since.elapsed() < Duration::from_secs(5) {
            reading.poll();
        }
        drop(reading);
        Some((listing, run))
    }

    /// Everything about a run but its series.
    pub(crate) fn detail(&self, id: &str) -> Option<Value> {
        let (listing, run) = self.open(id)?;
        let run = lock(&run);
        Some(detail(&listing, &run))
    }

    /// The series of a run for a page that has some of it.
    pub(crate) fn series(&self, id: &str, have: Have) -> Option<Vec<u8>> {
        let (_, run) = self.open(id)?;
        let run = lock(&run);
        let history = run.history.as_ref()?;
        Some(series::encode(history, run.revision, have))
    }

    /// The map of a run with two weights.
    pub(crate) fn landscape(&self, id: &str) -> Option<Option<Landscape>> {
        let (_, run) = self.open(id)?;
        let run = lock(&run);
        Some(
            run.history
                .as_ref()
                .zip(run.theory.problem())
                .and_then(|(history, instance)| landscape(history, instance)),
        )
    }
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

fn detail(listing: &Listing, run: &Run) -> Value {
    let mut told = json!({
        "listing": listing,
        "version": run.version,
        "revision": run.revision,
        "status": run.status(),
        "summary": run.summary,
        "delivered": run.summary.as_ref().map(Delivered::of),
        "words": run.summary.as_ref().map(words::of_summary),
        "config": run.config,
        "trouble": run.trouble().take(50).collect::<Vec<_>>(),
        "troubles": run.troubles + run.trouble().filter(|trouble| trouble.line.is_none()).count(),
        "theory": run.theory.told(),
        "states": words::states(),
        "rounds": 0,
        "agents": [],
    });
    let Some(history) = &run.history else { return told };
    if run.summary.is_none() {
        told["words"] = json!(words::of_history(history, run.status()));
    }
    let delivered = run.summary.as_ref().map(to_agents).unwrap_or_default();
    let agents: Vec<Value> = history
        .agents
        .iter()
        .take(MOST_ROWS)
        .map(|agent| {
            let loss = agent.loss.filter(|(loss, ..)| loss.is_finite());
            json!({
                "id": agent.id, "name": agent.name, "epsilon": agent.epsilon, "loss": loss.map(|(loss, ..)| loss),
                "source": loss.map(|(_, source, _): (f64, Source, u32)| source), "state": agent.state as u8,
                "entered": agent.entered, "waited": agent.waited, "left": agent.left,
                "reported": agent.reported, "moved": agent.moved, "faults": agent.faults,
                "fault": agent.fault, "returned": agent.returned, "flags": agent.flags,
                "predicted": agent.predicted(), "pace": agent.pace(),
                "delivered": delivered.get(&agent.id.0),
            })
        })
        .collect();
    let count = |wanted: State| history.agents.iter().filter(|agent| agent.state == wanted).count();
    told["agents"] = json!(agents);
    told["agents_all"] = json!(history.agents.len());
    told["counts"] = json!({
        "left": count(State::Left), "in_d": count(State::InD), "fault": count(State::Fault),
        "absent": count(State::Absent), "free": count(State::Free),
    });
    told["left"] = json!(history.left);
    told["rounds"] = json!(history.rounds.len());
    told["round"] = json!(history.rounds.last());
    told["cut"] = json!(history.cut);
    told["own"] = json!(history.own);
    told["sketch"] = json!(history.header.sketch);
    told["map"] = json!(
        run.theory.problem().is_some_and(|instance| instance.dimension() == 2)
            && !history.path.is_empty()
    );
    let last = history.last.as_ref();
    let landed = last.and_then(|line| line.landed);
    told["landing"] = json!(words::landing(run.summary.as_ref(), landed));
    told["last"] = json!({
        "case": last.and_then(|line| line.case),
        "kept": last.and_then(|line| line.kept), "misses": history.misses,
        "stop": last.and_then(|line| line.stop), "rank": last.and_then(|line| line.rank),
        "step_size": last.map(|line| line.step_size), "step_norm": last.map(|line| line.step_norm),
    });
    told
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

/// A name for a run that says nothing about where it is.
fn id(folder: &Path) -> String {
    format!("{:016x}", fedstay::fingerprint(folder.as_os_str().as_encoded_bytes()))
}

fn stamp(place: &Place, name: &str) -> Option<(SystemTime, u64)> {
    let there = std::fs::symlink_metadata(place.folder.join(name)).ok()?;
    Some((there.modified().ok()?, there.len()))
}

fn status(place: &Place) -> Status {
    if stamp(place, "summary.json").is_some() {
        return Status::Finished;
    }
    let quiet = stamp(place, "rounds.jsonl")
        .and_then(|(written, _)| SystemTime::now().duration_since(written).ok());
    match quiet {
        Some(quiet) if quiet > Duration::from_secs(30) => Status::Silent,
        _ => Status::Running,
    }
}

fn first_line(place: &Place) -> Result<Vec<u8>, String> {
    let file = place.open("rounds.jsonl").map_err(|error| error.to_string())?;
    let file = file.ok_or("the file is gone")?;
    let mut line = Vec::new();
    let mut bytes = std::io::BufReader::new(file.take(16 << 20));
    std::io::BufRead::read_until(&mut bytes, b'\n', &mut line)
        .map_err(|error| error.to_string())?;
    Ok(line)
}

/// The number of the last round, from the end of the file.
fn last_round(place: &Place) -> Option<u32> {
    let mut file = place.open("rounds.jsonl").ok()??;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(1 << 18))).ok()?;
    let mut end = Vec::new();
    file.take(1 << 18).read_to_end(&mut end).ok()?;
    let whole = &end[..=end.iter().rposition(|byte| *byte == b'\n')?];
    let mut lines = whole.split(|byte| *byte == b'\n').rev();
    lines.find_map(|line| {
        let digits = line.strip_prefix(br#"{"round":"#)?;
        let digits: Vec<u8> = digits.iter().copied().take_while(u8::is_ascii_digit).collect();
        String::from_utf8(digits).ok()?.parse().ok()
    })
}
