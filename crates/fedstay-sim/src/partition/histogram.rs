//! How many rows of each class every device has, as numbers and as a drawing in text.

use std::fmt::Write;

/// How many rows of each class every device has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// The classes' names.
    pub classes: Vec<String>,
    /// For every device, the number of its rows of each class.
    pub counts: Vec<Vec<usize>>,
}

/// More classes than this are drawn as a list of the largest.
const COLUMNS: usize = 12;
/// The width of a column in characters.
const CELL: usize = 7;

impl Histogram {
    /// Counts the classes of every device's rows.
    pub fn new(
        classes: &[String],
        labels: &[u16],
        devices: impl IntoIterator<Item = impl IntoIterator<Item = usize>>,
    ) -> Self {
        let count = |rows: &mut dyn Iterator<Item = usize>| {
            let mut counts = vec![0; classes.len()];
            rows.for_each(|row| counts[usize::from(labels[row])] += 1);
            counts
        };
        let counts = devices.into_iter().map(|rows| count(&mut rows.into_iter())).collect();
        Histogram { classes: classes.to_vec(), counts }
    }

    /// A line for each of the first `most` devices, with a bar for every class: columns for up to
    /// twelve classes, else a device's five largest.
    pub fn render(&self, most: usize) -> String {
        let mut text = String::from("agent   rows");
        let wide = self.classes.len() <= COLUMNS;
        if wide {
            for class in &self.classes {
                let class: String = class.chars().take(CELL - 1).collect();
                let _ = write!(text, "{class:>width$}", width = CELL + 1);
            }
        }
        let peak = self.counts.iter().flatten().copied().max().unwrap_or(0);
        for (device, counts) in self.counts.iter().enumerate().take(most) {
            let _ = write!(text, "\n{device:>5} {:>6}", counts.iter().sum::<usize>());
            if wide {
                for &count in counts {
                    let _ = write!(text, " {}{count:>width$}", bar(count, peak), width = CELL - 1);
                }
                continue;
            }
            let mut largest: Vec<usize> = (0..counts.len()).filter(|&c| counts[c] > 0).collect();
            largest.sort_by_key(|&class| (std::cmp::Reverse(counts[class]), class));
            for &class in largest.iter().take(5) {
                let (name, count) = (&self.classes[class], counts[class]);
                let _ = write!(text, "  {name} {}{count}", bar(count, peak));
            }
            if largest.len() > 5 {
                let _ = write!(text, "  and {} more", largest.len() - 5);
            }
        }
        if self.counts.len() > most {
            let _ = write!(text, "\n  ... and {} more agents", self.counts.len() - most);
        }
        text.push('\n');
        text
    }
}

/// A block as high as `count` is of `peak`; anything above 0 shows.
fn bar(count: usize, peak: usize) -> char {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    BARS[(count * 8).div_ceil(peak.max(1)).min(8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_classes_stand_in_columns() {
        let classes = ["bird".to_owned(), "automobile".to_owned()];
        let histogram =
            Histogram::new(&classes, &[0, 1, 1, 1, 0, 0], [vec![0, 4], vec![1, 2, 3, 5]]);
        assert_eq!(histogram.counts, [[2, 0], [1, 3]]);
        let expected = "agent   rows    bird  automo\n    0      2 ▆     2       0\n    1      4 ▃     1 █     3\n";
        assert_eq!(histogram.render(10), expected);
        assert!(histogram.render(1).ends_with("\n  ... and 1 more agents\n"));
    }

    #[test]
    fn many_classes_are_listed_by_size() {
        let classes: Vec<String> = (0..20).map(|class| format!("c{class}")).collect();
        let labels: Vec<u16> = (0..20).chain([7; 20]).collect();
        let text = Histogram::new(&classes, &labels, [Vec::from_iter(0..40)]).render(5);
        assert!(
            text.contains("    0     40  c7 █21  c0 ▁1  c1 ▁1  c2 ▁1  c3 ▁1  and 15 more"),
            "{text}"
        );
    }
}
