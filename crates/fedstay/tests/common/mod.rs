//! One run on a named problem, summed up.
#![allow(unreachable_pub)]

use fedstay::diagnose::Diagnosis;
use fedstay::problem::{Federation, Instance};
use fedstay::record::Summary;
use fedstay::verdict::{About, Ledger};
use fedstay::{Behaviour, Error, Observer, Policy, RoundView, Rule, Server, run};

/// Counts the rounds by case, adds up the lengths of the steps, and looks at the angles.
#[derive(Default)]
pub struct Moves {
    pub case_1: u32,
    pub moved: f64,
    pub last: Diagnosis,
}

impl Observer for Moves {
    fn round(&mut self, view: &RoundView<'_>) -> Result<(), Error> {
        let length = view.step.iter().map(|s| s * s).sum::<f64>().sqrt();
        self.moved += length;
        if view.decision.stop.is_some() {
            self.last.round(view)?;
        }
        self.case_1 += u32::from(view.decision.case == Some(1) && length > 0.0);
        Ok(())
    }
}

#[derive(Clone)]
pub struct Setting {
    pub rule: Rule,
    pub policy: Policy,
    pub behaviour: Behaviour,
    pub step_size: f64,
    pub epsilon: f64,
    pub rounds: u32,
}

pub fn play(instance: &Instance, setting: Setting) -> (Summary, Moves) {
    let epsilon = vec![setting.epsilon; instance.oracles.len()];
    let mut federation = Federation::new(instance, &epsilon, &setting.behaviour).unwrap();
    let mut server = Server::new(instance.start.clone(), setting.rule.clone(), setting.step_size)
        .unwrap()
        .with_policy(setting.policy)
        .unwrap();
    let (mut ledger, mut moves) = (Ledger::default(), Moves::default());
    let stop =
        run(&mut server, &mut federation, setting.rounds, &mut [&mut ledger, &mut moves]).unwrap();
    let about = About {
        rule: setting.rule.name().into(),
        policy: String::new(),
        behaviour: setting.behaviour.name().into(),
        on: String::new(),
        seed: 0,
        notes: vec![],
    };
    (ledger.summary(&server, &mut federation, stop, about).unwrap(), moves)
}
