//! Colours, dashes, markers and fills, and which of them belongs to which rule.
//!
//! The colours are those of Okabe and Ito (2008), chosen so that readers with any of the common
//! colour-vision deficiencies can tell them apart. Their yellow is left out: it vanishes on white.
//! ADA-GD has variants, so there is a third blue for them, from Paul Tol's muted scheme, and so are wine and
//! olive, for a rule that is drawn once more with other settings.
//! Colour is never the only sign, so that a figure survives a grey print: no two rules have the same
//! pair of dash and marker, and fills differ by pattern.

use super::svg::{fnv1a, number};

/// An sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// Okabe-Ito blue.
    pub const BLUE: Self = Self(0x00, 0x72, 0xb2);
    /// Okabe-Ito vermillion.
    pub const VERMILLION: Self = Self(0xd5, 0x5e, 0x00);
    /// Okabe-Ito bluish green.
    pub const GREEN: Self = Self(0x00, 0x9e, 0x73);
    /// Okabe-Ito reddish purple.
    pub const PURPLE: Self = Self(0xcc, 0x79, 0xa7);
    /// Okabe-Ito orange.
    pub const ORANGE: Self = Self(0xe6, 0x9f, 0x00);
    /// Okabe-Ito sky blue.
    pub const SKY: Self = Self(0x56, 0xb4, 0xe9);
    /// Tol's indigo, a third blue that is darker than both of Okabe and Ito's.
    pub const INDIGO: Self = Self(0x33, 0x22, 0x88);
    /// A dark brown, of vermillion's hue.
    pub const BROWN: Self = Self(0x75, 0x34, 0x00);
    /// Tol's wine.
    pub const WINE: Self = Self(0x88, 0x22, 0x55);
    /// Tol's olive, a little darker, so that a thin line is seen on white.
    pub const OLIVE: Self = Self(0x80, 0x80, 0x1f);
    /// Neutral grey: references, baselines and departures.
    pub const GREY: Self = Self(0x76, 0x76, 0x76);
    /// Text and axes; softer than black, still far above the contrast that small print needs.
    pub const INK: Self = Self(0x22, 0x22, 0x22);
    /// The paper.
    pub const WHITE: Self = Self(0xff, 0xff, 0xff);
    pub(super) const GRID: Self = Self(0xe7, 0xe7, 0xe7);
    pub(super) const FRAME: Self = Self(0x55, 0x55, 0x55);

    /// The colour as `#rrggbb`.
    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// The same hue mixed with black: `share` 0 leaves it, 1 is black. Outlines and text on a tint
    /// of the same hue use it, because the plain colours are too light for small print.
    pub fn darker(self, share: f64) -> Self {
        let keep = 1.0 - share.clamp(0.0, 1.0);
        let mix = |c: u8| (f64::from(c) * keep).round() as u8;
        Self(mix(self.0), mix(self.1), mix(self.2))
    }
}

/// How a line is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// Unbroken.
    Solid,
    /// Medium dashes.
    Dashed,
    /// Dots.
    Dotted,
    /// Dash, dot, dash, dot.
    DashDot,
    /// Long dashes with short gaps.
    Long,
}

impl Dash {
    /// The lengths of dashes and gaps in multiples of the line's width, so that a thin line keeps
    /// the same rhythm.
    pub fn lengths(self) -> &'static [f64] {
        match self {
            Self::Solid => &[],
            Self::Dashed => &[4.0, 2.5],
            Self::Dotted => &[1.2, 1.8],
            Self::DashDot => &[5.0, 2.0, 1.2, 2.0],
            Self::Long => &[8.0, 2.5],
        }
    }
}

/// The sign at a data point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// Filled disc.
    Disc,
    /// Disc with a white middle; the start of a trajectory.
    Ring,
    /// Filled square.
    Square,
    /// Filled triangle, tip up.
    Triangle,
    /// Filled triangle, tip down.
    TriangleDown,
    /// Filled square on its corner.
    Diamond,
    /// A diagonal cross; an agent leaving.
    Cross,
    /// A five-pointed star; an optimum.
    Star,
}

/// How a fill is textured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// No texture, only colour.
    Plain,
    /// Dots on a staggered lattice; the paper's sign for the bad region.
    Dots,
    /// Lines rising to the right.
    Hatch,
    /// Lines falling to the right.
    BackHatch,
}

impl Pattern {
    /// The side of the square tile, in pixels.
    pub(super) fn side(self) -> f64 {
        if self == Self::Dots { 10.0 } else { 7.0 }
    }

