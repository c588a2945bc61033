//! How far a run has come, by what is in its folder: for the list of the page, its badge, and `fedstay ls`.

use super::Tone;
use fedstay::record::RoundLine;
use fedstay_sim::text::for_shell;
use serde::Serialize;
use std::time::Duration;

/// A run without a summary that wrote nothing for this long has probably been stopped.
const SILENCE: Duration = Duration::from_secs(30);
/// A run whose mean loss is this many times what it was in the first round has diverged.
const DIVERGED: f64 = 100.0;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It has begun, and no round is over.
    Waiting,
    /// Rounds are being written.
    Running,
    /// Nothing has been written for a while, and there is no summary.
    Stopped,
    /// The same, and its losses had grown beyond all measure.
    Diverged,
    /// Its first line or its summary is not what it should be.
    Unreadable,
    /// There is a summary.
    Finished,
}

/// What a folder shows of a run that has no summary.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traces {
    /// Whether the first line was read; `None` while it has no end.
    pub header: Option<bool>,
    /// Whether a round is over.
    pub rounds: bool,
    /// The mean loss in the first round and in the last one.
    pub losses: Option<(f64, f64)>,
    /// How long nothing has been written.
    pub quiet: Duration,
}

impl Standing {
    /// Every standing, in the order in which a run passes through them.
    pub const ALL: [Self; 6] = [
        Self::Waiting,
        Self::Running,
        Self::Stopped,
        Self::Diverged,
        Self::Unreadable,
        Self::Finished,
    ];

    /// How far a run without a summary has come.
    pub fn of(traces: &Traces) -> Self {
        let silent = traces.quiet > SILENCE;
        let grew = |(first, last): (f64, f64)| last > DIVERGED * first.abs().max(f64::MIN_POSITIVE);
        match traces.header {
            Some(false) => Self::Unreadable,
            None if silent => Self::Unreadable,
            None => Self::Waiting,
            Some(true) if silent && traces.losses.is_some_and(grew) => Self::Diverged,
            Some(true) if silent => Self::Stopped,
            Some(true) if traces.rounds => Self::Running,
            Some(true) => Self::Waiting,
        }
    }

    /// Whether it may still write.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }

    /// One word, for a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Diverged => "diverged",
            Self::Unreadable => "unreadable",
            Self::Finished => "finished",
        }
    }

    /// The colour in which it is said. Green and blue are for verdicts.
    pub fn tone(self) -> Tone {
        match self {
            Self::Waiting | Self::Running | Self::Finished => Tone::Open,
            Self::Stopped | Self::Unreadable => Tone::Warn,
            Self::Diverged => Tone::Bad,
        }
    }

    /// One sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::Waiting => "It has begun, and no round is over yet.",
            Self::Running => "Rounds are being written.",
            Self::Stopped => {
                "It was stopped before it was over: nothing has been written for a while."
            }
            Self::Diverged => {
                "Its losses grew without bounds, and it stopped: its steps are too long."
            }
            Self::Unreadable => "It cannot be shown: its folder is damaged, or not that of a run.",
            Self::Finished => "It is over.",
        }
    }

    /// What to do next, and what to type for it; `folder` is the run's for a command, `files` says what is there.
    pub fn next(self, folder: &str, files: Files) -> Option<Next> {
        let quoted = for_shell(folder);
        let again = |more: &str| {
            let out = quoted_with(folder, "-again");
            let config = quoted_with(folder, "/config.toml");
            files.experiment.then(|| format!("fedstay run {config}{more} --out {out}"))
        };
        let (say, command) = match self {
            Self::Stopped if files.checkpoint && files.experiment => {
                ("To continue it", Some(format!("fedstay run --resume {quoted}")))
            }
            Self::Stopped if files.checkpoint => {
                ("To continue it", Some("resume=True, in the program that began it".to_owned()))
            }
            Self::Stopped | Self::Unreadable => ("To compute it again", again("")),
            Self::Diverged => ("To try it with shorter steps", again(" --set step_size=SMALLER")),
            Self::Waiting | Self::Running | Self::Finished => return None,
        };
        Some(Next { say, command: command? })
    }
}

/// Which files a run has that can be gone on from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files {
    /// A checkpoint.
    pub checkpoint: bool,
    /// A `config.toml` that `fedstay run` understands; else a program in Python has the agents.
    pub experiment: bool,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Next {
    /// What for, without a full stop.
    pub say: &'static str,
    /// What to type.
    pub command: String,
}

/// The mean of the finite losses of a round, bounds included; `None` where there is none.
pub fn mean_loss(line: &RoundLine) -> Option<f64> {
    let losses = || line.loss.iter().flatten().filter(|loss| loss.is_finite());
    let count = losses().count();
    (count > 0).then(|| losses().map(|loss| loss / count as f64).sum())
}

fn quoted_with(folder: &str, ending: &str) -> String {
    for_shell(&format!("{}{ending}", folder.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_standing_has_words_of_its_own_and_no_colour_of_success() {
        let different = |words: [&str; 6]| HashSet::from(words).len() == words.len();
        assert!(different(Standing::ALL.map(Standing::name)));
        assert!(different(Standing::ALL.map(Standing::text)));
        for standing in Standing::ALL {
            assert!(!matches!(standing.tone(), Tone::Good | Tone::Fair), "{standing:?}");
        }
    }

    #[test]
    fn what_a_folder_shows_decides_how_far_a_run_has_come() {
        let running = Traces { header: Some(true), rounds: true, ..Traces::default() };
        let long = SILENCE + Duration::from_secs(1);
        let silent = Traces { quiet: long, ..running };
        assert_eq!(Standing::of(&Traces::default()), Standing::Waiting, "a first line in writing");
        assert_eq!(Standing::of(&Traces { rounds: false, ..running }), Standing::Waiting);
        assert_eq!(Standing::of(&running), Standing::Running);
        assert_eq!(Standing::of(&silent), Standing::Stopped);
        let grown = Traces { losses: Some((2.0, 8e6)), ..silent };
        assert_eq!(Standing::of(&grown), Standing::Diverged);
        let fallen = Traces { losses: Some((2.0, 0.1)), ..silent };
        assert_eq!(Standing::of(&fallen), Standing::Stopped);
        let garbage = Traces { header: Some(false), ..running };
        assert_eq!(Standing::of(&garbage), Standing::Unreadable);
        let empty = Traces { quiet: long, ..Traces::default() };
        assert_eq!(Standing::of(&empty), Standing::Unreadable, "nobody will end that line");
    }

    #[test]
    fn the_next_command_fits_what_is_there() {
        let all = Files { checkpoint: true, experiment: true };
        let next = |standing: Standing, files| standing.next("runs/it's cut/", files);
        let command = |standing, files| next(standing, files).map(|next| next.command);
        let resume = "fedstay run --resume 'runs/it'\\''s cut/'";
        assert_eq!(command(Standing::Stopped, all).as_deref(), Some(resume));
        let python = Files { experiment: false, ..all };
        let wanted = Some("resume=True, in the program that began it");
        assert_eq!(command(Standing::Stopped, python).as_deref(), wanted);
        let again = Standing::Unreadable.next("a", Files { checkpoint: false, ..all }).unwrap();
        assert_eq!(again.command, "fedstay run a/config.toml --out a-again");
        let shorter = Standing::Diverged.next("a", all).unwrap();
        let wanted = "fedstay run a/config.toml --set step_size=SMALLER --out a-again";
        assert_eq!(shorter.command, wanted);
        assert_eq!(command(Standing::Running, all), None);
        assert_eq!(command(Standing::Unreadable, Files::default()), None);
    }
}
