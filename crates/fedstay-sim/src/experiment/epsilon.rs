//! The target loss at which an agent is content, as a file says it.

use super::SpecError;
use crate::text::quoted;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a table of target losses calls everybody whom it does not name.
pub(super) const OTHERS: &str = "*";
/// How many names an error tells.
const MOST_NAMES: usize = 10;
/// How much of a name an error tells.
const LONGEST_NAME: usize = 40;

/// One number for all, one per agent, by id or by name, or a multiple of a loss that is found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "epsilon must be a number, a list of numbers, a table of numbers by name, or a multiple of \
                 `local`, `alone` or `pooled`, as in \"1.1 * local\""
)]
pub enum Epsilon {
    /// The same for every agent.
    One(f64),
    /// One per agent, by id.
    Each(Vec<f64>),
    /// One per agent, by its name; `*` stands for everybody who is not named.
    Named(BTreeMap<String, f64>),
    /// A multiple of a loss that is found out: `"1.1 * local"`.
    Relative(Relative),
}

/// A multiple of a loss that is found out, written `"1.1 * local"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Relative {
    /// How many times the loss.
    pub factor: f64,
    /// Which loss.
    pub to: Yardstick,
}

/// A loss that target losses are measured by: on the rows that an agent decides by, of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Yardstick {
    /// What the agent makes alone, by the same local work in as many rounds.
    Local,
    /// The best model of the agent's own rows: what it has without a federation.
    Alone,
    /// The best model of all agents' rows together.
    Pooled,
}

impl Yardstick {
    /// Every one.
    pub(super) const ALL: [Self; 3] = [Self::Local, Self::Alone, Self::Pooled];

    /// Its name in a file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Alone => "alone",
            Self::Pooled => "pooled",
        }
    }
}

impl TryFrom<String> for Relative {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = |to: Yardstick| {
            let factor = text.trim().strip_suffix(to.name())?.trim_end().strip_suffix('*')?;
            let factor = factor.trim().parse().ok();
            let factor = factor.filter(|factor: &f64| factor.is_finite() && *factor > 0.0)?;
            Some(Self { factor, to })
        };
        Yardstick::ALL.into_iter().find_map(read).ok_or_else(|| {
            let text = quoted(&text, LONGEST_NAME);
            format!(
                "`{text}` is not a relative target loss; write it as \"1.1 * local\", \"1.0 * alone\" or \
                 \"1.05 * pooled\""
            )
        })
    }
}

impl From<Relative> for String {
    fn from(relative: Relative) -> Self {
        format!("{} * {}", relative.factor, relative.to.name())
    }
}

/// What target losses may refer to: who takes part, and what models make of the rows.
pub trait Members {
    /// How many agents there are.
    fn count(&self) -> usize;

    /// What an agent is called, if it has a name.
    fn name(&self, agent: usize) -> Option<&str>;

    /// Every agent's loss by a yardstick.
    ///
    /// # Errors
    /// Where there are no data, or training leaves the floating-point range.
    fn losses(&self, by: Yardstick) -> Result<Vec<f64>, SpecError>;
}

impl Epsilon {
    /// One target loss per agent.
    ///
    /// # Errors
    /// When a list has the wrong length, a name is missing or nobody's, or a number is not finite.
    pub fn each(&self, members: &dyn Members) -> Result<Vec<f64>, SpecError> {
        let agents = members.count();
        let each = match self {
            Self::One(epsilon) => vec![*epsilon; agents],
            Self::Each(list) => list.clone(),
            Self::Named(table) => by_name(table, members)?,
            Self::Relative(Relative { factor, to }) => {
                members.losses(*to)?.into_iter().map(|loss| factor * loss).collect()
            }
        };
        if each.len() != agents {
            return Err(SpecError::Epsilons { got: each.len(), agents });
        }
        match each.iter().find(|epsilon| !epsilon.is_finite()) {
            Some(epsilon) => Err(SpecError::EpsilonNotFinite { epsilon: *epsilon }),
            None => Ok(each),
        }
    }
}

