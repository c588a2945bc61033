//! What each column is for, as the keys say.

use super::Table;
use super::column::Role;
use super::raw::{LONGEST_NAME, Problem};
use super::settings::{FILE, OWNER, POOLED};
use crate::data::LabelColumn;
use crate::text::quoted;

/// Says what each column is for.
pub(super) struct Roles<'a> {
    pub(super) names: &'a [String],
    pub(super) table: &'a Table,
    pub(super) problems: &'a mut Vec<Problem>,
    pub(super) by_file: bool,
}

impl<'a> Roles<'a> {
    /// The roles, the second path with test rows, and whether owners are files.
    pub(super) fn all(&mut self) -> (Vec<Role>, Option<&'a str>, bool) {
        let table = self.table;
        let mut roles = vec![Role::Feature; self.names.len()];
        for name in &table.leave_out {
            self.give(
                &mut roles,
                "data.leave_out",
                &LabelColumn::Name(name.clone()),
                Role::LeftOut,
            );
        }
        if let Some(label) = &table.label {
            self.give(&mut roles, "data.label", label, Role::Label);
        }
        match &table.owner {
            Some(LabelColumn::Name(name)) if name == FILE && !self.names.contains(name) => {
                self.by_file = true;
            }
            Some(owner) => self.give(&mut roles, "data.owner", owner, Role::Owner),
            None => {}
        }
        for (key, name, role) in [
            ("data.together", &table.together, Role::Together),
            ("data.time", &table.time, Role::Time),
        ] {
            if let Some(name) = name {
                self.give(&mut roles, key, &LabelColumn::Name(name.clone()), role);
            }
        }
        let mut tests = None;
        match &table.test[..] {
            OWNER | POOLED => {}
            column if self.names.iter().any(|name| name == column) => {
                self.give(
                    &mut roles,
                    "data.test",
                    &LabelColumn::Name(column.to_owned()),
                    Role::Test,
                );
            }
            path if path.contains("*") || std::path::Path::new(path).exists() => {
                tests = Some(path);
            }
            other => {
                let why = format!(
                    "`{}` is neither \"owner\" nor \"pooled\", and neither a column nor a file that is \
                     there; {}",
                    quoted(other, LONGEST_NAME),
                    has(self.names)
                );
                self.problems.push(Problem { key: "data.test", why });
            }
        }
        for name in table.read_as.keys().filter(|name| !self.names.contains(name)) {
            let why =
                format!("no column is named `{}`; {}", quoted(name, LONGEST_NAME), has(self.names));
            self.problems.push(Problem { key: "data.as", why });
        }
        (roles, tests, self.by_file)
    }

    fn give(&mut self, roles: &mut [Role], key: &'static str, column: &LabelColumn, role: Role) {
        let at = match column {
            LabelColumn::Index(index) => Some(*index).filter(|index| *index < roles.len()),
            LabelColumn::Name(name) => self.names.iter().position(|own| own == name),
        };
        let called = match column {
            LabelColumn::Index(index) => index.to_string(),
            LabelColumn::Name(name) => format!("named `{}`", quoted(name, LONGEST_NAME)),
        };
        let why = match at {
            None => format!("no column is {called}; {}", has(self.names)),
            Some(at) if roles[at] != Role::Feature && roles[at] != role => {
                let other = match roles[at] {
                    Role::LeftOut => "left out (data.leave_out)",
                    Role::Label => "the label (data.label)",
                    Role::Owner => "the owner (data.owner)",
                    _ => "named by another key already",
                };
                format!("the column {called} is {other}: name another, or take it out there")
            }
            Some(at) => {
                roles[at] = role;
                return;
            }
        };
        self.problems.push(Problem { key, why });
    }
}

/// What the columns are called.
fn has(names: &[String]) -> String {
    const MOST: usize = 12;
    let shown: Vec<String> =
        names.iter().take(MOST).map(|name| quoted(name, LONGEST_NAME)).collect();
    let more = match names.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the columns are {}{more}", shown.join(", "))
}
