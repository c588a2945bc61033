//! Job J for `bench/job_j.py`: one round of ten agents on real CIFAR-10, on one thread.
//!
//! ```sh
//! job_j FOLDER
//! ```
//! Writes what the round starts from to FOLDER as raw little-endian numbers: `rows.u8`,
//! `labels.u16`, `scale.f32`, `shift.f32`, `batches.u32` and `start.f32`. Then, for every line on
//! standard input that names a kernel (`portable`, `avx2`, `avx512`, `vnni`), it plays the round
//! with it and answers with one line of JSON: the ten losses and the CPU milliseconds of the parts,
//! a = full local losses, b = five local steps of 64 images, c = the server's step. The server's
//! new weights go to `KERNEL.f32`. An empty line ends the program.

use std::fs::write;
use std::io::Write;
use std::path::Path;

use fedstay::numerics::Isa;
use fedstay::{AgentId, Loss, Report, Reports, Seed, Server, Standing, Vector};
use fedstay_bench::{Outcome, cpu_seconds, figure_two};
use fedstay_sim::data::Inputs;
use fedstay_sim::experiment::{Experiment, Training};
use fedstay_sim::model::{Network, Rows, RowsData, Workspace};
use fedstay_sim::simulator::Simulator;
use fedstay_sim::simulator::population::Population;

const EPSILON: f64 = 0.2;

/// What a round starts from.
struct Job<'a> {
    experiment: &'a Experiment,
    training: &'a Training,
    network: &'a Network,
    start: Vec<f64>,
    agents: Vec<Rows<'a>>,
    /// The rows of every agent's batches, one batch after the other.
    drawn: Vec<Vec<u32>>,
}

impl<'a> Job<'a> {
    fn new(experiment: &'a Experiment, simulator: &'a Simulator) -> Outcome<Self> {
        let training = experiment.training().ok_or("no training")?;
        let population = simulator.population();
        let agents = 0..population.agents();
        let rows = agents.clone().map(|agent| rows(population, agent)).collect::<Outcome<_>>()?;
        let mut drawn = vec![Vec::new(); agents.len()];
        for (agent, drawn) in drawn.iter_mut().enumerate() {
            let seed = Seed(experiment.seed);
            training.local.draw(population.per_agent(), seed, 1, agent as u64, drawn);
        }
        let start = simulator.initial_weights();
        Ok(Self { experiment, training, network: simulator.network(), start, agents: rows, drawn })
    }

    fn export(&self, population: &Population, folder: &Path) -> Outcome<()> {
        let Inputs::Bytes { rows, scale, shift } = &population.data().inputs else {
            return Err("not bytes".into());
        };
        let samples = population.agents() * population.per_agent();
        write(folder.join("rows.u8"), &rows[..samples * scale.len()])?;
        let classes = population.data().targets.classes().expect("images have classes");
        let labels = classes.of[..samples].iter();
        write(folder.join("labels.u16"), labels.flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())?;
        let drawn = self.drawn.iter().flatten();
        write(folder.join("batches.u32"), drawn.flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())?;
        write(folder.join("scale.f32"), floats(scale.iter().copied()))?;
        write(folder.join("shift.f32"), floats(shift.iter().copied()))?;
        write(folder.join("start.f32"), floats(self.start.iter().map(|w| *w as f32)))?;
        Ok(())
    }

    /// Plays the round; returns the losses, the new weights and the milliseconds of the parts.
    fn round(&self, work: &mut Workspace) -> Outcome<(Vec<f64>, Vec<f64>, [f64; 3])> {
        let (local, eta) = (&self.training.local, self.experiment.step_size);
        let mut server = Server::new(self.start.clone(), self.experiment.rule.clone(), eta)?;
        let mut directions = vec![vec![0.0; self.start.len()]; self.agents.len()];

        let clock = cpu_seconds();
        let weights = self.network.load(server.weights())?;
        let evaluate = |rows| Ok(self.network.evaluate(&weights, rows, None, work)?.loss);
        let losses: Vec<f64> = self.agents.iter().map(evaluate).collect::<Outcome<_>>()?;
        let a = milliseconds(clock);

        let clock = cpu_seconds();
        for ((rows, drawn), direction) in self.agents.iter().zip(&self.drawn).zip(&mut directions) {
            let batches = local.batches(drawn, rows.len());
            let walk = local.walk(eta, rows.len(), false);
            self.network.local_steps(&weights, rows, &batches, walk, direction, work)?;
        }
        let b = milliseconds(clock);

        let clock = cpu_seconds();
        let reports = (0..self.agents.len()).map(|agent| Report {
            agent: AgentId(agent as u64),
            standing: Standing::Open { loss: Loss::Exact(losses[agent]), epsilon: EPSILON },
            direction: Vector::F32(&directions[agent]),
            gradient: None,
            reach: Some(local.reach(eta, self.agents[agent].len())),
            samples: self.agents[agent].len() as u64,
            length: None,
            rates: None,
        });
        let reports = reports.collect();
        server.step(&Reports::new(self.start.len(), reports)?)?;
        let c = milliseconds(clock);
        Ok((losses, server.weights().to_vec(), [a, b, c]))
    }
}

fn rows(population: &Population, agent: usize) -> Outcome<Rows<'_>> {
    let data = population.data();
    let range = population.place(agent).ok_or("drawn, not dealt out")?;
    let span = range.start * data.features()..range.end * data.features();
    let Inputs::Bytes { rows, scale, shift } = &data.inputs else {
        return Err("not bytes".into());
    };
    Ok(Rows::new(RowsData::Bytes { rows: &rows[span], scale, shift }, data.targets.rows(range))?)
}

fn floats(values: impl Iterator<Item = f32>) -> Vec<u8> {
    values.flat_map(|value| value.to_le_bytes()).collect()
}

fn milliseconds(since: f64) -> f64 {
    (cpu_seconds() - since) * 1e3
}

fn main() -> Outcome<()> {
    let folder = std::env::args().nth(1).ok_or("usage: job_j FOLDER")?;
    let folder = Path::new(&folder);
    let experiment = figure_two(&[])?;
    let simulator = Simulator::new(&experiment)?;
    let job = Job::new(&experiment, &simulator)?;
    job.export(simulator.population(), folder)?;
    let available = Isa::available();
    let names: Vec<_> = available.iter().map(|isa| isa.name()).collect();
    println!("{{\"kernels\": {names:?}}}");

    let mut spaces: Vec<_> = available.into_iter().map(Workspace::with_isa).collect();
    for line in std::io::stdin().lines() {
        let line = line?;
        let Some(place) = names.iter().position(|name| *name == line) else { break };
        let (losses, weights, [a, b, c]) = job.round(&mut spaces[place])?;
        write(folder.join(format!("{line}.f32")), floats(weights.iter().map(|w| *w as f32)))?;
        println!("{{\"losses\": {losses:?}, \"a\": {a}, \"b\": {b}, \"c\": {c}}}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
