//! `[rule]`: how the server aggregates.

use super::allowed::{COUNT, LARGEST};
use super::{Allowed, Key, On, Section};
use fedstay::Rule;

pub(super) static SECTION: Section = Section {
    keys: &[
        Key::kind("rule.kind", "\"ada-gd\"", "how the server aggregates: see `fedstay list rules`")
            .shares(),
        Key::new(
            "rule.delta",
            "0.05",
            Allowed::NUMBER,
            "the slack δ: how far above its target loss an agent counts as about to leave",
        )
        .otherwise("for ada-gd and retain the problem's own on a problem")
        .shares(),
        Key::new(
            "rule.on_settled",
            "\"halve\"",
            Allowed::Word(&["stop", "halve"], &[]),
            "when everybody is about to leave: `stop`, or `halve` the step size",
        ),
        Key::new(
            "rule.projection",
            "false",
            Allowed::Switch,
            "`false` is the control without the projection",
        ),
        Key::new(
            "rule.margin",
            "0.05",
            Allowed::NUMBER,
            "added to every target loss, against agents that leave a little early",
        ),
        Key::new(
            "rule.horizon",
            "0.5",
            Allowed::NUMBER,
            "adds this times ‖g‖² too; J·a covers agents that look J steps of size a ahead",
        ),
        Key::new(
            "rule.base",
            "\"descent\"",
            Allowed::Word(&["level", "descent"], &[]),
            "where to go when no floor is in the way",
        ),
        Key::new(
            "rule.floors",
            "false",
            Allowed::Switch,
            "whether floors are kept; `false` is the control, for agents that never leave",
        ),
        Key::new(
            "rule.trust",
            "\"auto\"",
            Allowed::Word(&["auto", "region", "proof"], &[]),
            "keep steps within a radius in which predictions held: for gradients in single precision \
             (`auto`), always (`region`) or never (`proof`)",
        ),
        Key::new(
            "rule.landing",
            "false",
            Allowed::Switch,
            "whether to bring everybody under their target loss at the end",
        ),
        Key::new(
            "rule.smoothness",
            "1.0",
            Allowed::NUMBER,
            "a constant H such that every loss is H-smooth, which certifies the landing",
        )
        .otherwise("the problem's own on a problem, unknown elsewhere"),
        Key::new(
            "rule.convex",
            "true",
            Allowed::Switch,
            "whether every loss is convex, so that contradicting reports prove that no model within a radius satisfies all",
        )
        .otherwise("the problem's own on a problem, unknown elsewhere"),
        Key::new(
            "rule.on_unrealizable",
            "\"least\"",
            Allowed::Word(&["stop", "least"], &[]),
            "once that is proved: `stop`, or go to the `least` level that is possible",
        ),
        Key::new(
            "rule.bench",
            "false",
            Allowed::Switch,
            "whether one agent may be left out when nobody else can be served because of it",
        ),
        Key::new(
            "rule.share",
            "0.1",
            Allowed::NUMBER,
            "the slack δ of each agent, as a share of how far above its target loss it is at first",
        ),
        Key::new(
            "rule.price",
            "8.0",
            Allowed::NUMBER,
            "how many times harder than under averaging an agent may pull at first; then it adapts",
        ),
        Key::new(
            "rule.watch",
            "false",
            Allowed::Switch,
            "whether an agent whose reports contradict each other pulls less",
        ),
        Key::new(
            "rule.c",
            "4.0",
            Allowed::NUMBER,
            "the factor for the weights of agents that are not content",
        ),
        Key::new(
            "rule.variant",
            "\"load\"",
            Allowed::Word(&["weight", "load"], &[]),
            "the weights apply to the answers (`weight`), or also to the samples (`load`)",
        ),
        Key::new(
            "rule.reading",
            "\"sigmoid\"",
            Allowed::Word(&["gradient", "sigmoid"], &[]),
            "weigh by σ(x)(1 − σ(x)) (`gradient`), or by σ(x) (`sigmoid`); x = F − rho",
        ),
        Key::new("rule.rho", "0.2", Allowed::NUMBER, "the requirement of every agent")
            .otherwise("the agent's epsilon"),
        Key::new(
            "rule.e",
            "0.1",
            Allowed::NUMBER,
            "fedmgda-plus: how far a weight may be from 1/M; maxfl: added to the sum of the weights",
        )
        .shares(),
        Key::new(
            "rule.q",
            "1.0",
            Allowed::NUMBER,
            "how much more a large loss counts; 0 is fedavg",
        )
        .shares(),
        Key::new(
            "rule.gamma",
            "0.1",
            Allowed::NUMBER,
            "the step size of the mixture; 0 is the plain mean",
        )
        .shares(),
        Key::new(
            "rule.alpha",
            "0.1",
            Allowed::NUMBER,
            "the share of the agents, those with the largest losses, that do not give way",
        )
        .shares(),
        Key::new(
            "rule.tau",
            "1",
            Allowed::Count(0, COUNT),
            "for how many rounds the last gradient of an absent agent counts",
        )
        .shares(),
        Key::new(
            "rule.weigh",
            "\"samples\"",
            Allowed::Word(&["uniform", "samples"], &[]),
            "all agents count alike (`uniform`), or each by the samples behind its report",
        )
        .shares(),
        Key::new(
            "rule.nu",
            "\"unit\"",
            Allowed::Word(&["one", "unit", "clipped", "polyak"], &[]),
            "what the mean is multiplied by: 1, 1/‖ḡ‖, min(1, 1/‖ḡ‖), or Polyak's step",
        )
        .shares(),
        Key::new(
            "rule.level",
            "0.1",
            Allowed::NUMBER,
            "the mean loss that `polyak` aims at: the smallest there can be",
        )
        .shares(),
        Key::new(
            "rule.mode",
            "\"plus\"",
            Allowed::Word(&["times", "plus", "gradient"], &[]),
            "how much an agent differs, times or plus how badly it would be served without itself, or \
             only the former",
        )
        .shares(),
        Key::new(
            "rule.leavers",
            "\"drop\"",
            Allowed::Word(&["keep", "drop"], &[]),
            "whether the variate of an agent that leaves stays in the mean (`keep`) or goes with it",
        ),
        Key::new(
            "rule.beta",
            "0.5",
            Allowed::NUMBER,
            "how fast agents' weights follow how their groups are served; 0 is fedavg by samples",
        ),
        Key::new(
            "rule.seed",
            "0",
            Allowed::Count(0, LARGEST),
            "the seed of the orders in which conflicts are resolved",
        )
        .shares(),
    ],
    ..Section::of::<Rule>(On::Anything, "rule", "How the server aggregates")
};
