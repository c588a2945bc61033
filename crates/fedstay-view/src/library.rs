//! The runs under the folders given: found, listed, and followed while somebody looks.

use crate::detail::detail;
use crate::inside::{Place, Stamp};
use crate::listing::{self, Listing};
use crate::map::LossMap;
use crate::run::Run;
use crate::series::{self, SentBefore};
use crate::settings;
use crate::whole::WholeRun;
use fedstay_draw::words::Standing;
use fedstay_sim::lock;
use serde_json::{Value, json};
use std::collections::BTreeMap;
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
const BETWEEN_LOOKS: Duration = Duration::from_millis(150);
const BETWEEN_SCANS: Duration = Duration::from_millis(1000);

/// All runs under the folders given.
pub(crate) struct Library {
    roots: Vec<PathBuf>,
    /// The same folders as they were given.
    given: Vec<PathBuf>,
    found: Mutex<BTreeMap<String, KnownRun>>,
    events: broadcast::Sender<String>,
    /// How many streams of events have begun.
    streams: Arc<AtomicUsize>,
}

/// The turn of a stream of events.
pub(crate) struct StreamTurn {
    own: usize,
    begun: Arc<AtomicUsize>,
}

impl StreamTurn {
    /// Whether not too many others have begun since.
    pub(crate) fn lasts(&self) -> bool {
        self.begun.load(Ordering::Relaxed).wrapping_sub(self.own) <= MOST_STREAMS
    }
}

struct KnownRun {
    place: Place,
    listing: Listing,
    /// The stamps of the files that a listing is made from.
    stamps: [Option<Stamp>; listing::FILES.len()],
    run: Option<Arc<Mutex<Run>>>,
    asked: Instant,
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
    pub(crate) fn subscribe(&self) -> (broadcast::Receiver<String>, StreamTurn) {
        let events = self.events.subscribe();
        let own = self.streams.fetch_add(1, Ordering::Relaxed);
        // Those whose turn is over find out with the next event, which says nothing.
        let _ = self.events.send(String::new());
        (events, StreamTurn { own, begun: self.streams.clone() })
    }

    /// Looks again and again, for as long as anybody else holds the library.
    pub(crate) fn follow(self: Arc<Self>) {
        // A page that is started is opened next: what it then shows is read already.
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
            let stamps = listing::FILES.map(|name| place.stamp(name));
            let known =
                lock(&self.found).get(&id).map(|found| (found.stamps, found.listing.status));
            // A run that falls silent changes its status although its files stay the same.
            if known.is_some_and(|(before, status)| before == stamps && !status.is_live()) {
                continue;
            }
            let listing = Listing::of(&id, self.name(&place), &place);
            let mut found = lock(&self.found);
            match found.get_mut(&id) {
                Some(found) => {
                    changed |= found.listing != listing;
                    (found.stamps, found.listing) = (stamps, listing);
                }
                None => {
                    let asked = Instant::now();
                    found.insert(id, KnownRun { place, listing, stamps, run: None, asked });
                    changed = true;
                }
            }
        }
        let mut found = lock(&self.found);
        let before = found.len();
        found.retain(|id, _| there.contains(id));
        changed | (found.len() != before)
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
        let one = |found: &KnownRun| {
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
        let order = |found: &&KnownRun| {
            (standing_order(found.listing.status), natural(&found.listing.name))
        };
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

    fn told(&self, listing: &Listing, run: &Run) -> Value {
        let mut told = detail(listing, run);
        told["next"] = json!(run.next(&self.typed(run.place())));
        told
    }

    /// Both at once: everything about a run, and its series for a page that has part of it.
    pub(crate) fn whole(&self, id: &str, have: SentBefore) -> Option<WholeRun> {
        let (listing, run) = self.open(id)?;
        let run = lock(&run);
        let history = run.history.as_ref();
        let series = history.map(|history| series::encode(history, run.revision, have));
        Some(WholeRun { detail: self.told(&listing, &run), series })
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
    pub(crate) fn series(&self, id: &str, have: SentBefore) -> Option<Vec<u8>> {
        let (_, run) = self.open(id)?;
        let run = lock(&run);
        let history = run.history.as_ref()?;
        Some(series::encode(history, run.revision, have))
    }

    /// The map of a run with two weights.
    pub(crate) fn map(&self, id: &str) -> Option<Option<LossMap>> {
        let (_, run) = self.open(id)?;
        let run = lock(&run);
        Some(
            run.history
                .as_ref()
                .zip(run.theory.problem())
                .and_then(|(history, instance)| LossMap::new(history, instance)),
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
fn forget(found: &mut BTreeMap<String, KnownRun>) {
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
