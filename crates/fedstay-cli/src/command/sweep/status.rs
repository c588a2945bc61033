//! `fedstay sweep status`: how much is done.

use super::Study;
use anyhow::Result;
use fedstay_draw::words::{count, duration};
use fedstay_sim::sweep::{Frame, Outcome, Plan, Store, same_value};
use fedstay_terminal::{Column, Screen, Table};
use serde_json::{Value, json};
use std::collections::HashSet;

/// How much of a sweep is done, and how long it took.
#[derive(Debug, clap::Args)]
pub(super) struct Status {
    #[command(flatten)]
    study: Study,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// How many runs with a value of an axis are done.
struct Done {
    value: Value,
    done: usize,
    planned: usize,
}

impl Status {
    pub(super) fn run(self, screen: &Screen) -> Result<()> {
        let plan = self.study.plan()?;
        let store = self.study.read()?;
        let frame = Frame::of_plan(&plan, &store)?;
        let diverged =
            frame.records.iter().filter(|r| matches!(r.run.outcome, Outcome::Diverged(_))).count();
        let axes = axes(&plan, &store)?;
        let work = store.work()?;
        if self.json {
            let axes = axes.iter().map(|(key, values)| {
                let value = |done: &Done| {
                    json!({ "value": done.value, "done": done.done, "planned": done.planned })
                };
                let values = values.iter().map(value).collect::<Vec<_>>();
                json!({ "key": key, "values": values })
            });
            let told = json!({
                "store": store.path(),
                "done": frame.records.len(),
                "planned": plan.runs.len(),
                "diverged": diverged,
                "axes": axes.collect::<Vec<_>>(),
                "work": {
                    "runs": work.runs,
                    "seconds_per_run": work.seconds,
                    "departed": work.departed(),
                    "shared": work.shared(),
                },
            });
            return screen.print(&format!("{}\n", serde_json::to_string_pretty(&told)?));
        }
        screen.say(&format!(
            "{}: {} of {} done, {diverged} of them diverged\n",
            store.path().display(),
            frame.records.len(),
            count(plan.runs.len(), "run")
        ))?;
        for (key, values) in &axes {
            let mut table =
                Table::new([Column::kept(*key), Column::kept("done"), Column::kept("of")]);
            for Done { value, done, planned } in values {
                table.row([value.to_string(), done.to_string(), planned.to_string()]);
            }
            screen.print(&format!("{}\n", screen.table(&table)))?;
        }
        if work.runs == 0 {
            return Ok(());
        }
        screen.say(&format!(
            "{} took {} of a worker each; local steps: {:.1}% not needed because agents had left, of the \
             rest {:.1}% shared between runs",
            count(work.runs, "run"),
            duration(work.seconds),
            100.0 * work.departed(),
            100.0 * work.shared()
        ))
    }
}

/// The axes with more than one value, and how much of each value is done.
fn axes<'a>(plan: &'a Plan, store: &Store) -> Result<Vec<(&'a str, Vec<Done>)>> {
    let there: HashSet<String> = store.keys()?.into_iter().collect();
    let several = plan.axes.iter().filter(|axis| axis.values.len() > 1);
    let done = |key: &str, value: &toml::Value| {
        let value = serde_json::to_value(value).unwrap_or_default();
        let planned: Vec<_> = plan
            .runs
            .iter()
            .filter(|run| run.setting(key).is_some_and(|found| same_value(found, &value)))
            .collect();
        let done = planned.iter().filter(|run| there.contains(&run.key)).count();
        Done { done, planned: planned.len(), value }
    };
    Ok(several
        .map(|axis| {
            let values = axis.values.iter().map(|value| done(&axis.key, value)).collect();
            (axis.key.as_str(), values)
        })
        .collect())
}
