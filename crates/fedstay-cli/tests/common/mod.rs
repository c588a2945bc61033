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

/// What a command prints at 80 columns, what it complains about, and its exit code, for a snapshot.
#[allow(dead_code, reason = "every file of tests takes what it needs")]
pub(crate) fn said(folder: &Path, arguments: &[&str]) -> String {
    let output = command(folder, arguments).env("COLUMNS", "80").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, error) = (text(output.stdout), text(output.stderr));
    let code = output.status.code().unwrap_or(-1);
    format!("$ fedstay {}\n{out}{error}[{code}]\n", arguments.join(" "))
}

/// What several commands say, one after the other.
#[allow(dead_code, reason = "every file of tests takes what it needs")]
pub(crate) fn all_said(folder: &Path, commands: &[&[&str]]) -> String {
    commands.iter().map(|arguments| said(folder, arguments)).collect()
}

/// A text with every number and every key of a run as `#`, every gap as one blank and every rule as two
/// dashes: the words, where the numbers are in single precision or are times, and differ between machines.
/// Exit codes stay.
#[allow(dead_code, reason = "every file of tests takes what it needs")]
pub(crate) fn words(text: &str) -> String {
    let plain = |line: &str| match line.starts_with('[') && line.ends_with(']') {
        true => line.to_owned(),
        false => {
            line.split(' ').filter(|word| !word.is_empty()).map(word).collect::<Vec<_>>().join(" ")
        }
    };
    text.lines().map(plain).collect::<Vec<_>>().join("\n")
}

#[allow(dead_code, reason = "every file of tests takes what it needs")]
fn word(word: &str) -> String {
    let bare = word.trim_end_matches(',');
    if bare.len() == 32 && bare.chars().all(|c| c.is_ascii_hexdigit()) {
        return word.replace(bare, "#");
    }
    if word.len() > 1 && word.chars().all(|c| c == '-') {
        return "--".to_owned();
    }
    let is_digit = |c: char| c.is_ascii_digit();
    let signed = |rest: &str| rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(is_digit));
    let mut short = String::new();
    let mut rest = if signed(word) { &word[1..] } else { word };
    while let Some(letter) = rest.chars().next() {
        if !is_digit(letter) {
            short.push(letter);
            rest = &rest[letter.len_utf8()..];
            continue;
        }
        rest = rest.trim_start_matches(is_digit);
        while let Some(more) =
            rest.strip_prefix(['.', ',']).filter(|rest| rest.starts_with(is_digit))
        {
            rest = more.trim_start_matches(is_digit);
        }
        short.push('#');
    }
    short
}

/// Its output, if all went well.
#[allow(dead_code, reason = "every file of tests takes what it needs")]
pub(crate) fn ok(folder: &Path, arguments: &[&str]) -> String {
    let output = fedstay(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}