    /// What follows the attributes of the `<pattern>` element: its transform and its content.
    /// Hatches are one straight line in a turned tile, because a diagonal drawn corner to corner
    /// shows a notch at every seam.
    pub(super) fn tile(self, ink: Colour) -> String {
        let ink = ink.hex();
        let hatch = |angle: f64| {
            format!(
                " patternTransform=\"rotate({})\"><rect width=\"1.3\" height=\"7\" fill=\"{ink}\"/>",
                number(angle)
            )
        };
        match self {
            Self::Plain => ">".into(),
            Self::Dots => format!(
                "><circle cx=\"2.5\" cy=\"2.5\" r=\"1.3\" fill=\"{ink}\"/>\
                 <circle cx=\"7.5\" cy=\"7.5\" r=\"1.3\" fill=\"{ink}\"/>"
            ),
            Self::Hatch => hatch(45.0),
            Self::BackHatch => hatch(-45.0),
        }
    }
}

/// How an area is filled: a tint of `colour`, then `pattern` drawn in `ink`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// The tint's colour.
    pub colour: Colour,
    /// The tint's opacity, 0 to 1.
    pub opacity: f64,
    /// The texture over the tint.
    pub pattern: Pattern,
    /// The texture's colour.
    pub ink: Colour,
}

impl Fill {
    /// An untextured tint.
    pub fn tint(colour: Colour, opacity: f64) -> Self {
        Self { colour, opacity, pattern: Pattern::Plain, ink: colour }
    }

    /// A texture without a tint, so that what lies below stays visible.
    pub fn texture(pattern: Pattern, ink: Colour) -> Self {
        Self { colour: Colour::WHITE, opacity: 0.0, pattern, ink }
    }
}

/// Everything that tells one series from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colour of line, band and markers.
    pub colour: Colour,
    /// How the line is broken.
    pub dash: Dash,
    /// The sign at its points.
    pub marker: Marker,
}

/// The rules that appear in the paper's figures and in every comparison have a fixed look, so that
/// a reader who has learnt one figure can read them all. No two have the same dash and the same marker,
/// and none has a diamond or a cross: those are the delivered model and a departure. Keys are normalised by
/// [`key`].
const KNOWN: &[(&str, Colour, Dash, Marker)] = &[
    ("fedavg", Colour::VERMILLION, Dash::Dashed, Marker::Square),
    ("adagd", Colour::BLUE, Dash::Solid, Marker::Disc),
    ("adagdhalve", Colour::SKY, Dash::Long, Marker::Star),
    ("adagdnoprojection", Colour::INDIGO, Dash::DashDot, Marker::Ring),
    ("retain", Colour::GREEN, Dash::Solid, Marker::Triangle),
    ("earlystop", Colour::ORANGE, Dash::DashDot, Marker::Triangle),
    ("keepbest", Colour::PURPLE, Dash::Long, Marker::TriangleDown),
    ("never", Colour::GREY, Dash::Dotted, Marker::Ring),
    ("preview", Colour::INK, Dash::Long, Marker::Disc),
    ("mwfed", Colour::SKY, Dash::Solid, Marker::Ring),
    ("maxfl", Colour::PURPLE, Dash::Solid, Marker::Square),
    ("qfedavg", Colour::ORANGE, Dash::Solid, Marker::TriangleDown),
    ("afl", Colour::SKY, Dash::Dashed, Marker::Triangle),
    ("fedmgda", Colour::GREEN, Dash::Dashed, Marker::Star),
    ("fedfv", Colour::PURPLE, Dash::Dashed, Marker::Disc),
    ("pcgrad", Colour::ORANGE, Dash::Dashed, Marker::Ring),
    ("mifa", Colour::INK, Dash::Solid, Marker::Star),
    ("fedce", Colour::INK, Dash::DashDot, Marker::Square),
];

/// Other names of known rules.
const ALIASES: &[(&str, &str)] = &[
    ("mean", "fedavg"),
    ("uniform", "fedavg"),
    ("uniformaveraging", "fedavg"),
    ("localsgd", "fedavg"),
    ("ada", "adagd"),
    ("fedavgearlystop", "earlystop"),
    ("fedavgkeepbest", "keepbest"),
    ("fedavgnever", "never"),
    ("fedavgpreview", "preview"),
];

/// Looks for names that are not known: every colour with a dash and a marker that no known rule has.
const SPARE: &[(Colour, Dash, Marker)] = &[
    (Colour::SKY, Dash::DashDot, Marker::Disc),
    (Colour::PURPLE, Dash::Dotted, Marker::Disc),
    (Colour::GREEN, Dash::DashDot, Marker::Star),
    (Colour::ORANGE, Dash::Long, Marker::Square),
    (Colour::BLUE, Dash::Dotted, Marker::TriangleDown),
    (Colour::VERMILLION, Dash::Long, Marker::Triangle),
    (Colour::INK, Dash::Dashed, Marker::TriangleDown),
    (Colour::GREY, Dash::Long, Marker::Ring),
];

