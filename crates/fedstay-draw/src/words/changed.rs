//! Files of a run that are no longer what the run wrote.

use super::list;

/// What is said about them; nothing where there are none.
pub fn changed(files: &[&str]) -> Option<String> {
    let files: Vec<String> = files.iter().map(|name| (*name).to_owned()).collect();
    let it = if files.len() == 1 { "it" } else { "them" };
    (!files.is_empty()).then(|| {
        let files = list(&files);
        // A sentence gets a capital, and a file's name must not.
        format!(
            "its {files} changed since the run wrote {it}: what is shown may not be what was computed"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_changed_are_named_and_nothing_is_said_of_none() {
        assert_eq!(changed(&[]), None);
        let told = changed(&["config.toml", "summary.json"]).unwrap();
        let wanted = "its config.toml and summary.json changed since the run wrote them: ";
        assert!(told.starts_with(wanted), "{told}");
        let said = crate::words::sentence(&changed(&["summary.json"]).unwrap());
        assert!(said.starts_with("Its summary.json changed since the run wrote it: "), "{said}");
    }
}
