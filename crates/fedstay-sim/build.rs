//! Says which build this is, for the records: the version, and the commit where there is one.

use std::path::Path;
use std::process::Command;

fn main() {
    // Run whenever this crate or the core is recompiled, not at every commit: a commit that changes
    // neither of them changes no result.
    println!("cargo::rerun-if-changed=src");
    // Absent in a package from a registry, where a missing file would count as changed.
    if Path::new("../fedstay/src").exists() {
        println!("cargo::rerun-if-changed=../fedstay/src");
    }
    let version = env!("CARGO_PKG_VERSION");
    let build = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    };
    println!("cargo::rustc-env=FEDSTAY_BUILD={build}");
}

/// The commit, and whether these two crates were changed since; `None` outside of the repository.
fn commit() -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    // As a dependency, the sources may lie within somebody else's repository.
    let top = Path::new(&git(&root, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()?;
    if top != root {
        return None;
    }
    let commit = git(&root, &["rev-parse", "--short=12", "HEAD"])?;
    let crates = ["status", "--porcelain", "--", "crates/fedstay", "crates/fedstay-sim"];
    let changed = if git(&root, &crates)?.is_empty() { "" } else { ", changed" };
    Some(format!("{commit}{changed}"))
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
