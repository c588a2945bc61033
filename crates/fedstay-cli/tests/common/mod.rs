//! The command as a newcomer types it.

use std::path::Path;
use std::process::{Command, Output};

/// How often to kill: `usual` times, or as often as `FEDSTAY_KILLS` says.
#[allow(dead_code, reason = "every file of tests takes what it needs")]
pub(crate) fn kills(usual: u32) -> u32 {
    let wanted = std::env::var("FEDSTAY_KILLS").ok();
    wanted.map_or(usual, |wanted| wanted.parse().expect("FEDSTAY_KILLS is a number"))
}

/// Numbers from 0 to 1 that differ in every run of the tests: moments that have nothing to do with
/// what is killed then.
#[allow(dead_code, reason = "every file of tests takes what it needs")]
pub(crate) fn moments() -> impl FnMut() -> f64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut state = now.as_nanos() as u64 ^ u64::from(std::process::id()) << 20;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    }
}

#[allow(dead_code, reason = "every file of tests takes what it needs")]
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fedstay"));
    command.args(arguments).current_dir(folder);
    command
}

#[allow(dead_code, reason = "every file of tests takes what it needs")]
pub(crate) fn fedstay(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

/// Its output, if all went well.
#[allow(dead_code, reason = "every file of tests takes what it needs")]
pub(crate) fn ok(folder: &Path, arguments: &[&str]) -> String {
    let output = fedstay(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}
