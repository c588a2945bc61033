//! Names that rows give: the classes, or the owners, of a file.

use std::collections::HashMap;
use std::path::Path;

use super::{DataError, Targets};

/// What names are, in the plural, and which key says where they are.
pub(super) type NameKind = (&'static str, &'static str);

/// The name that every row gives; names are numbered in the order in which they first appear.
#[derive(Default)]
pub(super) struct Labels {
    rows: Vec<u16>,
    numbers: HashMap<String, u16>,
}

impl Labels {
    /// The name of the next row; `kind` says what the names are, and which key sets them.
    pub(super) fn push(&mut self, class: &str, kind: NameKind) -> Result<(), DataError> {
        let number = match self.numbers.get(class) {
            Some(&number) => number,
            None => {
                let number = u16::try_from(self.numbers.len()).map_err(|_| {
                    let why = format!("more than 65,536 {}: is it a measured value?", kind.0);
                    DataError::setting(kind.1, why)
                })?;
                self.numbers.insert(class.to_owned(), number);
                number
            }
        };
        self.rows.push(number);
        Ok(())
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many rows give a name.
    pub(super) fn count(&self, class: &str) -> usize {
        let number = self.numbers.get(class);
        self.rows.iter().filter(|row| Some(*row) == number).count()
    }

    /// Refuses labels that tell nothing apart.
    ///
    /// # Errors
    /// When all rows have one class; `place` says where the classes are, `key` what sets that.
    pub(super) fn check(&self, path: &Path, place: &str, key: &str) -> Result<(), DataError> {
        let mut classes = self.numbers.keys();
        match (classes.next(), classes.next()) {
            (Some(class), None) => {
                let found = format!("`{class}` alone in {} rows", self.rows.len());
                let hint = format!(
                    "a label with one class teaches nothing; set {key} to the one that differs between \
                     rows"
                );
                Err(DataError::wrong(path, format!("two classes or more in {place}"), found, &hint))
            }
            _ => Ok(()),
        }
    }

    /// The rows' classes.
    pub(super) fn targets(self) -> Targets {
        let (of, names) = self.sorted();
        Targets::Classes { of, names }
    }

    /// The name of every row and the names, sorted: as numbers where all of them are.
    pub(super) fn sorted(self) -> (Vec<u16>, Vec<String>) {
        let mut classes: Vec<(String, u16)> = self.numbers.into_iter().collect();
        let as_numbers: Option<HashMap<u16, i128>> =
            classes.iter().map(|(class, number)| Some((*number, class.parse().ok()?))).collect();
        classes.sort_by(|(left, a), (right, b)| match &as_numbers {
            Some(values) => values[a].cmp(&values[b]).then_with(|| left.cmp(right)),
            None => left.cmp(right),
        });
        let mut places = vec![0u16; classes.len()];
        for (place, (_, number)) in classes.iter().enumerate() {
            places[usize::from(*number)] = place as u16;
        }
        let labels = self.rows.into_iter().map(|number| places[usize::from(number)]).collect();
        (labels, classes.into_iter().map(|(class, _)| class).collect())
    }
}
