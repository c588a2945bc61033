//! `fedstay completions`: what a shell needs to complete commands and options.

use super::Cli;
use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  # bash, for you alone
  fedstay completions bash > ~/.local/share/bash-completion/completions/fedstay
  # zsh, in a folder of $fpath
  fedstay completions zsh > ~/.zfunc/_fedstay
  fedstay completions fish > ~/.config/fish/completions/fedstay.fish";

/// Print the completions of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "fedstay", &mut script);
        Ok(std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?)
    }
}
