//! What can be wrong between an experiment's file and its first round.

use super::keys::Allowed;
use super::{PlanError, locate};
use crate::data::DataError;
use crate::text::one_line;
use std::path::{Path, PathBuf};

/// What is wrong with an experiment's file or keys, or with what they ask for. Every message names
/// the key or the file and says what to type.
///
/// A message is complete by itself: where a variant has a source, its text is part of the message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The file is not TOML.
    #[error("{place}{why}")]
    Syntax {
        /// Where it is wrong: `line 2, column 8: `.
        place: String,
        /// What is wrong there, in one line.
        why: String,
        /// The line of the text, with a caret under the place.
        excerpt: Option<String>,
        /// The parser's error.
        error: Box<toml::de::Error>,
    },
    /// Something is wrong in a line of the text.
    #[error("line {line}: {error}")]
    At {
        /// The line, counted from 1.
        line: usize,
        /// The line's text, with carets under the place, where it can be drawn.
        excerpt: Option<String>,
        /// What is wrong there.
        #[source]
        error: Box<SpecError>,
    },
    /// A value that TOML can express but a key cannot have, found while reading.
    #[error("{why}")]
    Unreadable {
        /// What is wrong, in one line.
        why: String,
        /// The reader's error. There is no text to show: the table was completed by us.
        error: serde_json::Error,
    },
    /// An experiment cannot be written as TOML.
    #[error(transparent)]
    Toml(#[from] toml::ser::Error),
    /// An experiment cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Something is wrong in a file or a cell of a grid, which is named.
    #[error("{place}: {error}")]
    In {
        /// The file or the cell.
        place: String,
        /// What is wrong there.
        #[source]
        error: Box<SpecError>,
    },
    /// A sweep's file was given where one experiment is asked for.
    #[error("there is a [grid]: this is a sweep of many runs, start it with `fedstay sweep`")]
    IsSweep,
    /// Something is wrong with a sweep's file.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A name that no key can have.
    #[error("`{key}` is not a key; keys look like `rule.delta`")]
    NotAName {
        /// The name.
        key: String,
    },
    /// A key inside of something that is not a table.
    #[error("`{key}` cannot be set: `{part}` is not a table")]
    NotATable {
        /// The key.
        key: String,
        /// The part of its name that has a value of its own.
        part: String,
    },
    /// A value where a section belongs.
    #[error("`{section}` is a section with keys of its own{}", meant(section, kind.as_deref()))]
    NotASection {
        /// The section.
        section: &'static str,
        /// The kind that was probably meant.
        kind: Option<String>,
    },
    /// The key does not exist.
    #[error("there is no key `{key}`; {}", guess(near, "`fedstay list keys` has all keys"))]
    UnknownKey {
        /// The key.
        key: String,
        /// What was probably meant: one key or, for a name that several sections have, all of them.
        near: Vec<&'static str>,
    },
    /// A key with its dot inside the quotes, so that it names nothing.
    #[error("`\"{key}\"` is one name with a dot in it; write {key} without the quotes")]
    Quoted {
        /// The key that was meant.
        key: &'static str,
    },
    /// The rule, behaviour, data set or other kind does not exist.
    #[error("there is no {section} `{kind}`; {}", guess(near, &format!("there are {}", listed(all))))]
    UnknownKind {
        /// The section whose `kind` it should be.
        section: &'static str,
        /// The name.
        kind: String,
        /// The kind that was probably meant.
        near: Option<&'static str>,
        /// Every kind there is.
        all: Vec<&'static str>,
    },
    /// A key that belongs to another kind.
    #[error(
        "`{key}` belongs to {}, but {section}.kind is `{kind}`: set {section}.kind, or remove `{key}`",
        listed(kinds)
    )]
    OfAnotherKind {
        /// The key.
        key: &'static str,
        /// Its section.
        section: &'static str,
        /// The kinds that have it.
        kinds: &'static [&'static str],
        /// The kind that was asked for.
        kind: &'static str,
    },
    /// A key that a kind cannot do without.
    #[error("{section}.kind = \"{kind}\" needs `{key}`; for example {key} = {example}")]
    Missing {
        /// The key.
        key: &'static str,
        /// Its section.
        section: &'static str,
        /// The kind that needs it.
        kind: &'static str,
        /// A value it may have.
        example: &'static str,
    },
    /// A label carries something that its rule cannot.
    #[error("`{label}`: {kind} can carry {can}, not +{change}")]
    Label {
        /// The label.
        label: String,
        /// Its rule.
        kind: String,
        /// What the rule can carry.
        can: String,
        /// What the rule cannot carry.
        change: String,
    },
    /// A value of the wrong type, or out of range.
    #[error("`{key}` is {value}, but must be {must}{}", write_as(instead.as_deref()))]
    Value {
        /// The key.
        key: String,
        /// The value, in one short line.
        value: String,
        /// What it must be.
        must: Allowed,
        /// What to write instead, where that is clear.
        instead: Option<String>,
    },
    /// There are both a problem and something to train on.
    #[error(
        "`{key}` belongs to training on data, but the experiment has a [problem], which brings its own \
         agents and losses; remove one of the two"
    )]
    TrainingOnProblem {
        /// The key of training.
        key: &'static str,
    },
    /// Training is asked of an experiment that has a problem instead.
    #[error("the experiment has a [problem] and no [data] to train on")]
    NoTraining,
    /// A relative target loss where there is nothing to compare it with.
    #[error("a relative `epsilon` {why}")]
    Relative {
        /// Why it makes no sense there, and what to do.
        why: &'static str,
    },
    /// The number of target losses is not the number of agents.
    #[error("`epsilon` lists {got} numbers for {agents} agents; give one for each, or one for all")]
    Epsilons {
        /// The number of target losses.
        got: usize,
        /// The number of agents.
        agents: usize,
    },
    /// Target losses by name do not fit those who take part.
    #[error("`epsilon` {why}")]
    EpsilonNames {
        /// Who is unknown or missing, and what to do.
        why: String,
    },
    /// A target loss is infinite or not a number.
    #[error("`epsilon` is {epsilon}, but must be finite")]
    EpsilonNotFinite {
        /// The target loss.
        epsilon: f64,
    },
    /// The models would take too much memory.
    #[error(
        "`agents` × weights of the model is {agents} × {weights}, but must be at most {most}: lower \
         `agents` or `model.hidden`"
    )]
    TooManyWeights {
        /// The number of agents that hold a model.
        agents: usize,
        /// The number of weights of a model.
        weights: usize,
        /// The most weights they may hold together.
        most: u64,
    },
    /// The batches would not fit in memory.
    #[error(
        "`local.steps` × `local.batch` is {steps} × {batch}, but must be at most {most}: lower one of \
         them, or use local.batch = \"full\""
    )]
    TooManySamples {
        /// The local steps of a round.
        steps: usize,
        /// The samples of a step.
        batch: usize,
        /// The most samples that may be drawn for a round.
        most: u64,
    },
    /// The rule, the behaviour, the problem or the server refuses a parameter.
    #[error(transparent)]
    Core(#[from] fedstay::Error),
    /// The data cannot be found, read or dealt out.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The model refuses its size, its data or its weights.
    #[error(transparent)]
    Model(#[from] crate::model::Error),
    /// The threads to measure with could not be started.
    #[error(transparent)]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

impl SpecError {
    /// Names the file in which the error is.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Self {
        Self::In { place: one_line(&path.display().to_string()), error: Box::new(self) }
    }

    /// Names the base file in which the error is.
    pub(crate) fn in_base(self, path: &Path) -> Self {
        let place = format!("base {}", one_line(&path.display().to_string()));
        Self::In { place, error: Box::new(self) }
    }

    /// What this means for a run in which it turned up.
    pub(crate) fn in_round(self, round: u32) -> fedstay::Error {
        match self {
            Self::Core(error) => error,
            Self::Model(error) => error.in_round(round),
            error => fedstay::Error::Engine { round, why: error.to_string() },
        }
    }

    /// Describes in one line, with the place, what is wrong with a text that is not TOML.
    pub(crate) fn syntax(error: toml::de::Error, text: &str) -> Self {
        let before = error.span().and_then(|span| text.get(..span.start));
        let place = before.map(|before| {
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            format!("line {line}, column {column}: ")
        });
        let why = one_line(&error.message().replace('\n', ", "));
        let excerpt = locate::syntax_excerpt(&error, text);
        Self::Syntax { place: place.unwrap_or_default(), why, excerpt, error: Box::new(error) }
    }

    /// The line that the error is about, with carets under the place: several lines, to be shown
    /// under the message.
    pub fn excerpt(&self) -> Option<String> {
        match self {
            Self::Syntax { excerpt, .. } | Self::At { excerpt, .. } => excerpt.clone(),
            Self::In { error, .. } => error.excerpt(),
            _ => None,
        }
    }

    /// The key that the error is about, as it would be written in a file.
    pub(super) fn key(&self) -> Option<String> {
        Some(match self {
            Self::UnknownKey { key, .. } | Self::Value { key, .. } => key.clone(),
            Self::NotASection { section, .. } | Self::Missing { section, .. } => {
                (*section).to_owned()
            }
            Self::UnknownKind { section, .. } => format!("{section}.kind"),
            Self::Quoted { key }
            | Self::OfAnotherKind { key, .. }
            | Self::TrainingOnProblem { key } => (*key).to_owned(),
            _ => return None,
        })
    }

    /// Describes in one line why a table cannot be read. Where in our own text it is, nobody can see.
    pub(super) fn unreadable(error: serde_json::Error) -> Self {
        let why = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        Self::Unreadable { why: one_line(why.strip_suffix(&place).unwrap_or(&why)), error }
    }
}

/// What was probably meant, or where to look.
fn guess<'a>(names: impl IntoIterator<Item = &'a &'static str>, otherwise: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.is_empty() {
        true => otherwise.to_owned(),
        false => format!("did you mean {}?", names.join(" or ")),
    }
}

