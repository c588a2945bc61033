//! How the simulator's cost grows with the number of agents, for `bench/scaling.py`.
//!
//! ```sh
//! scaling AGENTS ROUNDS
//! ```
//! Writes the digits, repeated until every agent has 200 of them, to a temporary file and lets
//! AGENTS agents train a softmax regression on them, one local step on their full data per round,
//! under averaging at ε = 0.2. Prints one line of JSON: the seconds of every round but the first,
//! which also measures accuracies, and the peak memory of the process.

use std::io::{Seek, Write};
use std::time::Instant;

use fedstay::{About, Book, Error, RoundRecord, Server, Session};
use fedstay_bench::{Outcome, peak_megabytes};
use fedstay_sim::data::{Row, Source};
use fedstay_sim::experiment::Experiment;
use fedstay_sim::simulator::Simulator;
use std::ops::ControlFlow;

const PER_AGENT: usize = 200;

/// When each round was over.
struct Laps(Vec<Instant>);

impl Book for Laps {
    fn round(&mut self, _: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        self.0.push(Instant::now());
        Ok(ControlFlow::Continue(()))
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [agents, rounds] = arguments.as_slice() else {
        return Err("usage: scaling AGENTS ROUNDS".into());
    };
    let (agents, rounds): (usize, u32) = (agents.parse()?, rounds.parse()?);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("digits.npz");
    repeat_digits(&path, agents * PER_AGENT)?;
    let before = peak_megabytes()?;

    let text = format!(
        "agents = {agents}\nstep_size = 0.1\nepsilon = 0.2\neval_every = 1000000\n\
         data = {{ kind = \"npz\", path = {path:?}, per_agent = {PER_AGENT}, test_share = 0.0 }}\n\
         partition.kind = \"iid\"\nmodel.kind = \"softmax-regression\"\nrule.kind = \"fedavg\"\n"
    );
    let experiment = Experiment::parse(&text, &[])?;
    let simulator = Simulator::new(&experiment)?;
    let start = simulator.initial_weights();
    let server = Server::new(start, experiment.rule.clone(), experiment.step_size)?;
    let loaded = peak_megabytes()?;

    let mut laps = Laps(Vec::new());
    let mut session = Session::new(server, simulator, rounds, About::default())?;
    session.run(&mut [&mut laps])?;
    let seconds: Vec<f64> = laps.0.windows(2).map(|lap| (lap[1] - lap[0]).as_secs_f64()).collect();
    let peak = peak_megabytes()?;
    println!(
        "{{\"agents\": {agents}, \"seconds\": {seconds:?}, \"written\": {before}, \"loaded\": {loaded}, \"peak\": {peak}}}"
    );
    Ok(())
}

/// Writes the digits, repeated, as `numpy.savez` would: an archive of two arrays.
fn repeat_digits(path: &std::path::Path, count: usize) -> Outcome<()> {
    let digits = Source::default().load()?.data;
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path)?);
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    archive.start_file("x.npy", stored)?;
    archive.write_all(&header("|u1", &format!("({count}, {})", digits.features())))?;
    for row in 0..count {
        let Row::Bytes(bytes) = digits.row(row % digits.len()) else {
            return Err("digits are bytes".into());
        };
        archive.write_all(bytes)?;
    }
    archive.start_file("y.npy", stored)?;
    archive.write_all(&header("|u1", &format!("({count},)")))?;
    let classes = digits.targets.classes().ok_or("digits have classes")?;
    for row in 0..count {
        archive.write_all(&[classes.of[row % digits.len()] as u8])?;
    }
    archive.finish()?.rewind()?;
    Ok(())
}

/// The header of an array file, padded to a multiple of 64 bytes.
fn header(kind: &str, shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let len = (text.len() + 1).next_multiple_of(64) - 10 + 64;
    let mut head = b"\x93NUMPY\x01\x00".to_vec();
    head.extend((len as u16).to_le_bytes());
    head.extend(format!("{text:<width$}\n", width = len - 1).bytes());
    head
}
