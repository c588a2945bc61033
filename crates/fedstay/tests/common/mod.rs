//! One run on a named problem, summed up.
#![allow(unreachable_pub)]

use fedstay::diagnose::Diagnosis;
use fedstay::problem::{Federation, Instance};
use fedstay::record::Summary;
use fedstay::{About, Behaviour, Book, Error, Policies, RoundRecord, Rule, Server, Session};
use std::ops::ControlFlow;

/// Counts the rounds by case, adds up the lengths of the steps, and looks at the angles.
#[derive(Default)]
pub struct Moves {
    pub case_1: u32,
    pub moved: f64,
    /// Rounds that led back to the best weights so far.
    pub reverted: u32,
    pub last: Diagnosis,
}

impl Book for Moves {
    fn round(&mut self, record: &RoundRecord<'_>) -> Result<ControlFlow<()>, Error> {
        let length = record.line.step_norm;
        self.moved += length;
        self.reverted += u32::from(record.line.reverted);
        self.case_1 += u32::from(record.line.case == Some(1) && length > 0.0);
        match record.line.stop {
            Some(_) => self.last.round(record),
            None => Ok(ControlFlow::Continue(())),
        }
    }
}

#[derive(Clone)]
pub struct Setting {
    pub rule: Rule,
    pub policy: Policies,
    pub behaviour: Behaviour,
    pub step_size: f64,
    pub epsilon: f64,
    pub rounds: u32,
}

pub fn play(instance: &Instance, setting: Setting) -> (Summary, Moves) {
    let epsilon = vec![setting.epsilon; instance.oracles.len()];
    let federation = Federation::new(instance, &epsilon, &setting.behaviour).unwrap();
    let server = Server::new(instance.start.clone(), setting.rule.clone(), setting.step_size)
        .unwrap()
        .with_policy(setting.policy)
        .unwrap();
    let about = About { behaviour: setting.behaviour.name().into(), ..About::default() };
    let mut session = Session::new(server, federation, setting.rounds, about).unwrap();
    let mut moves = Moves::default();
    (session.run(&mut [&mut moves]).unwrap().unwrap(), moves)
}
