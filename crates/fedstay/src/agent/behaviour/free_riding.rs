//! `free-riding`: stay, take every model, and never work.
//!
//! What it sends is made from the models it received ([`Forgery`](crate::Forgery)), so that it does not
//! stand out: `form` is one of the four ways that were published. It never leaves, because the next
//! model costs it nothing, and reports its true loss, which it looks at anyway.
//!
//! References: Lin, Du, Liu, arXiv 1911.12560, 2019 (random, and the last change of the model). Fraboni,
//! Vidal, Lorenzi, AISTATS 2021 (noise that fades, φ(t) = σ·t^(−γ), σ from the first change).

use super::{Choice, Decide, Manner, Origin, Sends, View, check_not_negative};
use crate::Error;
use crate::agent::forgery::Forgery;
use serde::{Deserialize, Serialize};

pub(super) const ORIGIN: Origin = Origin {
    about: "never works: sends noise, or what the model last changed by, and never leaves",
    reference: "Lin, Du, Liu, arXiv 1911.12560; Fraboni, Vidal, Lorenzi, AISTATS 2021",
};

/// Takes every model and never works.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FreeRiding {
    /// What it sends.
    pub form: Form,
    /// `random`: the largest component of the direction it sends.
    pub range: f64,
    /// `scaled-delta`: what the last change of the model is multiplied by.
    pub scale: f64,
    /// `adaptive-noise`: how fast the noise fades, t^(−γ).
    pub fade: f64,
    #[serde(skip_serializing_if = "super::is_default")]
    memory: Rounds,
}

/// In how many rounds it took part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Rounds {
    idle: u32,
}

/// What a free rider sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A random direction.
    Random,
    /// What the model last changed by.
    #[default]
    LastDelta,
    /// The same times a number.
    ScaledDelta,
    /// Noise as large as the first change of the model, which fades.
    AdaptiveNoise,
}

impl Default for FreeRiding {
    fn default() -> Self {
        Self {
            form: Form::default(),
            range: 0.01,
            scale: 0.5,
            fade: 1.0,
            memory: Rounds::default(),
        }
    }
}

impl Decide for FreeRiding {
    fn decide(&mut self, _: &mut View<'_>) -> Choice {
        self.memory.idle += 1;
        Choice::Stay
    }

    fn manner(&self) -> Manner {
        let forgery = match self.form {
            Form::Random => Forgery::Random { range: self.range },
            Form::LastDelta => Forgery::Delta { scale: 1.0 },
            Form::ScaledDelta => Forgery::Delta { scale: self.scale },
            Form::AdaptiveNoise => {
                let rounds = f64::from(self.memory.idle.max(1));
                Forgery::Noise { fades: rounds.powf(-self.fade) }
            }
        };
        Manner { works: false, sends: Sends::Forged(forgery), ..Manner::default() }
    }

    fn forges(&self) -> bool {
        true
    }

    fn idle_rounds(&self) -> u32 {
        self.memory.idle
    }

    fn check(&self) -> Result<(), Error> {
        check_not_negative("behaviour.range", self.range)?;
        check_not_negative("behaviour.fade", self.fade)?;
        match self.scale.is_finite() {
            true => Ok(()),
            false => Err(Error::bad_parameter("behaviour.scale", self.scale, "a finite number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::choice;
    use super::*;
    use crate::Behaviour;

    #[test]
    fn it_never_works_never_leaves_and_its_noise_fades() {
        let noise = FreeRiding { form: Form::AdaptiveNoise, fade: 2.0, ..FreeRiding::default() };
        let mut agent = Behaviour::FreeRiding(noise);
        let fades: Vec<f64> = (0..3)
            .map(|_| {
                assert_eq!(choice(&mut agent, 0.0), Choice::Stay);
                match agent.manner() {
                    Manner {
                        works: false, sends: Sends::Forged(Forgery::Noise { fades }), ..
                    } => fades,
                    other => panic!("{other:?}"),
                }
            })
            .collect();
        assert_eq!((fades, agent.idle_rounds()), (vec![1.0, 0.25, 1.0 / 9.0], 3));
    }
}