/// One target loss per agent, by its name.
fn by_name(table: &BTreeMap<String, f64>, members: &dyn Members) -> Result<Vec<f64>, SpecError> {
    let names: Vec<Option<&str>> = (0..members.count()).map(|agent| members.name(agent)).collect();
    let wrong = |why: String| Err(SpecError::EpsilonNames { why });
    if names.iter().all(Option::is_none) {
        return wrong(
            "names agents, but here they have numbers only: give a list of numbers, or say who holds \
             a row (data.owner)"
                .to_owned(),
        );
    }
    let unknown = table.keys().filter(|name| *name != OTHERS && !names.contains(&Some(name)));
    let unknown: Vec<&str> = unknown.map(String::as_str).collect();
    let others = table.get(OTHERS);
    let own = |name: &Option<&str>| name.and_then(|name| table.get(name));
    let missing = names.iter().filter(|name| own(name).or(others).is_none());
    let missing: Vec<&str> = missing.map(|name| name.unwrap_or("?")).collect();
    let missing_told = || format!("says nothing of {}", listed(&missing));
    match (unknown.as_slice(), missing.as_slice()) {
        ([], []) => {
            let each = names.iter().map(|name| own(name).or(others).copied().unwrap_or(f64::NAN));
            Ok(each.collect())
        }
        ([], _) => {
            wrong(format!("{}: name them, or add \"{OTHERS}\" for the rest", missing_told()))
        }
        (_, []) => {
            let known: Vec<&str> = names.iter().flatten().copied().collect();
            let (unknown, known) = (listed(&unknown), listed(&known));
            wrong(format!("names {unknown}, whom nobody is called; there are {known}"))
        }
        _ => {
            let unknown = listed(&unknown);
            wrong(format!("names {unknown}, whom nobody is called, and {}", missing_told()))
        }
    }
}

/// Names in a sentence, not more than one would read.
fn listed(names: &[&str]) -> String {
    let shown =
        names.iter().take(MOST_NAMES).map(|name| format!("`{}`", quoted(name, LONGEST_NAME)));
    let mut told = shown.collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(MOST_NAMES).filter(|more| *more > 0) {
        told.push_str(&format!(" and {more} more"));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who takes part in a test; every model has the loss that its yardstick's name is long.
    struct Three(bool);

    impl Members for Three {
        fn count(&self) -> usize {
            3
        }

        fn name(&self, agent: usize) -> Option<&str> {
            self.0.then_some(["Oslo", "St Mary", "a.b"][agent])
        }

        fn losses(&self, by: Yardstick) -> Result<Vec<f64>, SpecError> {
            Ok(vec![by.name().len() as f64; 3])
        }
    }

    fn epsilon(value: &str) -> Result<Epsilon, SpecError> {
        let set = [("epsilon".to_owned(), value.to_owned())];
        super::super::Experiment::parse("", &set).map(|experiment| experiment.epsilon)
    }

    fn each(value: &str) -> Result<Vec<f64>, String> {
        let epsilon = epsilon(value).map_err(|error| error.to_string())?;
        epsilon.each(&Three(true)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_target_loss_can_be_said_in_every_way() {
        assert_eq!(each("0.3"), Ok(vec![0.3; 3]));
        assert_eq!(each("[1, 2, 3]"), Ok(vec![1.0, 2.0, 3.0]));
        assert_eq!(each("{'St Mary' = 0.3, Oslo = 0.2, 'a.b' = 1}"), Ok(vec![0.2, 0.3, 1.0]));
        assert_eq!(each("{'St Mary' = 0.3, '*' = 0.4}"), Ok(vec![0.4, 0.3, 0.4]));
        for (text, loss) in [("2 * local", 10.0), ("1.0 * alone", 5.0), ("0.5*pooled", 3.0)] {
            assert_eq!(each(&format!("'{text}'")), Ok(vec![loss; 3]), "{text}");
        }
    }

    #[test]
    fn names_that_are_missing_or_unknown_are_told() {
        let said = |value: &str| each(value).unwrap_err();
        let missing = said("{Oslo = 0.2}");
        assert!(missing.contains("says nothing of `St Mary`, `a.b`"), "{missing}");
        assert!(missing.contains("add \"*\" for the rest"), "{missing}");
        let unknown = said("{Olso = 0.2, '*' = 1}");
        assert!(
            unknown.contains("names `Olso`") && unknown.contains("there are `Oslo`"),
            "{unknown}"
        );
        let both = said("{Olso = 0.2, 'a.b' = 1}");
        assert!(both.contains("`Olso`") && both.contains("nothing of `Oslo`, `St Mary`"), "{both}");
        let named = epsilon("{'*' = 1}").unwrap().each(&Three(false)).unwrap_err().to_string();
        assert!(named.contains("data.owner"), "{named}");
        assert!(said("{Oslo = 'much'}").contains("`epsilon`"));
        assert!(said("'1.1 * lokal'").contains("1.0 * alone"), "{}", said("'1.1 * lokal'"));
    }

    #[test]
    fn names_survive_their_own_file() {
        for value in ["{'St Mary' = 0.3, 'a.b' = 1.0, '*' = 0.4}", "'1.05 * pooled'", "[1.0, 2.0]"]
        {
            let set = [("epsilon".to_owned(), value.to_owned())];
            let experiment = super::super::Experiment::parse("", &set).unwrap();
            let text = experiment.to_toml().unwrap();
            assert_eq!(super::super::Experiment::parse(&text, &[]).unwrap(), experiment, "{text}");
        }
    }
}
