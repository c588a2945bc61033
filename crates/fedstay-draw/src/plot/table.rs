//! Layers that show tables: strips of categories, and bars.

use super::palette::{Colour, Fill};

/// A category of a [`Cells`] layer.
#[derive(Clone, Debug)]
pub struct Category {
    /// The name in the legend.
    pub name: String,
    /// How its cells are filled.
    pub fill: Fill,
}

/// Rows of categories, the first row on top: agents by rounds.
#[derive(Clone, Debug)]
pub struct Cells {
    /// For each row the index of each cell's category; an index without a category is left blank.
    pub rows: Vec<Vec<usize>>,
    /// What the indices mean.
    pub categories: Vec<Category>,
    /// The x of the first column's left edge.
    pub start: f64,
    /// The width of a column.
    pub step: f64,
    /// What each cell says, in the same form as `rows`; line breaks are kept. Empty for nothing.
    pub texts: Vec<Vec<String>>,
}

impl Cells {
    /// Columns one unit wide, the first centred on `first` (such as round 1).
    pub fn new(rows: Vec<Vec<usize>>, categories: Vec<Category>, first: f64) -> Self {
        Self { rows, categories, start: first - 0.5, step: 1.0, texts: Vec::new() }
    }
}

/// One series of bars.
#[derive(Clone, Debug)]
pub struct BarSeries {
    /// The name in the legend.
    pub name: String,
    /// One value per group.
    pub values: Vec<f64>,
    /// Half the height of each error bar; empty for none.
    pub errors: Vec<f64>,
    /// How its bars are filled.
    pub fill: Fill,
}

/// Bars in groups at x = 0, 1, 2, …; name the groups with [`super::Panel::x_categories`].
#[derive(Clone, Debug)]
pub struct Bars {
    /// The bars of a group, in order.
    pub series: Vec<BarSeries>,
    /// Whether a group is one bar on top of another (a class histogram) or side by side.
    pub stacked: bool,
    /// Whether each bar says its value.
    pub show_values: bool,
}

impl Bars {
    /// Bars side by side.
    pub fn new(series: Vec<BarSeries>) -> Self {
        Self { series, stacked: false, show_values: false }
    }
}

impl BarSeries {
    /// Solid bars without error bars.
    pub fn new(name: impl Into<String>, values: Vec<f64>, colour: Colour) -> Self {
        Self { name: name.into(), values, errors: Vec::new(), fill: Fill::tint(colour, 1.0) }
    }
}
