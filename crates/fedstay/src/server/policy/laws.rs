//! Laws that hold for every policy and every list of them, and what each pair that goes together does.

use super::*;
use crate::message::Landing;
use crate::problem::{Federation, Huber, Instance, Problem};
use crate::record::{Guarantee, Summary};
use crate::{
    About, AgentId, Behaviour, Error, Loss, Mean, Report, Reports, Retain, Seed, Server, Session,
    Standing, StopReason, Vector,
};
use proptest::prelude::*;

/// The policies whose pairs are told one by one; `docs/policies.md` says what each pair does.
const TOLD: [&str; 4] = ["guard", "preview", "early-stop", "keep-best"];

/// Those that go together, in their order.
const PAIRS: [(&str, &str); 5] = [
    ("guard", "early-stop"),
    ("guard", "keep-best"),
    ("preview", "early-stop"),
    ("preview", "keep-best"),
    ("early-stop", "keep-best"),
];

fn named(names: &[&str]) -> Policies {
    names.iter().map(|name| Policy::named(name).unwrap()).collect::<Vec<_>>().into()
}

/// Every list without repetition, in every order, that is accepted.
fn lists() -> Vec<Policies> {
    let mut lists = vec![Vec::new()];
    let mut longest = lists.clone();
    for _ in Policy::LIST {
        let longer = |list: &Vec<&'static str>| {
            let others = Policy::LIST.iter().map(|entry| entry.name);
            let others = others.filter(|name| !list.contains(name));
            others.map(|name| [list.clone(), vec![name]].concat()).collect::<Vec<_>>()
        };
        longest = longest.iter().flat_map(longer).collect();
        lists.extend(longest.clone());
    }
    lists.iter().map(|names| named(names)).filter(|list| list.check().is_ok()).collect()
}

/// Those lists without a policy that shows agents something else whether or not they are near leaving.
fn lists_without_rewards() -> impl Iterator<Item = Policies> {
    let rewards = |policy: &Policy| {
        let facts = policy.facts();
        facts.place == Place::Shows && !facts.keeps
    };
    lists().into_iter().filter(move |list| !list.iter().any(rewards))
}

/// A federation of agents with `F_m(w) = ½‖w − c_m‖²`, which leave when what they are shown satisfies
/// them.
#[derive(Debug, Clone)]
struct Bowls {
    centres: Vec<Vec<f64>>,
    epsilon: f64,
    still_in: Vec<bool>,
}

/// One round of it.
#[derive(Debug, Clone, PartialEq)]
struct Played {
    weights: Vec<f64>,
    decision: Decision,
}

impl Bowls {
    fn new(centres: &[&[f64]], epsilon: f64) -> Self {
        let centres: Vec<Vec<f64>> = centres.iter().map(|centre| centre.to_vec()).collect();
        Self { still_in: vec![true; centres.len()], centres, epsilon }
    }

    fn loss(&self, agent: usize, at: &[f64]) -> f64 {
        self.centres[agent].iter().zip(at).map(|(c, w)| 0.5 * (w - c) * (w - c)).sum()
    }

    /// The mean loss of all agents at these weights.
    fn mean(&self, at: &[f64]) -> f64 {
        (0..self.centres.len()).map(|agent| self.loss(agent, at)).sum::<f64>()
            / self.centres.len() as f64
    }

    fn round(&mut self, server: &mut Server) -> Result<Played, Error> {
        let weights = server.weights().to_vec();
        let at: Vec<Vec<f64>> = (0..self.centres.len())
            .map(|agent| server.broadcast().to(AgentId(agent as u64)).to_vec())
            .collect();
        let gradients: Vec<Vec<f64>> =
            at.iter().zip(&self.centres).map(|(at, c)| minus(at, c)).collect();
        let (mut reports, mut goodbyes) = (Vec::new(), Vec::new());
        for agent in (0..at.len()).filter(|agent| self.still_in[*agent]).collect::<Vec<_>>() {
            let (id, g) = (AgentId(agent as u64), Vector::F64(&gradients[agent]));
            let loss = self.loss(agent, &at[agent]);
            if loss <= self.epsilon {
                self.still_in[agent] = false;
                goodbyes.push(id);
            } else {
                let report = Report::new(id, Loss::Exact(loss).leaves_at(self.epsilon), g);
                reports.push(Report { gradient: Some(g), ..report });
            }
        }
        let reports = Reports::with_goodbyes(weights.len(), reports, goodbyes)?;
        Ok(Played { weights, decision: server.step(&reports)? })
    }

