//! Nothing is wider than the terminal: every subcommand and every help text at 80 columns.

mod common;

use common::{command, ok, words};
use std::path::Path;

const COLUMNS: usize = 80;

/// Every subcommand, by the words that name it.
const COMMANDS: &[&[&str]] = &[
    &[],
    &["new"],
    &["run"],
    &["compare"],
    &["plan"],
    &["tournament"],
    &["story"],
    &["ls"],
    &["view"],
    &["report"],
    &["step"],
    &["check"],
    &["list"],
    &["schema"],
    &["sweep"],
    &["sweep", "new"],
    &["sweep", "status"],
    &["sweep", "query"],
    &["sweep", "export"],
    &["sweep", "extract"],
    &["figure"],
    &["data"],
    &["data", "fetch"],
    &["data", "read"],
    &["data", "show"],
    &["completions"],
    &["man"],
];

/// What a person types, in an order in which each finds what it needs. `step`, `schema`,
/// `completions` and `man` write for programs.
const TYPED: &[&[&str]] = &[
    &["new"],
    &["run", "--set", "rounds=12", "--set", "rule.kind=fedavg", "--out", "runs/a", "--story"],
    &["run", "--set", "problem.kind=observation-3", "--out", "runs/b", "--counterfactual"],
    &["compare", "--set", "rounds=12", "--rules", "fedavg,ada-gd+no-projection,retain"],
    &["compare", "--set", "problem.kind=huber", "--rules", "fedavg,retain"],
    &["tournament", "--rules", "fedavg", "--behaviours", "returning", "--seeds", "0,1"],
    &["story", "runs/a"],
    &["ls"],
    &["report", "runs/a", "runs/b"],
    &["check", "--set", "problem.kind=observation-1"],
    &["list"],
    &["list", "rules"],
    &["list", "behaviours"],
    &["list", "problems"],
    &["list", "keys"],
    &["list", "figures"],
    &["figure", "6"],
    &["data", "show"],
    &["data", "show", "--set", "partition.q=0.5", "--set", "agents=30"],
    &["sweep", "new", "study.toml"],
    &["sweep", "study.toml", "--dry-run", "--set", "rounds=3"],
    &["sweep", "study.toml", "--set", "rounds=3", "--set", "seed=0..3"],
    &["sweep", "status", "study.toml", "--set", "rounds=3", "--set", "seed=0..3"],
    &["sweep", "query", "study.toml", "--set", "rounds=3", "--set", "seed=0..3"],
    &[
        "sweep",
        "query",
        "study.toml",
        "--set",
        "rounds=3",
        "--set",
        "seed=0..3",
        "--against",
        "epsilon=0.2",
    ],
];

/// Lines that cannot be broken: a path, and a command to copy.
fn is_whole(line: &str) -> bool {
    line.starts_with("written to ") || line.trim_start().starts_with("fedstay ")
}

fn check_width(what: &[&str], text: &str) {
    for line in text.lines().filter(|line| !is_whole(line)) {
        let width = line.chars().count();
        assert!(width <= COLUMNS, "{what:?} prints {width} columns: {line}");
    }
}

fn at_80_columns(folder: &Path, arguments: &[&str]) -> String {
    let output = command(folder, arguments).env("COLUMNS", "80").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_help_text_fits_and_its_examples_can_be_copied() {
    let folder = tempfile::tempdir().unwrap();
    for words in COMMANDS {
        for help in ["--help", "-h"] {
            let text = at_80_columns(folder.path(), &[*words, &[help]].concat());
            check_width(words, &text);
            // A line of an example that was broken would not begin like this.
            let examples = text.split_once("Examples:\n").map_or("", |(_, rest)| rest);
            let examples = examples.split("\n\n").next().unwrap_or_default();
            for line in examples.lines() {
                let starts = ["  fedstay ", "  # ", "  chromium "];
                assert!(starts.iter().any(|start| line.starts_with(start)), "{words:?}: {line}");
                assert!(line.chars().count() <= COLUMNS, "{words:?}: {line}");
            }
        }
    }
    // The list above is whole.
    let help = ok(folder.path(), &["--help"]);
    let listed = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    for line in listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        let known = COMMANDS.iter().any(|words| words.first() == Some(&name));
        assert!(known || name == "help", "{name} is not tested");
    }
}

#[test]
fn everything_typed_fits() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in TYPED {
        check_width(arguments, &at_80_columns(folder.path(), arguments));
    }
}

#[test]
fn a_table_that_does_not_fit_says_what_it_left_out_and_a_pipe_gets_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let compare =
        ["compare", "--set", "rounds=12", "--rules", "fedavg,ada-gd+no-projection,retain"];
    let narrow = at_80_columns(folder.path(), &compare);
    let wide = at_80_columns(folder.path(), &[&compare[..], &["--wide"]].concat());
    insta::assert_snapshot!("narrow-and-wide", words(&format!("{narrow}\n# --wide\n{wide}")));
    let piped = ok(folder.path(), &compare);
    let table = |text: &str| {
        let lines = text.lines().skip_while(|line| !line.starts_with("rule")).take(5);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!((table(&wide), table(&wide).len()), (table(&piped), 5));
}

