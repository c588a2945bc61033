//! `fedstay sweep export`: results for other programs.

use super::Study;
use super::parquet;
use anyhow::Result;
use fedstay_draw::words::count;
use fedstay_sim::run::write_whole;
use fedstay_sim::sweep::{Column, Frame};
use fedstay_terminal::{Screen, Usage, cell};
use std::path::PathBuf;

/// Results as CSV or Parquet.
#[derive(Debug, clap::Args)]
pub(super) struct Export {
    #[command(flatten)]
    study: Study,
    /// The file; its ending, .csv or .parquet, decides the format
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// One row per measured round instead of one row per run
    #[arg(long)]
    series: bool,
}

impl Export {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        let plan = self.study.plan()?;
        let frame = Frame::of_plan(&plan, &self.study.read()?)?;
        let columns = match self.series {
            true => frame.series_columns(&plan),
            false => frame.columns(&plan),
        };
        let ending = self.out.extension().and_then(|ending| ending.to_str());
        let bytes = match ending {
            Some("csv") => csv_bytes(&columns)?,
            Some("parquet") => parquet::bytes(&columns)?,
            _ => {
                let why = format!("--out {}: end it in .csv or .parquet", self.out.display());
                return Err(Usage(why).into());
            }
        };
        write_whole(&self.out, &bytes)?;
        let rows = columns.first().map_or(0, |column| column.values.len());
        let (rows, columns) = (count(rows, "row"), count(columns.len(), "column"));
        screen.mention(&format!("{rows}, {columns}"))?;
        screen.written(&self.out)
    }
}

fn csv_bytes(columns: &[Column]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let cells = |texts: Vec<String>| texts.into_iter().map(|text| cell(&text).into_owned());
    writer.write_record(cells(columns.iter().map(|column| column.name.clone()).collect()))?;
    for row in 0..columns.first().map_or(0, |column| column.values.len()) {
        writer.write_record(cells(columns.iter().map(|c| c.values.cell(row)).collect()))?;
    }
    Ok(writer.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay_sim::sweep::Values;

    #[test]
    fn a_setting_cannot_become_a_formula() {
        let text = |texts: &[&str]| texts.iter().map(|text| Some((*text).to_owned())).collect();
        let columns = [
            Column {
                name: "data.path".into(),
                values: Values::Text(text(&["=HYPERLINK(\"x\")", "-a"])),
            },
            Column { name: "loss".into(), values: Values::Number(vec![Some(-0.5), None]) },
        ];
        let csv = String::from_utf8(csv_bytes(&columns).unwrap()).unwrap();
        assert_eq!(csv, "data.path,loss\n\"'=HYPERLINK(\"\"x\"\")\",-0.5\n'-a,\n");
    }
}
