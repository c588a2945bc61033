//! Whose rows are evaluated.

use fedstay::Seed;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whose rows are evaluated in the rounds that measure, and at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EvalAgents {
    /// Everybody's.
    #[default]
    All,
    /// Nobody's: only the rows that stand for the population are.
    None,
    /// Those of this number of agents, drawn once for the whole run.
    Some(usize),
}

impl Serialize for EvalAgents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::None => serializer.serialize_str("none"),
            Self::Some(agents) => serializer.serialize_u64(*agents as u64),
        }
    }
}

impl<'de> Deserialize<'de> for EvalAgents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum CountOrWord {
            Agents(usize),
            Word(String),
        }
        match CountOrWord::deserialize(deserializer)? {
            CountOrWord::Agents(agents) if agents > 0 => Ok(Self::Some(agents)),
            CountOrWord::Word(word) if word == "all" => Ok(Self::All),
            CountOrWord::Word(word) if word == "none" => Ok(Self::None),
            _ => Err(D::Error::custom("eval_agents must be `all`, `none`, or a number of agents")),
        }
    }
}

impl EvalAgents {
    /// The agents that are measured, in order; `None` for all.
    pub(crate) fn sample(self, agents: usize, seed: Seed) -> Option<Vec<usize>> {
        match self {
            Self::All => None,
            Self::None => Some(Vec::new()),
            Self::Some(some) if some >= agents => None,
            Self::Some(some) => {
                let mut rng = seed.stream("evaluation", 0, 0);
                let mut sample = rand::seq::index::sample(&mut rng, agents, some).into_vec();
                sample.sort_unstable();
                Some(sample)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_drawn_once_by_the_seed_and_more_than_all_is_all() {
        let sample = |of: EvalAgents, seed| of.sample(1_000_000, Seed(seed));
        assert_eq!(sample(EvalAgents::All, 1), None);
        assert_eq!(sample(EvalAgents::None, 1), Some(vec![]));
        assert_eq!(sample(EvalAgents::Some(1_000_000), 1), None);
        let some = sample(EvalAgents::Some(50), 1).unwrap();
        assert!(some.len() == 50 && some.windows(2).all(|pair| pair[0] < pair[1]), "{some:?}");
        assert_eq!(sample(EvalAgents::Some(50), 1).unwrap(), some);
        assert_ne!(sample(EvalAgents::Some(50), 2).unwrap(), some);
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for (of, text) in [
            (EvalAgents::All, "\"all\""),
            (EvalAgents::None, "\"none\""),
            (EvalAgents::Some(20), "20"),
        ] {
            assert_eq!(serde_json::to_string(&of).unwrap(), text);
            assert_eq!(serde_json::from_str::<EvalAgents>(text).unwrap(), of);
        }
        for bad in ["0", "-1", "\"some\"", "true", "1.5"] {
            assert!(serde_json::from_str::<EvalAgents>(bad).is_err(), "{bad}");
        }
    }
}