/// Looks for a rule that is in one drawing several times, with other settings: colours that no rule has.
const AGAIN: &[(Colour, Dash, Marker)] = &[
    (Colour::BROWN, Dash::Dotted, Marker::Square),
    (Colour::WINE, Dash::Dotted, Marker::Triangle),
    (Colour::OLIVE, Dash::DashDot, Marker::TriangleDown),
    (Colour::BROWN, Dash::Dotted, Marker::Star),
];

/// Letters and digits only, in lower case: `ADA-GD`, `ada_gd` and `AdaGD` are one rule.
fn key(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Where the search for a spare look begins.
fn hash(name: &str) -> usize {
    fnv1a(key(name).as_bytes()) as usize
}

impl Style {
    /// The look of a rule that has one of its own.
    pub fn known(name: &str) -> Option<Self> {
        let key = key(name);
        let key =
            ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key.as_str(), |(_, rule)| rule);
        let (_, colour, dash, marker) = *KNOWN.iter().find(|(known, ..)| *known == key)?;
        Some(Self { colour, dash, marker })
    }

    /// The look of the rule `name`, the same in every figure. An unknown name gets one of a few
    /// spare looks by its hash; use [`Style::assign`] where several of them meet.
    pub fn of(name: &str) -> Self {
        Self::known(name).unwrap_or_else(|| Self::spare(hash(name)))
    }

    fn spare(slot: usize) -> Self {
        let (colour, dash, marker) = SPARE[slot % SPARE.len()];
        Self { colour, dash, marker }
    }

    /// Looks for all `names` of one figure, in order. A name with a look of its own has it, unless an
    /// earlier name took it; every other has the next spare look, if possible in a colour that
    /// nothing else has.
    pub fn assign(names: &[&str]) -> Vec<Self> {
        let mut given: Vec<Option<Self>> = Vec::with_capacity(names.len());
        for name in names {
            let own = Self::known(name).filter(|look| !given.contains(&Some(*look)));
            given.push(own);
        }
        for (index, name) in names.iter().enumerate() {
            if given[index].is_some() {
                continue;
            }
            let start = hash(name);
            let spares = || (0..SPARE.len()).map(|i| Self::spare(start.wrapping_add(i)));
            let taken = || given.iter().flatten();
            let alone = |look: &Self| taken().all(|other| other.colour != look.colour);
            let free = |look: &Self| taken().all(|other| other != look);
            let look = spares().find(alone).or_else(|| spares().find(free));
            given[index] = Some(look.unwrap_or_else(|| Self::of(name)));
        }
        given.into_iter().flatten().collect()
    }

    /// Looks for the curves of one figure that are named by their rules, where a rule may come again with
    /// other settings: the first has the rule's own look, the others have colours that no rule has.
    pub fn repeated(rules: &[&str]) -> Vec<Self> {
        let mut again = AGAIN.iter().cycle();
        let look = |(index, rule): (usize, &&str)| match rules[..index].contains(rule) {
            true => again.next().map(|&(colour, dash, marker)| Self { colour, dash, marker }),
            false => None,
        };
        let others: Vec<Option<Self>> = rules.iter().enumerate().map(look).collect();
        let first: Vec<&str> = rules
            .iter()
            .zip(&others)
            .filter(|(_, other)| other.is_none())
            .map(|(rule, _)| *rule)
            .collect();
        let mut first = Self::assign(&first).into_iter();
        others.into_iter().filter_map(|other| other.or_else(|| first.next())).collect()
    }

    /// The look of the `index`-th value of a setting (from 0), such as a number of local steps.
    pub fn value(index: usize) -> Self {
        const LOOKS: [(Colour, Dash, Marker); 6] = [
            (Colour::BLUE, Dash::Dashed, Marker::Disc),
            (Colour::VERMILLION, Dash::Dotted, Marker::Square),
            (Colour::GREEN, Dash::DashDot, Marker::Triangle),
            (Colour::PURPLE, Dash::Solid, Marker::Diamond),
            (Colour::INK, Dash::Long, Marker::Ring),
            (Colour::ORANGE, Dash::Dashed, Marker::Square),
        ];
        let (colour, dash, marker) = LOOKS[index % LOOKS.len()];
        Self { colour, dash, marker }
    }

    /// The look of agent number `index` (from 0), for contours and sub-level sets.
    pub fn agent(index: usize) -> Self {
        const COLOURS: [Colour; 6] = [
            Colour::SKY,
            Colour::ORANGE,
            Colour::GREEN,
            Colour::PURPLE,
            Colour::BLUE,
            Colour::VERMILLION,
        ];
        const DASHES: [Dash; 3] = [Dash::Solid, Dash::Dashed, Dash::Dotted];
        const MARKERS: [Marker; 4] =
            [Marker::Disc, Marker::Square, Marker::Triangle, Marker::Diamond];
        Self {
            colour: COLOURS[index % COLOURS.len()],
            // Each time the colours start over they meet other dashes: 18 looks before one repeats.
            dash: DASHES[(index + index / COLOURS.len()) % DASHES.len()],
            marker: MARKERS[index % MARKERS.len()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay::{Behaviour, Policy, Rule};

    #[test]
    fn a_rule_keeps_its_look_however_it_is_spelt() {
        assert_eq!(Style::of("ADA-GD"), Style::of("ada_gd"));
        assert_eq!(Style::of("uniform averaging"), Style::of("FedAvg"));
        assert_eq!(Style::of("FedMGDA+").marker, Marker::Star);
        assert_eq!(Style::of("something new"), Style::of("Something New"));
    }

    #[test]
    fn every_known_look_belongs_to_something_there_is() {
        let rules = Rule::LIST.iter().map(|entry| entry.name);
        let behaviours = Behaviour::LIST.iter().map(|entry| entry.name);
        let policies = Policy::LIST.iter().map(|entry| entry.name);
        let names: Vec<String> = rules.chain(behaviours).chain(policies).map(key).collect();
        for (known, ..) in KNOWN {
            // A rule may carry what is changed about it, as `ada-gd+halve` does, and FedMGDA+ may
            // be written without its plus.
            let belongs =
                |name: &String| known.starts_with(name.as_str()) || name.starts_with(known);
            assert!(names.iter().any(belongs), "{known}");
        }
    }

    #[test]
    fn looks_differ_in_colour_and_in_a_grey_print() {
        let known = KNOWN.iter().map(|&(_, c, d, m)| (c, d, m));
        let all: Vec<_> = known.chain(SPARE.iter().chain(AGAIN).copied()).collect();
        for (i, a) in all.iter().enumerate() {
            let others = &all[i + 1..];
            assert!(others.iter().all(|b| (a.1, a.2) != (b.1, b.2)), "{a:?}: dash and marker");
            let twice = others.iter().any(|b| (a.0, a.1) == (b.0, b.1));
            assert!(!twice || a.0 == Colour::BROWN, "{a:?}: colour and dash");
            assert!(![Marker::Diamond, Marker::Cross].contains(&a.2), "{a:?}: a sign of its own");
        }
    }

    #[test]
    fn a_rule_at_several_step_sizes_has_colours_that_no_other_rule_has() {
        // Figure 8b, which has the most curves.
        let rules = [
            "fedavg",
            "ada-gd",
            "fedavg",
            "fedavg",
            "fedavg+never",
            "fedavg+early-stop",
            "fedavg+keep-best",
            "fedavg+preview",
            "retain",
            "ada-gd+no-projection",
            "ada-gd+halve",
            "fedavg",
        ];
        let looks = Style::repeated(&rules);
        assert_eq!(looks.len(), rules.len());
        assert_eq!((looks[0], looks[8]), (Style::of("fedavg"), Style::of("retain")));
        for (index, look) in looks.iter().enumerate() {
            for (other, that) in looks.iter().enumerate().skip(index + 1) {
                let names = (rules[index], rules[other]);
                assert!(look.colour != that.colour, "{names:?}");
                assert!((look.dash, look.marker) != (that.dash, that.marker), "{names:?}");
            }
        }
    }

    #[test]
    fn what_a_comparison_shows_by_default_has_a_colour_each() {
        let rules = [
            "fedavg+never",
            "fedavg",
            "fedavg+early-stop",
            "fedavg+keep-best",
            "ada-gd+no-projection",
            "ada-gd",
            "ada-gd+halve",
            "retain",
            "fedavg+preview",
        ];
        let styles = Style::assign(&rules);
        for (index, style) in styles.iter().enumerate() {
            let shared = styles[index + 1..].iter().position(|other| other.colour == style.colour);
            assert_eq!(shared, None, "{}", rules[index]);
        }
    }

    #[test]
    fn a_name_without_a_look_takes_a_colour_that_nobody_has() {
        let names = ["fedavg+adam+preview", "fedavg", "retain", "ada-gd", "ada-gd+halve+guard"];
        let styles = Style::assign(&names);
        assert_eq!(styles[1..4], [1, 2, 3].map(|at| Style::of(names[at])));
        for (index, style) in styles.iter().enumerate() {
            assert!(styles[index + 1..].iter().all(|other| other.colour != style.colour));
        }
    }

    #[test]
    fn one_figure_never_repeats_a_look() {
        let names: Vec<String> = (0..SPARE.len()).map(|i| format!("rule {i}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).chain(["fedavg"]).collect();
        let styles = Style::assign(&names);
        for (i, a) in styles.iter().enumerate() {
            assert!(!styles[i + 1..].contains(a));
        }
        assert_eq!(styles.last(), Some(&Style::of("fedavg")));
    }
}
