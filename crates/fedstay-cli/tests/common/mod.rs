//! The command as a stranger types it.

use std::path::Path;
use std::process::{Command, Output};

pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fedstay"));
    command.args(arguments).current_dir(folder);
    command
}

pub(crate) fn fedstay(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// What it said, if all went well.
pub(crate) fn ok(folder: &Path, arguments: &[&str]) -> String {
    let output = fedstay(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}