    /// Plays until the server stops.
    fn play(&mut self, server: &mut Server, rounds: u32) -> Vec<Played> {
        server.expect(rounds);
        let mut played: Vec<Played> = Vec::new();
        while played.len() < rounds as usize
            && played.last().is_none_or(|last| last.decision.stop.is_none())
        {
            played.push(self.round(server).unwrap());
        }
        played
    }

    fn left(&self) -> usize {
        self.still_in.iter().filter(|still_in| !**still_in).count()
    }
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn server(start: &[f64], step_size: f64, policies: impl Into<Policies>) -> Server {
    let server = Server::new(start.to_vec(), Mean::default(), step_size).unwrap();
    server.with_policy(policies).unwrap()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

prop_compose! {
    /// Some agents, and where the server starts.
    fn federations()(dimension in 1usize..4, agents in 1usize..5)(
        centres in prop::collection::vec(prop::collection::vec(-2.0..2.0f64, dimension), agents),
        start in prop::collection::vec(-3.0..3.0f64, dimension),
        epsilon in 0.01..0.5f64,
        step_size in 0.1..1.9f64,
    ) -> (Bowls, Vec<f64>, f64) {
        let still_in = vec![true; centres.len()];
        (Bowls { centres, epsilon, still_in }, start, step_size)
    }
}

#[test]
fn what_does_not_go_together_is_refused_by_name_with_what_to_write_instead() {
    let names = || Policy::LIST.iter().map(|entry| entry.name);
    for (earlier, later) in names().flat_map(|earlier| names().map(move |later| (earlier, later))) {
        let pair = named(&[earlier, later]).check();
        let told = TOLD.contains(&earlier) && TOLD.contains(&later);
        assert!(!told || pair.is_ok() == PAIRS.contains(&(earlier, later)), "{earlier}, {later}");
        let Err(error) = pair else { continue };
        let said = error.to_string();
        let begins = format!("the policy `{later}` cannot come after `{earlier}`: ");
        assert!(said.starts_with(&begins), "{said}");
        assert!(said.contains("write `") || said.contains("leave"), "{said}");
        // The order that it asks for is one.
        if said.contains("write `") {
            named(&[later, earlier]).check().unwrap();
        }
    }
    // A list goes together if its pairs do.
    for list in lists() {
        let pairs = list.iter().enumerate().flat_map(|(index, later)| {
            list[..index].iter().map(|earlier| Policies::from([earlier.clone(), later.clone()]))
        });
        assert!(pairs.into_iter().all(|pair| pair.check().is_ok()), "{list}");
    }
    let told = |list: &&Policies| list.iter().all(|policy| TOLD.contains(&policy.name()));
    assert_eq!(lists().iter().filter(told).count(), 12, "none, four, five pairs, two of three");
    // What a preview delivers is said once.
    let mut content = Preview::default();
    content.until = Until::Content;
    let said = Policies::from([content.into(), KeepBest::default().into()]).check().unwrap_err();
    assert!(said.to_string().contains("set policy.until = \"rounds\""), "{said}");
    // And a server takes no list that is refused.
    let start = Server::new(vec![0.0], Mean::default(), 0.1).unwrap();
    assert!(start.with_policy(named(&["guard", "preview"])).is_err());
}

#[test]
fn lists_are_written_as_short_as_they_can_be_and_read_however_they_are_written() {
    let written = |policies: &Policies| serde_json::to_string(policies).unwrap();
    assert_eq!(written(&Policies::default()), r#"{"kind":"none"}"#);
    assert_eq!(written(&Guard::default().into()), r#"{"kind":"guard","delta":0.02}"#);
    let two = named(&["guard", "keep-best"]);
    assert_eq!(written(&two), r#"[{"kind":"guard","delta":0.02},{"kind":"keep-best"}]"#);
    let read = |text: &str| serde_json::from_str::<Policies>(text).unwrap();
    for list in lists() {
        assert_eq!(read(&written(&list)), list);
    }
    for text in [r#"["guard","none","keep-best"]"#, r#"[{"kind":"guard"},"keep-best"]"#] {
        assert_eq!(read(text), two, "{text}");
    }
    assert_eq!(read(r#""preview""#), named(&["preview"]));
    assert_eq!([read("[]"), read(r#""none""#)], [Policies::default(), Policies::default()]);
    let refused = |text: &str| serde_json::from_str::<Policies>(text).unwrap_err().to_string();
    assert!(
        refused(r#"["gaurd"]"#).contains("unknown variant `gaurd`"),
        "{}",
        refused("[\"gaurd\"]")
    );
    assert!(refused(r#"[{"kind":"guard","detla":1}]"#).contains("unknown field `detla`"));
    assert!(
        Policies::LIST
            .iter()
            .map(|entry| entry.name)
            .eq(["none"].into_iter().chain(Policy::LIST.iter().map(|entry| entry.name)))
    );
}

proptest! {
    /// Where nobody is near leaving, no list changes a bit of the run, unless it has a reward.
    #[test]
    fn what_has_nothing_to_do_changes_no_bit((bowls, start, step_size) in federations()) {
        let far = Bowls { epsilon: -1e6, ..bowls };
        let mut alone = server(&start, step_size, Policies::default());
        let expected = far.clone().play(&mut alone, 6);
        for list in lists_without_rewards() {
            let mut server = server(&start, step_size, list.clone());
            let played = far.clone().play(&mut server, 6);
            for (played, expected) in played.iter().zip(&expected) {
                prop_assert_eq!(bits(&played.weights), bits(&expected.weights), "{}", list);
                prop_assert_eq!(&played.decision.stop, &expected.decision.stop, "{}", list);
            }
            prop_assert_eq!(bits(server.weights()), bits(alone.weights()), "{}", list);
            let broadcast = server.broadcast();
            for agent in 0..far.centres.len() {
                prop_assert!(broadcast.personal(AgentId(agent as u64)).is_none(), "{}", list);
            }
        }
    }

    /// An early stop that never stops, and keep-best but for what is delivered, change no bit of what
    /// the others in the list do.
    #[test]
    fn members_that_do_nothing_leave_the_others_as_they_are((bowls, start, step_size) in federations()) {
        for first in ["guard", "preview"] {
            let mut alone = server(&start, step_size, named(&[first]));
            let expected = bowls.clone().play(&mut alone, 8);
            let never: Policy = EarlyStop { margin: -1e100 }.into();
            for other in [never, KeepBest::default().into()] {
                let delivers = other.facts().place == Place::Delivers;
                let list = Policies::from([Policy::named(first).unwrap(), other]);
                let mut server = server(&start, step_size, list.clone());
                let played = bowls.clone().play(&mut server, 8);
                prop_assert_eq!(bits(server.weights()), bits(alone.weights()), "{}", list);
                prop_assert_eq!(played.len(), expected.len());
                for (played, expected) in played.iter().zip(&expected) {
                    prop_assert_eq!(bits(&played.weights), bits(&expected.weights), "{}", list);
                    let mut decision = played.decision.clone();
                    if delivers && decision.landed.is_some() {
                        prop_assert_eq!(decision.landed, Some(Landing::No));
                        decision.landed = expected.decision.landed;
                    }
                    prop_assert_eq!(&decision, &expected.decision, "{}", list);
                }
                if !delivers {
                    prop_assert_eq!(bits(server.delivered()), bits(alone.delivered()), "{}", list);
                }
            }
        }
    }

    #[test]
    fn the_order_of_reports_does_not_matter_to_any_list((bowls, start, step_size) in federations()) {
        for list in lists() {
            let mut server = server(&start, step_size, list.clone());
            let mut again = server.clone();
            for _ in 0..4 {
                let told: Vec<(f64, Vec<f64>)> = (0..bowls.centres.len()).map(|agent| {
                    let at = server.broadcast().to(AgentId(agent as u64)).to_vec();
                    (bowls.loss(agent, &at), minus(&at, &bowls.centres[agent]))
                }).collect();
                let reports: Vec<Report<'_>> = told.iter().enumerate().map(|(agent, (loss, g))| {
                    Report::new(AgentId(agent as u64), Loss::Exact(*loss).leaves_at(bowls.epsilon), Vector::F64(g))
                }).collect();
                let reversed: Vec<Report<'_>> = reports.iter().rev().cloned().collect();
                let one = server.step(&Reports::new(start.len(), reports).unwrap()).unwrap();
                let other = again.step(&Reports::new(start.len(), reversed).unwrap()).unwrap();
                prop_assert_eq!(one, other, "{}", list);
                prop_assert_eq!(server.state(), again.state(), "{}", list);
            }
        }
    }

    /// Saved with its parameters, or only its memory beside them, every list continues bit for bit.
    #[test]
    fn a_saved_list_goes_on_as_if_nothing_had_happened((bowls, start, step_size) in federations()) {
        for list in lists() {
            let (mut bowls, mut server) = (bowls.clone(), server(&start, step_size, list.clone()));
            server.expect(9);
            for _ in 0..3 {
                if bowls.round(&mut server).unwrap().decision.stop.is_some() {
                    break;
                }
            }
            let text = serde_json::to_string(&server.state()).unwrap();
            let mut resumed = Server::from_state(serde_json::from_str(&text).unwrap()).unwrap();
            let progress = serde_json::to_string(&server.progress().unwrap()).unwrap();
            let beside = Server::new(server.weights().to_vec(), Mean::default(), step_size).unwrap();
            let mut beside = beside.with_policy(list.clone()).unwrap();
            beside.resume(serde_json::from_str(&progress).unwrap()).unwrap();
            prop_assert_eq!(beside.state(), server.state(), "{}", list);
            if *server.policies() != list {
                let smuggled = beside.clone().with_policy(server.policies().clone()).unwrap_err();
                prop_assert!(smuggled.to_string().contains("policy.memory"), "{smuggled}");
            }
            for _ in 0..3 {
                let mut other = bowls.clone();
                let played = other.round(&mut resumed).unwrap();
                prop_assert_eq!(&played, &bowls.round(&mut server).unwrap(), "{}", list);
                prop_assert_eq!(server.state(), resumed.state(), "{}", list);
            }
        }
    }

    /// For convex losses and exact gradients nobody leaves under a list with one that keeps everybody,
    /// except with the first weights of all.
    #[test]
    fn a_list_keeps_everybody_whom_one_of_its_members_does((bowls, start, step_size) in federations()) {
        let content_at_start = (0..bowls.centres.len()).any(|a| bowls.loss(a, &start) <= bowls.epsilon + 0.02);
        prop_assume!(!content_at_start);
        for list in lists_without_rewards().filter(|list| list.keep()) {
            let (mut bowls, mut server) = (bowls.clone(), server(&start, step_size, list.clone()));
            for played in bowls.play(&mut server, 12) {
                prop_assert_eq!(played.decision.kept, Some(true), "{}", list);
            }
            prop_assert_eq!(bowls.left(), 0, "{}", list);
        }
    }
}

#[test]
fn after_an_error_every_list_is_as_it_was() {
    for list in lists().into_iter().filter(|list| !list.is_empty()) {
        let mut bowls = Bowls::new(&[&[0.0], &[3.0]], 0.1);
        let mut server = server(&[1.5], 0.5, list.clone());
        bowls.play(&mut server, 3);
        let before = server.state();
        let g = [1.0];
        let standing = Standing::Open { loss: Loss::AtLeast(1.0), epsilon: 0.1 };
        let vague = Report::new(AgentId(1), standing, Vector::F64(&g));
        let sound = Report::new(AgentId(0), Loss::Exact(2.0).leaves_at(0.1), Vector::F64(&g));
        let error = server.step(&Reports::new(1, vec![sound, vague]).unwrap()).unwrap_err();
        assert!(matches!(error, Error::NeedsExactLoss { .. }), "{error}");
        assert_eq!(server.state(), before, "{list}");
    }
}

#[test]
fn a_memory_of_other_policies_is_refused() {
    let saved = |list: &[&str]| {
        let mut server = server(&[1.5], 0.5, named(list));
        Bowls::new(&[&[0.0], &[3.0]], 0.1).play(&mut server, 3);
        server.progress().unwrap()
    };
    let mut two = server(&[1.5], 0.5, named(&["guard", "keep-best"]));
    let error = two.resume(saved(&["keep-best"])).unwrap_err().to_string();
    assert!(error.contains("it remembers for 1 policies, and the server has 2"), "{error}");
    let mut none = server(&[1.5], 0.5, Policies::default());
    assert!(none.resume(saved(&["preview", "early-stop"])).is_err());
    two.resume(saved(&["guard", "keep-best"])).unwrap();
}

/// Averaging with steps that are too long: it swings to and fro, and ever farther.
fn swinging() -> (Bowls, [f64; 2], f64) {
    (Bowls::new(&[&[0.0, 0.0], &[1.0, 0.0]], 0.05), [3.0, 1.0], 2.02)
}

fn best_of(bowls: &Bowls, played: &[Played]) -> Vec<f64> {
    let mean = |played: &&Played| bowls.mean(&played.weights);
    let best = played.iter().min_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap();
    best.weights.clone()
}

#[test]
fn guard_and_keep_best_deliver_the_best_of_the_guarded_run() {
    let (bowls, start, step_size) = swinging();
    let (mut guarded, mut both) = (bowls.clone(), bowls.clone());
    let mut guard = server(&start, step_size, named(&["guard"]));
    let expected = guarded.play(&mut guard, 12);
    let mut server = server(&start, step_size, named(&["guard", "keep-best"]));
    let played = both.play(&mut server, 12);
    assert!(played.iter().any(|played| played.decision.guarded), "the guard had something to do");
    assert_eq!((played, both.left()), (expected.clone(), 0));
    assert_eq!(server.delivered(), best_of(&bowls, &expected));
    assert_ne!(server.delivered(), server.weights(), "the last is not the best");
}

#[test]
fn after_the_guard_an_early_stop_looks_at_the_guarded_step() {
    let bowls = Bowls::new(&[&[0.0], &[1.0]], 0.05);
    let run = |list: Policies| {
        let (mut bowls, mut server) = (bowls.clone(), server(&[3.0], 0.4, list));
        let played = bowls.play(&mut server, 40);
        let guarded = played.iter().any(|played| played.decision.guarded);
        (played.last().unwrap().decision.stop, played.len(), guarded, bowls.left())
    };
    let margin = |margin| Policy::from(EarlyStop { margin });
    let guard = || Policy::from(Guard::default());
    // Alone it stops before the rule's step would lose the first; behind the guard there is no such step.
    let (stop, rounds, _, left) = run(margin(0.0).into());
    assert_eq!((stop, left), (Some(StopReason::EarlyStop), 0));
    let (stop, longer, guarded, left) = run([guard(), margin(0.0)].into());
    assert!(longer > rounds && guarded && left == 0, "{longer} after {rounds}");
    assert_ne!(stop, Some(StopReason::EarlyStop));
    // With more margin than the guard has slack it still has a say.
    let (stop, shorter, _, left) = run([guard(), margin(0.3)].into());
    assert_eq!((stop, left), (Some(StopReason::EarlyStop), 0));
    assert!(shorter < longer);
}

#[test]
fn early_stop_and_keep_best_deliver_the_best_until_the_stop() {
    let (bowls, start, step_size) = swinging();
    let mut server = server(&start, step_size, named(&["early-stop", "keep-best"]));
    let mut run = bowls.clone();
    let played = run.play(&mut server, 40);
    let stop = played.last().unwrap().decision.stop;
    assert_eq!((stop, run.left()), (Some(StopReason::EarlyStop), 0));
    assert_eq!(server.delivered(), best_of(&bowls, &played));
}

/// The control of previews that lead in a random direction holds nobody. For convex losses a prediction
/// is a lower bound, so an early stop behind it does: the run ends before somebody is shown enough.
#[test]
fn after_previews_an_early_stop_looks_at_what_agents_are_shown() {
    let bowls = Bowls::new(&[&[0.0, 0.0], &[1.0, 0.0], &[0.0, 1.0]], 0.1);
    let run = |list: Policies| {
        let (mut bowls, mut server) = (bowls.clone(), server(&[2.0, 2.0], 0.3, list));
        let mut shown = Vec::new();
        server.expect(60);
        loop {
            let before: Vec<Vec<f64>> =
                (0..3).map(|agent| server.broadcast().to(AgentId(agent)).to_vec()).collect();
            let played = bowls.round(&mut server).unwrap();
            shown.push(played.clone());
            if let Some(stop) = played.decision.stop {
                let after = (0..3).map(|agent| server.broadcast().to(AgentId(agent)).to_vec());
                assert!(stop != StopReason::EarlyStop || before.into_iter().eq(after));
                return (Some(stop), bowls.left(), shown);
            }
            if shown.len() == 60 {
                return (None, bowls.left(), shown);
            }
        }
    };
    let preview = |by| {
        let mut preview = Preview::default();
        preview.by = by;
        Policy::from(preview)
    };
    let stop = || Policy::from(EarlyStop::default());
    let (_, left, _) = run(preview(By::Noise).into());
    assert!(left > 0, "without the early stop somebody leaves");
    let (why, left, _) = run([preview(By::Noise), stop()].into());
    assert_eq!((why, left), (Some(StopReason::EarlyStop), 0));
    // Previews by cut hold everybody, so there is nothing to stop for, although the server's own model
    // would satisfy somebody long before.
    let alone = run(preview(By::Cut).into());
    let (why, left, played) = run([preview(By::Cut), stop()].into());
    assert_eq!((why, left), (None, 0));
    assert!(played.iter().any(|played| !played.decision.shown.is_empty()));
    assert_eq!(played, alone.2);
}

/// What is judged and delivered is the server's own model, never a preview, by what previews tell of it.
#[test]
fn preview_and_keep_best_deliver_the_best_of_the_servers_own_models() {
    let (bowls, start, step_size) = (Bowls::new(&[&[0.0], &[1.0]], 0.05), [3.0], 2.02);
    let mut server = server(&start, step_size, named(&["preview", "keep-best"]));
    let mut run = bowls.clone();
    let played = run.play(&mut server, 12);
    assert!(played.iter().any(|played| !played.decision.shown.is_empty()));
    assert_eq!(run.left(), 0);
    let place = played.iter().position(|played| played.weights == server.delivered()).unwrap();
    // By what the server knew: the reported losses, or for agents that were shown something else, what
    // follows from them.
    let known = |played: &Played| {
        let real = |agent: usize| {
            let shown = played.decision.shown.iter().find(|s| s.agent == AgentId(agent as u64));
            shown.map_or_else(|| bowls.loss(agent, &played.weights), |shown| shown.real)
        };
        (real(0) + real(1)) / 2.0
    };
    let lowest = played.iter().map(known).fold(f64::INFINITY, f64::min);
    assert_eq!(known(&played[place]), lowest);
    let (delivered, last) = (bowls.mean(server.delivered()), bowls.mean(server.weights()));
    assert!(delivered < last, "{delivered} {last}");
    assert_eq!(
        played.last().unwrap().decision.landed,
        Some(Landing::No),
        "the last is not delivered"
    );
}

fn on_huber(rule: impl Into<crate::Rule>, list: Policies) -> Summary {
    let instance: Instance = Problem::Huber(Huber::default()).build(Seed(1)).unwrap();
    let epsilon = vec![instance.epsilon; instance.oracles.len()];
    let federation = Federation::new(&instance, &epsilon, &Behaviour::default()).unwrap();
    let server = Server::new(instance.start.clone(), rule, instance.step_size).unwrap();
    let server = server.with_policy(list).unwrap();
    let mut session = Session::new(server, federation, 300, About::default()).unwrap();
    session.run(&mut []).unwrap().unwrap()
}

/// A run is certified where all members of the list leave standing what one of them proves.
#[test]
fn certificates_hold_where_every_member_preserves_them() {
    assert!(!on_huber(Mean::default(), Policies::default()).left.is_empty());
    for list in lists_without_rewards().filter(|list| list.keep()) {
        let summary = on_huber(Mean::default(), list.clone());
        assert_eq!(summary.left.len(), 0, "{list}");
        assert_eq!(summary.guarantee, Some(Guarantee::Certified), "{list}");
        assert_eq!(summary.policy, list.to_string());
        assert_eq!(summary.guarded.is_some(), summary.policy.contains("guard"), "{list}");
    }
    let mut noise = Preview::default();
    noise.by = By::Noise;
    let summary = on_huber(Retain::default(), [noise.into(), KeepBest::default().into()].into());
    assert_eq!(
        summary.guarantee,
        Some(Guarantee::Estimated),
        "the rule's proof is not about previews"
    );
}