/// How to write what was probably meant by a value in the place of a section.
fn meant(section: &str, kind: Option<&str>) -> String {
    match kind {
        Some(kind) => format!("; did you mean {section}.kind = \"{kind}\"?"),
        None => format!(": write them under [{section}], or as {section}.KEY"),
    }
}

/// `; write 1000`, where it is clear what was meant.
fn write_as(instead: Option<&str>) -> String {
    instead.map_or_else(String::new, |instead| format!("; write {instead}"))
}

/// Names in backticks, with commas between them.
fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use std::error::Error as _;

    #[test]
    fn an_error_keeps_its_cause_and_says_it_once() {
        let error = Experiment::parse("a = 1\nseed = = 4", &[]).unwrap_err();
        let SpecError::Syntax { error: parser, .. } = &error else { panic!("{error:?}") };
        assert!(parser.message().contains("expected"), "{parser}");
        assert!(error.excerpt().unwrap().ends_with("   |        ^"), "{:?}", error.excerpt());
        let said = error.to_string();
        let error = error.in_file(Path::new("mine.toml"));
        assert_eq!(error.to_string(), format!("mine.toml: {said}"));
        assert_eq!(error.source().unwrap().to_string(), said);
    }

    #[test]
    fn an_error_of_another_part_can_be_told_by_its_type() {
        let set = |key: &str, value: &str| {
            Experiment::parse("", &[(key.to_owned(), value.to_owned())]).unwrap_err()
        };
        assert!(matches!(set("data.classes", "[]"), SpecError::Data(DataError::Setting { .. })));
        assert!(matches!(set("model.hidden", "[99999999999]"), SpecError::Model(_)));
        assert!(matches!(set("privacy.noise", "-1"), SpecError::Core(_)));
    }
}
