//! What became of the rows of a data set, in a line.

use super::{count, list};
use fedstay::record::DataRows;

/// Every row that was read, and where it is: with the agents, tested with, or not used and why.
pub fn rows(rows: &DataRows, agents: usize) -> String {
    let DataRows { dealt, drawn, held_out, test, .. } = rows;
    let agents = count(agents, "agent");
    let mut parts = vec![match drawn {
        true => format!("{dealt} for {agents} to draw from"),
        false => format!("{dealt} dealt to {agents}"),
    }];
    if *held_out > 0 {
        parts.push(format!("{held_out} held by devices that do not take part"));
    }
    parts.push(format!("{test} for testing"));
    parts.extend(rows.unused.iter().map(|part| format!("{} unused ({})", part.rows, part.why)));
    if rows.unused.is_empty() {
        parts.push("none unused".to_owned());
    }
    format!("{} read: {}", count(rows.read, "row"), list(&parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::record::UnusedRows;

    #[test]
    fn every_row_that_was_read_is_accounted_for() {
        let whole = DataRows {
            read: 18,
            dealt: 12,
            drawn: false,
            held_out: 0,
            test: 6,
            unused: Vec::new(),
        };
        let told = "18 rows read: 12 dealt to 3 agents, 6 for testing and none unused";
        assert_eq!(rows(&whole, 3), told);
        let why = "data.per_agent = 1".to_owned();
        let unused = vec![UnusedRows { rows: 7, why, asked: true }];
        let some = DataRows { dealt: 3, held_out: 2, unused, ..whole.clone() };
        let told = "18 rows read: 3 dealt to 3 agents, 2 held by devices that do not take part, 6 for \
                    testing and 7 unused (data.per_agent = 1)";
        assert_eq!(rows(&some, 3), told);
        let drawn = DataRows { drawn: true, ..whole };
        assert!(rows(&drawn, 1).starts_with("18 rows read: 12 for 1 agent to draw from, "));
    }
}
