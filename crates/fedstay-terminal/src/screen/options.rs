//! The options of every command that concern the terminal.

/// What is printed, and how.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Terminal")]
pub struct ScreenOptions {
    /// Show every column of a table, even if it is wider than the terminal
    #[arg(long, global = true)]
    pub wide: bool,
    /// Print results only: no progress, no hints, and not where files were written
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Also say what was resolved and how long it took, on standard error
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// When to use colours; NO_COLOR in the environment turns `auto` off
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Colour,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    #[value(help = None)]
    Auto,
    /// Everywhere.
    #[value(help = None)]
    Always,
    /// Nowhere.
    #[value(help = None)]
    Never,
}

impl Colour {
    /// What the command line says, read before it is parsed: an error in it has a colour as well.
    pub fn asked() -> Self {
        let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let named = |when: &str| match when {
            "always" => Self::Always,
            "never" => Self::Never,
            _ => Self::Auto,
        };
        while let Some(word) = words.next() {
            match word.strip_prefix("--color") {
                Some("") => return words.next().map_or(Self::Auto, |when| named(&when)),
                Some(rest) => return named(rest.trim_start_matches('=')),
                None if word == "--" => break,
                None => {}
            }
        }
        Self::Auto
    }

    /// Whether there are colours on something that is a terminal, or is not.
    pub(super) fn on(self, terminal: bool) -> bool {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                terminal && !dumb && !set("NO_COLOR")
            }
        }
    }

    /// The same for clap.
    pub fn for_clap(self) -> clap::ColorChoice {
        match self {
            Self::Auto => clap::ColorChoice::Auto,
            Self::Always => clap::ColorChoice::Always,
            Self::Never => clap::ColorChoice::Never,
        }
    }
}
