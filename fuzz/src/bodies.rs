//! One body per door through which bytes come in. All require the same: no panic, no error of more
//! than one line, and what is accepted is whole and finite.

use fedstay::ledger::Ledger;
use fedstay::record::RoundLine;
use fedstay_cli::command::step::answer;
use fedstay_sim::data::table::{DecimalSign, Reading};
use fedstay_sim::data::{Csv, DataError, Draw, LabelColumn, Load, LoadedData, Mnist, Npz, Table};
use fedstay_sim::experiment::{Experiment, read_table};
use fedstay_sim::run::read_rounds;
use std::io::Write;
use std::path::Path;

fn one_line(said: &str) {
    assert!(!said.is_empty() && !said.contains(['\n', '\r', '\x1b']), "{said:?}");
}

/// `fedstay step`: a JSON object from standard input.
pub fn step(bytes: &[u8]) {
    match answer(bytes) {
        Err(error) => one_line(&error.to_string()),
        Ok(output) => {
            let offsets = output.shown.iter().flat_map(|shown| &shown.offset);
            let mut told = output.step.iter().chain(offsets).chain(output.deliver.iter().flatten());
            assert!(told.all(|value| value.is_finite()), "{output:?}");
            // What goes out must be accepted when it comes back.
            let state = serde_json::from_str::<serde_json::Value>(&output.state);
            assert!(state.is_ok_and(|state| state["step_size"].is_f64()));
        }
    }
}

/// An experiment's TOML file. One that is accepted is complete when written out, and means the same
/// when it is read again.
pub fn experiment(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    // A random problem may be large enough for a second of work; that is allowed, but too slow
    // here.
    if text.contains("huber") || text.contains("hinge") {
        return;
    }
    match Experiment::parse(&text, &[]) {
        Err(error) => one_line(&error.to_string()),
        Ok(experiment) => {
            let whole = experiment.to_toml().expect("it was parsed");
            let again = Experiment::parse(&whole, &[]);
            assert_eq!(again.as_ref().ok(), Some(&experiment), "{whole}");
            experiment.warnings().iter().for_each(|warning| one_line(warning));
        }
    }
}

/// `rounds.jsonl`: the lines of a run, perhaps cut off, perhaps by another program.
pub fn rounds(bytes: &[u8]) {
    with_file("rounds.jsonl", bytes, |path| match read_rounds(path) {
        Err(why) => one_line(&why),
        Ok(recorded) => {
            let mut ledger = Ledger::default();
            for line in &recorded.rounds {
                assert_eq!(line.agents.len(), line.loss.len());
                ledger.add(line);
                let text = serde_json::to_string(line).expect("it was read");
                assert!(serde_json::from_str::<RoundLine>(&text).is_ok(), "{text}");
            }
            recorded.unreadable.iter().for_each(|(_, why)| one_line(why));
        }
    });
}

/// An archive of NumPy arrays.
pub fn npz(bytes: &[u8]) {
    with_file("mine.npz", bytes, |path| data(Npz::new(path).load()));
}

/// One NumPy array, inside an archive that is whole, beside labels that are right: reading a
/// damaged archive never gets that far.
pub fn npy(bytes: &[u8]) {
    let classes: Vec<u8> = (0..4).collect();
    let labels = [&super::damage::npy_header("|u1", "(4,)")[..], &classes].concat();
    let archive = super::damage::stored(&[("x.npy", bytes), ("y.npy", &labels)]);
    with_file("mine.npz", &archive, |path| data(Npz::new(path).load()));
}

/// A table. The first byte decides how it is read.
pub fn csv(bytes: &[u8]) {
    let (how, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    with_file("mine.csv", bytes, |path| {
        let delimiter = if how & 2 == 0 { ',' } else { ';' };
        data(Csv { header: how & 1 == 0, delimiter, ..Csv::new(path) }.load());
    });
}

/// A table as it is, text or Parquet. The first byte decides how it is read.
pub fn table(bytes: &[u8]) {
    let (how, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    with_file("mine.csv", bytes, |path| {
        let mut table = Table::new(path);
        table.label = Some(LabelColumn::Index(usize::from(how & 3)));
        table.header = how & 8 == 0;
        if how & 4 != 0 {
            table.decimal = DecimalSign::Comma;
        }
        data(table.load());
        if let Ok(reading) = Reading::of(&table, Draw::default()) {
            assert!(read_table(&reading.experiment()).is_ok(), "{}", reading.experiment());
        }
    });
}

/// The file of a schedule, which says when agents are there.
pub fn trace(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match fedstay::schedule::Trace::read("times.csv", &text, 4) {
        Ok(trace) => {
            let schedule = fedstay::Schedule::Trace(trace);
            let seed = fedstay::Seed(0);
            for agent in 0..4 {
                let when = fedstay::schedule::When { round: 7, agent, agents: 4, seed };
                schedule.is_there(when);
            }
        }
        Err(error) => one_line(&error.to_string()),
    }
}

/// The four IDX files of MNIST, one after the other, each after its length in two bytes.
pub fn idx(bytes: &[u8]) {
    const NAMES: [&str; 4] = [
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    ];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rest = bytes;
    for name in NAMES {
        let Some((length, after)) = rest.split_first_chunk::<2>() else { return };
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (content, after) = after.split_at(length);
        rest = after;
        write(&folder.path().join(name), content);
    }
    data(Mnist { path: Some(folder.path().to_owned()), check: false }.load());
}

/// What must hold for data, and for a refusal of data.
fn data(read: Result<LoadedData, DataError>) {
    let mut loaded = match read {
        Err(error) => return one_line(&error.to_string()),
        Ok(loaded) => loaded,
    };
    loaded.standardise();
    let data = &loaded.data;
    assert!(loaded.train <= data.len() && data.features() > 0);
    let mut row = vec![0.0; data.features()];
    for index in 0..data.len() {
        if let Some(classes) = data.targets.classes() {
            assert!(usize::from(classes.of[index]) < classes.names.len());
        }
        data.copy_row(index, &mut row);
        assert!(row.iter().all(|value| value.is_finite()), "row {index}: {row:?}");
    }
}

fn with_file(name: &str, bytes: &[u8], read: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    write(&path, bytes);
    read(&path);
}

fn write(path: &Path, bytes: &[u8]) {
    let mut file = std::fs::File::create(path).expect("a file in a temporary folder");
    file.write_all(bytes).expect("room for a small file");
}
