//! Tables that fit: the only writer of tables for a terminal.

use super::{Screen, wrap};
use fedstay_draw::words::Tone;
use fedstay_sim::text::one_line;
use unicode_width::UnicodeWidthStr;

/// Rows under headings; the first column is aligned left, the others right.
#[derive(Debug, Clone, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column's heading, and how soon it is left out where there is no room.
#[derive(Debug, Clone)]
pub struct Column {
    heading: String,
    /// What is left out first has the highest number; 0 is never left out.
    dispensable: u8,
}

/// A cell: its text, and the colour it is said in.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    tone: Option<Tone>,
}

/// The space between two columns.
const GAP: usize = 2;
/// A column is not cut to less than this.
const LEAST: usize = 6;

impl Column {
    /// A column that is always shown.
    pub fn kept(heading: impl Into<String>) -> Self {
        Self { heading: one_line(&heading.into()), dispensable: 0 }
    }

    /// A column that is left out before those with a lower number.
    pub fn dispensable(heading: impl Into<String>, dispensable: u8) -> Self {
        Self { dispensable, ..Self::kept(heading) }
    }
}

impl Cell {
    /// A cell in a colour.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: one_line(&text.into()), tone: Some(tone) }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: one_line(&text.into()), tone: None }
    }
}

impl Table {
    /// An empty table.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row, with one cell per column.
    pub fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// How wide the whole table is.
    pub(super) fn width(&self) -> usize {
        total(&self.fit(None).1)
    }

    /// The table at a width, and under it what was left out.
    pub(super) fn render(&self, columns: Option<usize>, wide: bool, screen: &Screen) -> String {
        let limit = columns.filter(|_| !wide);
        let (shown, widths) = self.fit(limit);
        let mut text = String::new();
        let mut line = |cell: &dyn Fn(usize) -> (String, Option<Tone>), bold: bool| {
            let mut line = String::new();
            for (place, (&column, &width)) in shown.iter().zip(&widths).enumerate() {
                let (content, tone) = cell(column);
                let content = cut(&content, width);
                let padding = " ".repeat(width.saturating_sub(content.width()));
                let content = match (tone, bold) {
                    (Some(tone), _) => screen.toned(tone, &content),
                    (None, true) => screen.bold(&content),
                    (None, false) => content,
                };
                match place {
                    0 => line.push_str(&format!("{content}{padding}")),
                    _ => line.push_str(&format!("{}{padding}{content}", " ".repeat(GAP))),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        };
        line(&|column| (self.columns[column].heading.clone(), None), true);
        let ruler: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let place = |column| shown.iter().position(|shown| *shown == column).unwrap_or(0);
        line(&|column| (ruler[place(column)].clone(), None), false);
        for row in &self.rows {
            line(
                &|column| {
                    let cell = row.get(column);
                    cell.map_or_else(Default::default, |cell| (cell.text.clone(), cell.tone))
                },
                false,
            );
        }
        let hidden = (0..self.columns.len()).filter(|column| !shown.contains(column));
        let hidden: Vec<&str> =
            hidden.map(|column| self.columns[column].heading.as_str()).collect();
        if !hidden.is_empty() {
            let note = format!("--wide also shows: {}", hidden.join(", "));
            text.push_str(&wrap::indented(&note, columns));
            text.push('\n');
        }
        text
    }

    /// Which columns are shown, and how wide each is.
    fn fit(&self, limit: Option<usize>) -> (Vec<usize>, Vec<usize>) {
        let width = |column: &usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(*column));
            let widest = cells.map(|cell| cell.text.width()).max().unwrap_or(0);
            widest.max(self.columns[*column].heading.width())
        };
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let mut widths: Vec<usize> = shown.iter().map(width).collect();
        let Some(limit) = limit else { return (shown, widths) };
        while total(&widths) > limit {
            let spare = |place: &usize| self.columns[shown[*place]].dispensable;
            // Of equals, the last goes first.
            let Some(place) = (0..shown.len()).max_by_key(spare).filter(|place| spare(place) > 0)
            else {
                break;
            };
            shown.remove(place);
            widths.remove(place);
        }
        // What must stay and does not fit is cut, the widest first.
        while total(&widths) > limit {
            match widths.iter_mut().max() {
                Some(widest) if *widest > LEAST => *widest -= 1,
                _ => break,
            }
        }
        (shown, widths)
    }
}

/// The width of columns with the space between them.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Text cut to a width, with a mark where it was cut.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for letter in text.chars() {
        if cut.width() + letter.to_string().width() + 1 > width {
            break;
        }
        cut.push(letter);
    }
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([
            Column::kept("rule"),
            Column::dispensable("stopped", 2),
            Column::kept("left"),
            Column::dispensable("loss", 1),
        ]);
        table.row(["fedavg", "everyone-left", "10 of 10", "0.200"]);
        table.row(["a\u{1b}[31m", "settled", "nobody", "0.1"]);
        table
    }

    #[test]
    fn columns_go_in_the_order_in_which_they_can_be_spared() {
        let whole = "rule               stopped      left   loss\n";
        let shown = Screen::plain(None).table(&table());
        assert!(shown.starts_with(whole), "{shown}");
        assert!(Screen::plain(44).table(&table()).starts_with(whole));
        let some = "rule             left   loss\n-----------  --------  -----\n\
                    fedavg       10 of 10  0.200\na\\u{1b}[31m    nobody    0.1\n\
                    --wide also shows: stopped\n";
        assert_eq!(Screen::plain(30).table(&table()), some);
        let least = Screen::plain(20).table(&table());
        assert!(least.ends_with("--wide also shows:\nstopped, loss\n"), "{least}");
    }

    #[test]
    fn no_line_is_wider_than_the_screen() {
        for columns in 20..60 {
            let text = Screen::plain(columns).table(&table());
            let widest = text.lines().map(UnicodeWidthStr::width).max();
            assert!(widest <= Some(columns), "{columns}: {text}");
        }
        let mut one = Table::new([Column::kept("name")]);
        one.row(["x".repeat(50)]);
        assert!(Screen::plain(20).table(&one).contains(&format!("{}…", "x".repeat(19))));
    }

    #[test]
    fn a_wide_table_is_shown_whole_where_that_is_asked_for() {
        let wide = Screen { wide: true, ..Screen::plain(20) };
        assert_eq!(wide.table(&table()), Screen::plain(None).table(&table()));
    }
}
