//! `trace`: agents are there as a file says.
//!
//! ```text
//! agent,from,to
//! 0,1,40
//! 0,61,
//! 3,10,20
//! ```
//!
//! Each line is a stretch of rounds, both ends included, in which an agent is there; without a last
//! round it lasts to the end. An agent that no line names is always there. The first line may name the
//! columns, and what follows a `#` is ignored. The file is read by the program that runs the experiment
//! ([`Trace::read`]): the core reads no files.

use super::{Attend, Origin, When};
use crate::Error;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) const ORIGIN: Origin =
    Origin { about: "as a CSV file of agent, from, to says", reference: "this project" };

/// As a file says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Where the file is.
    pub path: String,
    /// Its lines, once it is read.
    #[serde(skip)]
    stretches: Arc<[Stretch]>,
}

/// An agent is there from one round to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    agent: u64,
    from: u32,
    to: u32,
}

impl Trace {
    /// The schedule that a file's text describes, for this many agents.
    ///
    /// # Errors
    /// With the line that cannot be read, and what it should be.
    pub fn read(path: &str, text: &str, agents: u64) -> Result<Self, Error> {
        let mut stretches = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            if line.is_empty() || (number == 0 && cells == ["agent", "from", "to"]) {
                continue;
            }
            let stretch = stretch(&cells).filter(|stretch| stretch.agent < agents);
            let Some(stretch) = stretch else {
                let shown: String =
                    line.chars().filter(|sign| !sign.is_control()).take(60).collect();
                let must = format!(
                    "`agent,from,to` as in `0,1,40` in every line: one of the {agents} agents, \
                     numbered from 0, and rounds from 1 in order"
                );
                let name = format!("line {} of schedule.path = {path}", number + 1);
                return Err(Error::bad_parameter(name, format!("`{shown}`"), must));
            };
            stretches.push(stretch);
        }
        Ok(Self { path: path.to_owned(), stretches: stretches.into() })
    }
}

fn stretch(cells: &[&str]) -> Option<Stretch> {
    let [agent, from, to] = cells else { return None };
    let to = if to.is_empty() { u32::MAX } else { to.parse().ok()? };
    let stretch = Stretch { agent: agent.parse().ok()?, from: from.parse().ok()?, to };
    (1..=to).contains(&stretch.from).then_some(stretch)
}

impl Attend for Trace {
    fn is_there(&self, when: When) -> bool {
        let mut own =
            self.stretches.iter().filter(|stretch| stretch.agent == when.agent).peekable();
        own.peek().is_none() || own.any(|own| (own.from..=own.to).contains(&when.round))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::attendance;
    use super::*;
    use crate::schedule::Schedule;

    #[test]
    fn it_is_what_the_file_says() {
        let text = "agent,from,to\n0,1,2 # at first\n0, 5, \n\n2,3,3\n";
        let schedule = Schedule::Trace(Trace::read("a.csv", text, 3).unwrap());
        assert_eq!(attendance(&schedule, 3, 6, 0), ["xx..xx", "xxxxxx", "..x..."]);
        assert_eq!(serde_json::to_value(&schedule).unwrap()["path"], "a.csv");
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        for bad in ["0,1", "x,1,2", "0,0,4", "0,5,4", "3,1,2", "0,1,2,3", "-1,1,2"] {
            let error = Trace::read("a.csv", &format!("0,1,9\n{bad}"), 3).unwrap_err().to_string();
            assert!(error.contains("line 2 of schedule.path = a.csv"), "{error}");
            assert!(error.contains(bad) && !error.contains('\n'), "{error}");
        }
    }
}
