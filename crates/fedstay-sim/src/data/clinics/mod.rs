//! 823 pregnancies in four clinics, and whether the child came before 37 weeks: a federation of real members
//! that comes with the program.
//!
//! Reference: B. Michalowicz et al., *Treatment of periodontal disease and the risk of preterm birth*, New
//! England Journal of Medicine 355, 2006: the trial OPT, in Kentucky, Minnesota, Mississippi and New York. The
//! rows are those of the table `opt` of the R package `medicaldata` (MIT; `LICENSE` beside this file). Of its
//! 171 columns only what was known at the first visit is here: the woman, her pregnancies before, and her
//! teeth. What was measured later, the treatment and the outcome's other faces (weight, Apgar) are not. Nine
//! rows do not say how the pregnancy ended.

use serde::{Deserialize, Serialize};

use super::table::{Draw, Table};
use super::{DataError, LabelColumn, Load, LoadedData, Origin, one_fifth};

pub(super) const ORIGIN: Origin = Origin {
    about: "823 pregnancies in four real clinics and which ended early, built in",
    reference: "Michalowicz et al., N Engl J Med 355, 2006",
};

static ROWS: &[u8] = include_bytes!("preterm.csv");

/// The four clinics: no download, no file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clinics {
    /// The share of every clinic's rows that is drawn for testing.
    #[serde(default = "one_fifth")]
    pub test_share: f64,
}

impl Default for Clinics {
    fn default() -> Self {
        Self { test_share: one_fifth() }
    }
}

impl Clinics {
    /// The table.
    pub fn table(&self) -> Table {
        let named = |name: &str| Some(LabelColumn::Name(name.into()));
        Table {
            owner: named("clinic"),
            label: named("preterm"),
            test_share: self.test_share,
            ..Table::built_in("clinics.csv", ROWS)
        }
    }
}

impl Load for Clinics {
    fn load(&self) -> Result<LoadedData, DataError> {
        self.table().load()
    }

    fn load_for(&self, draw: Draw) -> Result<LoadedData, DataError> {
        self.table().load_for(draw)
    }

    fn feature(&self, name: &str) -> Result<Option<usize>, DataError> {
        self.table().feature(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published counts: 823 women, 814 of them with an outcome.
    #[test]
    fn the_clinics_are_the_published_ones() {
        let loaded = Clinics::default().load().unwrap();
        let owners = loaded.data.owners.as_ref().unwrap();
        assert_eq!(owners.names, ["KY", "MN", "MS", "NY"]);
        let sizes: Vec<usize> = owners.rows(loaded.data.len()).iter().map(Vec::len).collect();
        assert_eq!(sizes, [208, 247, 192, 167]);
        assert_eq!(loaded.data.targets.counts(0..814), [711, 103]);
        assert_eq!(
            (loaded.not_used[0].rows, &loaded.not_used[0].why[..]),
            (9, "rows without a label")
        );
        assert_eq!(loaded.warnings, Vec::<String>::new());
        assert!((120..200).contains(&(loaded.data.len() - loaded.train)));
    }

    #[test]
    fn other_seeds_draw_other_test_rows() {
        let draw = |seed| Clinics::default().load_for(Draw { seed, ..Draw::default() }).unwrap();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
