//! One run's folder, read as far as it has been written.

use crate::configured::ConfiguredAgents;
use crate::follow::{FileEvent, FollowedFile};
use crate::history::{History, MOST_LISTED};
use crate::inside::{Place, Stamp};
use crate::status::standing;
use crate::theory::Theory;
use crate::times::Times;
use fedstay::record::{AsJson, GramLine, Header, RoundLine};
use fedstay_draw::words::{Files, Next, Standing, Traces, mean_loss};
use fedstay_sim::run::{SUMS, changed_among};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MOST_SUMMARY: u64 = 64 << 20;
const MOST_CONFIG: u64 = 1 << 20;
/// The files whose content is shown, and that with their hashes.
const HASHED: [&str; 5] = ["config.toml", "rounds.jsonl", "gram.jsonl", "summary.json", SUMS];
/// The longest that one reading may take, so that every run gets its turn.
const TURN: Duration = Duration::from_millis(300);

/// Something in a file that could not be used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Trouble {
    pub(crate) file: &'static str,
    /// The line, from 1; `None` for the file as a whole.
    pub(crate) line: Option<usize>,
    pub(crate) why: String,
}

/// A run that somebody watches.
#[derive(Debug)]
pub(crate) struct Run {
    place: Place,
    rounds: FollowedFile,
    gram: FollowedFile,
    pub(crate) history: Option<History>,
    pub(crate) theory: Theory,
    pub(crate) cast: ConfiguredAgents,
    pub(crate) summary: Option<Value>,
    pub(crate) config: Option<String>,
    trouble: Vec<Trouble>,
    /// Troubles of whole files, found again at every reading.
    now: Vec<Trouble>,
    pub(crate) troubles: usize,
    /// Which reading from the beginning this is; no two of a process are the same.
    pub(crate) revision: u64,
    /// Counts the readings that brought something new.
    pub(crate) version: u64,
    status: Standing,
    /// Whether the first line was read; `None` before it was.
    readable: Option<bool>,
    /// The mean loss of the first round.
    first_loss: Option<f64>,
    /// Whether there is more to read at once.
    pub(crate) behind: bool,
    /// The stamps of the configuration and of the summary, as they were read.
    stamps: [Option<Stamp>; 2],
    /// Once it is over: its files that are no longer what the run wrote, and the stamps of all when that was found.
    pub(crate) changed: Vec<&'static str>,
    hashed: Option<[Option<Stamp>; HASHED.len()]>,
}

