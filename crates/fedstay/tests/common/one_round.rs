//! A server that takes made-up reports: losses and gradients as numbers.
#![allow(dead_code)]

use fedstay::{AgentId, Loss, Report, Reports, Rule, Server, Vector};

pub(crate) const ETA: f64 = 0.3;
pub(crate) const EPSILON: f64 = 0.5;

pub(crate) type Gradients = Vec<Vec<f64>>;

pub(crate) fn reports<'a>(losses: &[f64], gradients: &'a [Vec<f64>]) -> Reports<'a> {
    let report = |(id, (loss, g)): (usize, (&f64, &'a Vec<f64>))| {
        Report::new(AgentId(id as u64), Loss::Exact(*loss).leaves_at(EPSILON), Vector::F64(g))
    };
    let reports = losses.iter().zip(gradients).enumerate().map(report).collect();
    Reports::new(gradients[0].len(), reports).unwrap()
}

pub(crate) fn server(rule: impl Into<Rule>, dimension: usize) -> Server {
    Server::new(vec![0.0; dimension], rule, ETA).unwrap()
}

pub(crate) fn step(rule: impl Into<Rule>, losses: &[f64], gradients: &[Vec<f64>]) -> Vec<f64> {
    let mut server = server(rule, gradients[0].len());
    server.step(&reports(losses, gradients)).unwrap();
    server.displacement().to_vec()
}
