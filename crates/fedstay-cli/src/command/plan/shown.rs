//! A plan's answer at the terminal: five parts, the recommendation last and bold.

use anyhow::Result;
use fedstay_draw::words::plan as words;
use fedstay_draw::words::plan::PlanTable;
use fedstay_sim::plan::PlanAnswer;
use fedstay_terminal::{Cell, Column, Screen, Table};

pub(super) fn print(answer: &PlanAnswer, screen: &Screen) -> Result<()> {
    let answer = &answer.spoken();
    let found = &answer.found;
    heading("1  What came in", screen)?;
    words::came_in(found).iter().try_for_each(|told| screen.say(told))?;

    heading("2  Who gains", screen)?;
    show(&words::members_table(found), screen)?;
    screen.say(&words::gaining(found))?;
    words::chance(found).iter().try_for_each(|told| screen.say(told))?;

    heading("3  What happens under plain averaging", screen)?;
    words::averaging(found).iter().try_for_each(|told| screen.say(told))?;
    words::without(found).iter().try_for_each(|told| screen.say(told))?;

    heading("4  What keeps members", screen)?;
    let (table, folded) = words::ways_table(found);
    show(&table, screen)?;
    folded.iter().try_for_each(|told| screen.say(told))?;

    heading("5  What to do", screen)?;
    let advice = screen.prose(&words::advice(found, &answer.recommend));
    advice.lines().try_for_each(|line| screen.print(&format!("{}\n", screen.bold(line))))
}

/// A table and its glossary.
fn show(of: &PlanTable, screen: &Screen) -> Result<()> {
    let column = |(heading, spare): &(String, u8)| Column::dispensable(heading.clone(), *spare);
    let mut table = Table::new(of.headings.iter().map(column));
    for row in &of.rows {
        table.row(row.iter().cloned().map(Cell::from));
    }
    screen.print(&screen.table(&table))?;
    screen.say(&of.glossary)
}

/// The heading of a part.
fn heading(text: &str, screen: &Screen) -> Result<()> {
    let above = if text.starts_with('1') { "" } else { "\n" };
    screen.print(&format!("{above}{}\n", screen.bold(text)))
}