impl Run {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            place,
            rounds: FollowedFile::new("rounds.jsonl"),
            gram: FollowedFile::new("gram.jsonl"),
            history: None,
            theory: Theory::default(),
            cast: ConfiguredAgents::default(),
            summary: None,
            config: None,
            trouble: Vec::new(),
            now: Vec::new(),
            troubles: 0,
            revision: next_revision(),
            version: 0,
            status: Standing::Waiting,
            readable: None,
            first_loss: None,
            behind: true,
            stamps: [None, None],
            changed: Vec::new(),
            hashed: None,
        }
    }

    pub(crate) fn status(&self) -> Standing {
        self.status
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The times of its files.
    pub(crate) fn times(&self, asked: u32) -> Option<Times> {
        let round = self.history.as_ref()?.rounds.last().copied().unwrap_or(0);
        Times::of(&self.place, self.status, round, asked)
    }

    /// What to do next with a run that is neither over nor under way; `path` is its folder, for a command.
    pub(crate) fn next(&self, path: &Path) -> Option<Next> {
        let checkpoint = self.place.stamp("checkpoint").is_some();
        let files = Files { checkpoint, experiment: self.cast.command };
        self.status.next(&path.to_string_lossy(), files)
    }

    /// What its files show, for how far it has come.
    fn traces(&self) -> Traces {
        let last = self.history.as_ref().and_then(|history| history.last.as_ref());
        let losses = self.first_loss.zip(last.and_then(mean_loss));
        Traces { header: self.readable, rounds: last.is_some(), losses, ..Traces::default() }
    }

    /// What could not be used; only the first of it is listed.
    pub(crate) fn trouble(&self) -> impl Iterator<Item = &Trouble> {
        self.now.iter().chain(&self.trouble)
    }

    /// Reads what is new in the files. Returns whether there was anything.
    pub(crate) fn poll(&mut self) -> bool {
        let before = (self.version, self.status, self.now.clone());
        self.now.clear();
        // The configuration says which model the losses of the rounds are of, so it comes first.
        self.read_config();
        let since = Instant::now();
        let read = self.read_rounds(since);
        let read = read.and_then(|all| Ok(all & self.read_gram(since)?));
        self.behind = match read {
            Ok(all) => !all,
            Err(error) => {
                self.whole("rounds.jsonl", error.to_string());
                false
            }
        };
        self.read_summary();
        self.compare_hashes();
        self.status = standing(&self.place, self.summary.is_some(), self.traces());
        let new = before != (self.version, self.status, self.now.clone());
        if new && before.0 == self.version {
            self.version += 1;
        }
        new
    }

    fn read_rounds(&mut self, since: Instant) -> std::io::Result<bool> {
        let place = self.place.clone();
        let mut follow = std::mem::replace(&mut self.rounds, FollowedFile::new("rounds.jsonl"));
        let read = follow.poll(&place, |event| self.round(event), || since.elapsed() > TURN);
        self.rounds = follow;
        read
    }

    fn round(&mut self, event: FileEvent) {
        self.version += 1;
        match event {
            FileEvent::Restarted => {
                self.history = None;
                (self.readable, self.first_loss) = (None, None);
                self.trouble.clear();
                self.troubles = 0;
                self.revision = next_revision();
            }
            FileEvent::TooLong(number) => {
                if number == 1 {
                    self.readable = Some(false);
                }
                self.line("rounds.jsonl", number, "it is too long".into());
            }
            FileEvent::Line(1, line) => match header(&line) {
                Ok(header) => {
                    self.readable = Some(true);
                    self.theory.take_part(&header);
                    self.history = Some({
                        let own = self.theory.decides_on_own() || header.previews;
                        History::new(header, own)
                    });
                }
                Err(why) => {
                    self.readable = Some(false);
                    self.line("rounds.jsonl", 1, why);
                }
            },
            FileEvent::Line(number, line) => {
                let Some(history) = &mut self.history else { return };
                let read = RoundLine::from_json(&line).map_err(|error| plain(&error));
                if let Ok(line) = &read
                    && line.round == 1
                {
                    self.theory.content_at_start(&line.left);
                }
                match read.and_then(|line| history.add(line)) {
                    Ok(()) => {
                        let first = history.last.as_ref().and_then(mean_loss);
                        self.first_loss = self.first_loss.or(first);
                    }
                    Err(why) => self.line("rounds.jsonl", number, why),
                }
            }
        }
    }

    fn read_gram(&mut self, since: Instant) -> std::io::Result<bool> {
        let place = self.place.clone();
        let mut follow = std::mem::replace(&mut self.gram, FollowedFile::new("gram.jsonl"));
        let read = follow.poll(&place, |event| self.gram(event), || since.elapsed() > TURN);
        self.gram = follow;
        read
    }

    fn gram(&mut self, event: FileEvent) {
        self.version += 1;
        match event {
            FileEvent::Restarted => self.theory.restart(),
            FileEvent::TooLong(number) => self.line("gram.jsonl", number, "it is too long".into()),
            FileEvent::Line(1, line) => {
                let schema = serde_json::from_slice::<Value>(&line).unwrap_or_default();
                if schema["schema"] != GramLine::SCHEMA {
                    let why = format!("it does not say {}", GramLine::SCHEMA);
                    self.line("gram.jsonl", 1, why);
                }
            }
            FileEvent::Line(number, line) => {
                let read = GramLine::from_json(&line).map_err(|error| plain(&error));
                match read.and_then(|line| line.check().map(|()| line)) {
                    Ok(line) => self.theory.add(line),
                    Err(why) => self.line("gram.jsonl", number, why),
                }
            }
        }
    }

    fn read_config(&mut self) {
        let stamp = self.place.stamp("config.toml");
        // One that cannot be read is tried again, so that it is named again.
        if stamp.is_some() && stamp == self.stamps[0] && self.config.is_some() {
            return;
        }
        self.config = match self.place.read("config.toml", MOST_CONFIG) {
            Ok(bytes) => bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => {
                self.whole("config.toml", error.to_string());
                None
            }
        };
        if stamp != self.stamps[0] {
            self.version += 1;
            self.stamps[0] = stamp;
        }
        let own = self.theory.decides_on_own();
        self.theory.configure(self.config.as_deref());
        self.cast = ConfiguredAgents::of(self.config.as_deref());
        if own != self.theory.decides_on_own() {
            // The rounds read so far were read as losses of another model.
            (self.history, self.rounds) = (None, FollowedFile::new("rounds.jsonl"));
            (self.readable, self.first_loss) = (None, None);
            self.trouble.clear();
            self.troubles = 0;
            self.revision = next_revision();
        }
    }

    fn read_summary(&mut self) {
        let stamp = self.place.stamp("summary.json");
        if stamp.is_some() && stamp == self.stamps[1] && self.summary.is_some() {
            return;
        }
        let bytes =
            self.place.read("summary.json", MOST_SUMMARY).map_err(|error| error.to_string());
        let read = bytes.and_then(|bytes| match bytes {
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
            None => Ok(None),
        });
        let there = self.summary.is_some();
        match read {
            Ok(summary) => self.summary = summary,
            Err(why) => self.whole("summary.json", why),
        }
        if self.summary.is_some() != there || stamp != self.stamps[1] {
            self.version += 1;
            self.stamps[1] = stamp;
        }
    }

    /// Finds out which files of a run that is over have changed since. Only when all of it is read, and again when one
    /// of them was written, since every byte of them is read for it.
    fn compare_hashes(&mut self) {
        let over = self.summary.is_some() && !self.behind;
        let stamps = over.then(|| HASHED.map(|name| self.place.stamp(name)));
        if self.behind || stamps == self.hashed {
            return;
        }
        let place = &self.place;
        let changed = match over {
            true => changed_among(&HASHED, |name| place.open(name).ok().flatten()),
            false => Vec::new(),
        };
        self.version += u64::from(changed != self.changed);
        (self.changed, self.hashed) = (changed, stamps);
    }

    fn line(&mut self, file: &'static str, line: usize, why: String) {
        self.troubles += 1;
        if self.trouble.len() < MOST_LISTED {
            self.trouble.push(Trouble { file, line: Some(line), why });
        }
    }

    fn whole(&mut self, file: &'static str, why: String) {
        self.now.push(Trouble { file, line: None, why });
    }
}

fn next_revision() -> u64 {
    static READINGS: AtomicU64 = AtomicU64::new(1);
    READINGS.fetch_add(1, Ordering::Relaxed)
}

/// The first line of a run's rounds.
pub(crate) fn header(line: &[u8]) -> Result<Header, String> {
    let header = Header::from_json(line)
        .map_err(|error| format!("it is not the header of a run: {}", plain(&error)))?;
    match header.schema == Header::SCHEMA {
        true => Ok(header),
        false => {
            Err(format!("its schema is {}, this version reads {}", header.schema, Header::SCHEMA))
        }
    }
}

/// What serde says, without the line, which is always the first.
fn plain(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column", ", at column")
}
