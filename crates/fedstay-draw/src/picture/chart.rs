//! What the charts of a run show, described once: their curves, what these are called and how they look.
//! The report draws them from this description (`run.rs`), and the live page is sent it and paints.

use crate::plot::{Colour, Dash, Marker, Style};
use fedstay::Measure;
use serde::{Serialize, Serializer};

/// A curve over the rounds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ChartCurve {
    /// The column of the page's series that has it, which is also its name among what was delivered.
    pub key: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// Its colour on the page.
    #[serde(serialize_with = "as_hex")]
    pub colour: Colour,
    /// Its pattern on the page.
    #[serde(serialize_with = "in_pixels")]
    pub dash: Dash,
    /// Its look in print, where every colour belongs to a rule or to an agent already.
    #[serde(skip)]
    pub print: Style,
}

impl ChartCurve {
    const fn new(key: &'static str, name: &'static str, on_page: (Colour, Dash)) -> Self {
        let (colour, dash) = on_page;
        Self { key, name, colour, dash, print: grey(Colour::GREY, Dash::Solid) }
    }

    /// What it is called where it shows a measure, or the loss; the page does the same.
    pub(super) fn called(&self, measure: &Measure) -> String {
        match self.key {
            "mean" => format!("{} {}", self.name, measure.label),
            "worst" if *measure == Measure::LOSS => format!("{}’s {}", self.name, measure.label),
            _ => self.name.to_owned(),
        }
    }

    const fn printed(self, colour: Colour, dash: Dash) -> Self {
        Self { print: grey(colour, dash), ..self }
    }
}

const fn grey(colour: Colour, dash: Dash) -> Style {
    Style { colour, dash, marker: Marker::Disc }
}

const MEAN: (Colour, Dash) = (Colour::BLUE, Dash::Solid);
const WORST: (Colour, Dash) = (Colour::VERMILLION, Dash::Dashed);

/// How good the model is by a measure or by the loss: on average, for the worst agent, for the
/// population. The keys follow the measure's name, as in `accuracy_mean`, and its label the first name.
pub const MEASURED: [ChartCurve; 3] = [
    ChartCurve::new("mean", "mean", MEAN).printed(Colour::INK, Dash::Solid),
    ChartCurve::new("worst", "worst agent", WORST).printed(Colour::INK, Dash::Dashed),
    ChartCurve::new("population", "population", (Colour::GREEN, Dash::Dotted))
        .printed(Colour::GREY, Dash::Dotted),
];

/// How many agents are still in, and how many are content.
pub const MEMBERS: [ChartCurve; 2] = [
    ChartCurve::new("still_in", "still in", (Colour::GREY, Dash::Solid)),
    ChartCurve::new("content", "content", (Colour::GREEN, Dash::Dashed)),
];

/// The server's step.
pub const STEPS: [ChartCurve; 2] = [
    ChartCurve::new("step_norm", "length of the step", MEAN).printed(Colour::GREY, Dash::Solid),
    ChartCurve::new("step_size", "step size η", (Colour::GREY, Dash::Dotted))
        .printed(Colour::GREY, Dash::DashDot),
];

/// One of the paper's cases of a round, as a mark below the steps.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Case {
    /// Its number in the records.
    pub number: u8,
    /// What it means.
    pub name: &'static str,
    /// Its colour.
    #[serde(serialize_with = "as_hex")]
    pub colour: Colour,
    /// How high its mark is, for readers who cannot tell the colours apart.
    pub height: u8,
}

/// The cases of ADA-GD.
pub const CASES: [Case; 3] = [
    Case { number: 1, name: "some are about to leave", colour: Colour::ORANGE, height: 10 },
    Case { number: 2, name: "nobody is about to leave", colour: Colour::SKY, height: 4 },
    Case { number: 3, name: "everybody is within reach", colour: Colour::PURPLE, height: 7 },
];

/// The look of an agent's line.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct AgentLine {
    #[serde(serialize_with = "as_hex")]
    colour: Colour,
    #[serde(serialize_with = "in_pixels")]
    dash: Dash,
}

/// The number of agents after which their looks repeat.
const DISTINCT: usize = 18;

/// What the live page is sent.
#[derive(Debug, Serialize)]
pub struct Charts {
    measured: [ChartCurve; 3],
    members: [ChartCurve; 2],
    steps: [ChartCurve; 2],
    cases: [Case; 3],
    /// The agents' lines, in their order; they then repeat.
    agents: Vec<AgentLine>,
    /// Colours for runs whose rule has none of its own. No two are closer than Okabe and Ito's are.
    spare: Vec<String>,
    /// The colour of black lines, which are light on a dark page.
    ink: String,
    /// The line of the agent that is pointed at, among many.
    pointed: String,
}

/// The description of all charts.
pub fn charts() -> Charts {
    let line = |agent| {
        let Style { colour, dash, .. } = Style::agent(agent);
        AgentLine { colour, dash }
    };
    let spare = [
        Colour::BLUE,
        Colour::VERMILLION,
        Colour::GREEN,
        Colour::PURPLE,
        Colour::ORANGE,
        Colour::SKY,
        Colour::GREY,
        Colour::INK,
    ];
    Charts {
        measured: MEASURED,
        members: MEMBERS,
        steps: STEPS,
        cases: CASES,
        agents: (0..DISTINCT).map(line).collect(),
        spare: spare.map(Colour::hex).to_vec(),
        ink: Colour::INK.hex(),
        pointed: Colour::VERMILLION.hex(),
    }
}

fn as_hex<S: Serializer>(colour: &Colour, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&colour.hex())
}

/// Dashes and gaps on a screen: lines are thin there, and pixels coarse.
fn in_pixels<S: Serializer>(dash: &Dash, to: S) -> Result<S::Ok, S::Error> {
    let lengths: &[f64] = match dash {
        Dash::Solid => &[],
        Dash::Dashed => &[5.0, 3.0],
        Dash::Dotted => &[1.5, 2.5],
        Dash::DashDot => &[6.0, 2.5, 1.5, 2.5],
        Dash::Long => &[10.0, 3.0],
    };
    lengths.serialize(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_sent_colours_and_patterns_that_tell_curves_and_agents_apart() {
        let sent = serde_json::to_value(charts()).unwrap();
        let worst = &sent["measured"][1];
        assert_eq!((&worst["key"], &worst["colour"]), (&"worst".into(), &"#d55e00".into()));
        assert_eq!(worst["dash"], serde_json::json!([5.0, 3.0]));
        assert!(worst.get("print").is_none());
        let agents = sent["agents"].as_array().unwrap();
        let different: std::collections::HashSet<String> =
            agents.iter().map(ToString::to_string).collect();
        assert_eq!(different.len(), agents.len());
        assert_eq!(Style::agent(0).dash, Style::agent(DISTINCT).dash, "they repeat from there");
        assert_eq!(Style::agent(0).colour, Style::agent(DISTINCT).colour);
        for curves in [&MEASURED[..], &MEMBERS, &STEPS] {
            for (one, other) in curves.iter().zip(&curves[1..]) {
                assert!(one.colour != other.colour && one.dash != other.dash, "{}", one.name);
            }
        }
    }
}
