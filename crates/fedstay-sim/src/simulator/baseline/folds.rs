//! Parts of some rows, each of which is left out once.
//!
//! No chance is involved: the rows of each class are dealt out in turn, so that every part has its share of
//! every class.

use crate::model::RowTargets;

/// The most parts.
pub(super) const MOST: usize = 5;

/// Some rows to fit, and others to judge by.
#[derive(Debug, PartialEq)]
pub(super) struct Fold {
    pub(super) fitted: Vec<u32>,
    pub(super) judged: Vec<u32>,
}

/// All ways of leaving a part out; none where there are fewer than two rows.
pub(super) fn folds(targets: RowTargets<'_>) -> Vec<Fold> {
    let rows = targets.len();
    let parts = MOST.min(rows);
    if parts < 2 {
        return Vec::new();
    }
    let mut order: Vec<u32> = (0..rows as u32).collect();
    if let RowTargets::Classes(labels) = targets {
        order.sort_by_key(|row| labels[*row as usize]);
    }
    let mut part = vec![0; rows];
    order.iter().enumerate().for_each(|(turn, row)| part[*row as usize] = turn % parts);
    let fold = |left_out| {
        let (judged, fitted) = (0..rows as u32).partition(|row| part[*row as usize] == left_out);
        Fold { fitted, judged }
    };
    (0..parts).map(fold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_judged_once_and_every_part_has_its_share_of_a_class() {
        let labels: Vec<u16> = (0..23).map(|row| u16::from(row % 3 == 0)).collect();
        let folds = folds(RowTargets::Classes(&labels));
        assert_eq!(folds.len(), MOST);
        let mut judged: Vec<u32> = folds.iter().flat_map(|fold| fold.judged.clone()).collect();
        judged.sort_unstable();
        assert!(judged.into_iter().eq(0..23));
        for Fold { fitted, judged } in &folds {
            assert_eq!(fitted.len() + judged.len(), 23);
            assert!(fitted.iter().all(|row| !judged.contains(row)));
            let second = judged.iter().filter(|row| labels[**row as usize] == 1).count();
            assert!((1..=2).contains(&second), "{judged:?}");
        }
    }

    #[test]
    fn few_rows_have_fewer_parts_and_one_has_none() {
        assert_eq!(folds(RowTargets::Numbers(&[1.0, 2.0])).len(), 2);
        assert_eq!(folds(RowTargets::Numbers(&[1.0])), []);
    }
}
