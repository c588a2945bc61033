//! The reference page of all keys, `docs/keys.md`.

use super::{Key, On, SECTIONS, SEVERAL, Section};
use std::fmt::Write;

/// The command that writes the page.
pub(super) const COMMAND: &str = "fedstay list keys --markdown > docs/keys.md";

/// All keys as a page in Markdown.
pub fn page() -> String {
    let mut page = format!(
        "# The keys of an experiment\n\n\
         What an experiment's file can say. A file says only what differs from the defaults; \
         `--set rule.delta=0.1` says the same on the command line. Names and values are checked before \
         anything is computed. `fedstay schema` prints the same as a JSON schema, with which an editor \
         completes and checks a file while it is typed.\n\n\
         This page is written by the program: `{COMMAND}`.\n"
    );
    for section in SECTIONS {
        page.push_str(&section.page());
    }
    page
}

impl Section {
    fn page(&self) -> String {
        let title = match self.name {
            "" => self.about.to_owned(),
            name => format!("`[{name}]`"),
        };
        let mut page = format!("\n## {title}\n\n");
        if !self.name.is_empty() {
            let _ = write!(page, "{}.", self.about);
        }
        if self.name == SEVERAL {
            page.push_str(
                " Several act in the order of a list: `policy = [\"guard\", \"keep-best\"]`, or one \
                 `[[policy]]` each where they have options. \
                 [Which go together](policies.md#which-go-together), and what they do then.",
            );
        }
        page.push_str(match self.on {
            On::Anything => "",
            On::Problem => {
                " It brings its own agents, so no key about training can be set with it."
            }
            On::Training if self.name.is_empty() => "Not on a problem.",
            On::Training => " Not on a problem.",
        });
        if !page.ends_with("\n\n") {
            page.push_str("\n\n");
        }
        match self.kinds {
            Some(_) => page.push_str("| key | for | value | default | |\n|---|---|---|---|---|\n"),
            None => page.push_str("| key | value | default | |\n|---|---|---|---|\n"),
        }
        for key in self.keys {
            let mut cells = vec![format!("`{}`", key.name)];
            if self.kinds.is_some() {
                let kinds =
                    if key.kinds().is_empty() { "all".to_owned() } else { key.kinds().join(", ") };
                cells.push(kinds);
            }
            cells.extend([key.type_text(), key.default_text(), key.about.to_owned()]);
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(page, "| {} |", cells.join(" | "));
        }
        page
    }
}

impl Key {
    /// What values it may have, in words.
    pub fn type_text(&self) -> String {
        match &self.section().kinds {
            Some(kinds) if self.allowed == super::Allowed::Kind => {
                let names: Vec<String> = kinds.names().map(|name| format!("`{name}`")).collect();
                names.join(", ")
            }
            _ => self.allowed.to_string(),
        }
    }

    /// Its default, in words.
    pub fn default_text(&self) -> String {
        let defaults = self.defaults();
        let alone = defaults.len() == 1;
        let mut said: Vec<String> = defaults
            .into_iter()
            .filter_map(|(kinds, value)| {
                let value = value?;
                Some(if alone {
                    format!("{value}")
                } else {
                    format!("{value} for {}", kinds.join(", "))
                })
            })
            .collect();
        if !self.otherwise.is_empty() {
            said.push(self.otherwise.to_owned());
        }
        if !self.needed_by().is_empty() {
            said.push(format!("must be given for {}", self.needed_by().join(", ")));
        }
        said.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_documentation_is_up_to_date() {
        let kept = include_str!("../../../../../docs/keys.md");
        assert!(kept == page(), "docs/keys.md is out of date; write it again: {COMMAND}");
    }
}
