//! How many rows of each class every device has.

/// How many rows of each class every device has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// The classes' names.
    pub classes: Vec<String>,
    /// For every device, the number of its rows of each class.
    pub counts: Vec<Vec<usize>>,
}

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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_by_device_and_class() {
        let classes = ["bird".to_owned(), "automobile".to_owned()];
        let histogram =
            Histogram::new(&classes, &[0, 1, 1, 1, 0, 0], [vec![0, 4], vec![1, 2, 3, 5]]);
        assert_eq!(histogram.counts, [[2, 0], [1, 3]]);
    }
}
