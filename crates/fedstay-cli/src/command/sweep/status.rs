//! `fedstay sweep status`: how much is done.

use super::Study;
use crate::table;
use anyhow::Result;
use fedstay_draw::words::duration;
use fedstay_sim::sweep::{Frame, Outcome};
use fedstay_sim::text::printable;
use std::io::Write;

/// How much of a sweep is done, and how long it took.
#[derive(Debug, clap::Args)]
pub(super) struct Status {
    #[command(flatten)]
    study: Study,
}

impl Status {
    pub(super) fn run(self) -> Result<()> {
        let plan = self.study.plan()?;
        let store = self.study.read()?;
        let there = store.keys()?;
        let frame = Frame::of_plan(&plan, &store)?;
        let diverged =
            frame.records.iter().filter(|r| matches!(r.run.outcome, Outcome::Diverged(_))).count();
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "{}: {} of {} runs done, {diverged} of them diverged\n",
            store.path().display(),
            frame.records.len(),
            plan.runs.len()
        )?;
        for axis in &plan.axes {
            if axis.values.len() < 2 {
                continue;
            }
            let rows: Vec<Vec<String>> = axis
                .values
                .iter()
                .map(|value| {
                    let wanted = serde_json::to_value(value).unwrap_or_default();
                    let planned = plan.runs.iter().filter(|run| {
                        run.setting(&axis.key)
                            .is_some_and(|found| fedstay_sim::sweep::same_value(found, &wanted))
                    });
                    let (mut all, mut done) = (0, 0);
                    planned.for_each(|run| {
                        all += 1;
                        done += usize::from(there.contains(&run.key));
                    });
                    vec![value.to_string(), done.to_string(), all.to_string()]
                })
                .collect();
            let text = table::table(&[axis.key.as_str(), "done", "of"], &rows);
            writeln!(out, "{}", printable(&text))?;
        }
        let work = store.work()?;
        if work.runs > 0 {
            writeln!(
                out,
                "{} runs took {} of a worker each; local steps: {:.1}% not needed because agents had left, of \
                 the rest {:.1}% shared between runs",
                work.runs,
                duration(work.seconds),
                100.0 * work.departed(),
                100.0 * work.shared()
            )?;
        }
        Ok(())
    }
}