#[test]
fn colours_are_asked_for_and_never_in_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["run", "--set", "rounds=3", "--set", "rule.kind=fedavg", "--out"];
    let escape = '\u{1b}';
    assert!(!ok(folder.path(), &[&run[..], &["a"]].concat()).contains(escape));
    let coloured = ok(folder.path(), &[&run[..], &["b", "--color", "always"]].concat());
    assert!(coloured.contains("\u{1b}[33munsatisfied\u{1b}[0m"), "{coloured}");
    let sed = ["run", "--color=always", "--set", "sed=1"];
    let refused = command(folder.path(), &sed).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("\u{1b}[1;31merror:\u{1b}[0m"), "{said}");
}

#[test]
fn quiet_prints_results_only_and_verbose_also_what_was_resolved() {
    let folder = tempfile::tempdir().unwrap();
    let run = |out: &str, more: &[&str]| {
        let arguments = [&["run", "--set", "rounds=3", "--out", out][..], more].concat();
        let output = command(folder.path(), &arguments).output().unwrap();
        assert!(output.status.success());
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (said, _) = run("a", &[]);
    let (quiet, nothing) = run("b", &["-q"]);
    assert_eq!(nothing, "");
    let (_, details) = run("c", &["-v"]);
    let all = format!("# usual\n{said}\n# -q\n{quiet}\n# -v\n{details}");
    insta::assert_snapshot!("quiet-and-verbose", words(&all));
}

/// A terminal of 80 columns, as the kernel makes it: nothing is told by the environment.
#[cfg(target_os = "linux")]
mod pty {
    use super::*;
    use std::io::Read;
    use std::os::fd::{FromRawFd, OwnedFd};
    use std::process::Stdio;

    /// Both ends of a new terminal: ours, and the program's.
    fn open() -> (OwnedFd, OwnedFd) {
        let (mut ours, mut theirs) = (0, 0);
        let mut size =
            libc::winsize { ws_row: 24, ws_col: COLUMNS as u16, ws_xpixel: 0, ws_ypixel: 0 };
        let none = std::ptr::null_mut();
        // SAFETY: both numbers and the size live through the call, which takes no name and no modes.
        let made =
            unsafe { libc::openpty(&mut ours, &mut theirs, none, none.cast(), &raw mut size) };
        assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the call above has just opened both, and nobody else knows them.
        unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
    }

    /// What a command shows on such a terminal, and its exit code.
    fn shown(folder: &Path, arguments: &[&str]) -> (String, Option<i32>) {
        let (ours, theirs) = open();
        let terminal = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        let mut command = command(folder, arguments);
        command.env_remove("COLUMNS").env_remove("NO_COLOR").env("TERM", "xterm");
        command.stdin(Stdio::null()).stdout(terminal(&theirs)).stderr(terminal(&theirs));
        let mut child = command.spawn().unwrap();
        // The command's copies must not keep the terminal open after the program's end.
        drop(command);
        drop(theirs);
        let mut bytes = Vec::new();
        // Linux ends a terminal without a program with an error instead of with nothing more.
        let _ = std::fs::File::from(ours).read_to_end(&mut bytes);
        let code = child.wait().unwrap().code();
        (String::from_utf8(bytes).unwrap(), code)
    }

    /// The lines without colours and without what a progress bar drew and took away.
    fn plain(text: &str) -> String {
        let mut plain = String::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\u{1b}' => while letters.next().is_some_and(|c| !c.is_ascii_alphabetic()) {},
                letter => plain.push(letter),
            }
        }
        let drawn = |line: &str| line.rsplit('\r').next().unwrap_or_default().to_owned();
        plain.replace("\r\n", "\n").split('\n').map(drawn).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_real_terminal_is_asked_how_wide_it_is() {
        let folder = tempfile::tempdir().unwrap();
        for arguments in TYPED {
            let (text, code) = shown(folder.path(), arguments);
            assert_eq!(code, Some(0), "{arguments:?}: {text}");
            check_width(arguments, &plain(&text));
        }
        for words in COMMANDS {
            let (text, _) = shown(folder.path(), &[*words, &["--help"]].concat());
            check_width(words, &plain(&text));
        }
    }

    #[test]
    fn verdicts_and_errors_have_colours_there() {
        let folder = tempfile::tempdir().unwrap();
        let run = ["run", "--set", "rounds=3", "--set", "rule.kind=fedavg", "--out", "a"];
        assert!(shown(folder.path(), &run).0.contains("\u{1b}[33munsatisfied"));
        let (text, code) = shown(folder.path(), &["run", "--set", "epsilom=1"]);
        assert_eq!(code, Some(2));
        assert!(text.contains("\u{1b}[1;31merror:") && text.contains("`epsilon`"), "{text}");
        check_width(&["run"], &plain(&text));
        let never = [&run[..6], &["b", "--color", "never"]].concat();
        assert!(!shown(folder.path(), &never).0.contains("\u{1b}[33m"));
    }

    #[test]
    fn an_interrupted_run_says_how_to_continue() {
        let folder = tempfile::tempdir().unwrap();
        let long = ["run", "--set", "rounds=1000000", "--set", "rule.kind=fedavg"];
        let long = [&long[..], &["--set", "epsilon=0", "--out", "a run"]].concat();
        let mut command = command(folder.path(), &long);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let checkpoint = folder.path().join("a run/rounds.jsonl");
        for _ in 0..1200 {
            let lines = std::fs::read_to_string(&checkpoint).unwrap_or_default().lines().count();
            if lines > 3 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        // SAFETY: the process is our child and has not been waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
        insta::assert_snapshot!("interrupted", words(&said));
    }
}
