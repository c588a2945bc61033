//! What an agent is called: its name, or its number where it has none. Everything that a person reads
//! asks here, and [`AgentId`] has no `Display`, so that no text prints a number by mistake.

use super::AgentId;

/// The longest name that is shown, in characters: agents choose their names.
const LONGEST: usize = 40;

/// What an agent is called in a sentence: its name, or `agent 3`.
pub fn called(id: AgentId, name: Option<&str>) -> String {
    name.map_or_else(|| format!("agent {}", id.0), cut)
}

/// What an agent is called where a heading says that it is one: its name, or `3`.
pub fn called_briefly(id: AgentId, name: Option<&str>) -> String {
    name.map_or_else(|| id.0.to_string(), cut)
}

/// What several agents are called in a sentence: `agent 3, 5`, or by their names.
pub fn called_together<'a>(agents: impl IntoIterator<Item = (AgentId, Option<&'a str>)>) -> String {
    let agents: Vec<(AgentId, Option<&str>)> = agents.into_iter().collect();
    let named = agents.iter().any(|(_, name)| name.is_some());
    let call = if named { called } else { called_briefly };
    let names: Vec<String> = agents.iter().map(|(id, name)| call(*id, *name)).collect();
    let before = if named { "" } else { "agent " };
    format!("{before}{}", names.join(", "))
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_called_by_its_name_wherever_it_has_one() {
        let (one, two) = (AgentId(1), AgentId(2));
        assert_eq!((called(one, Some("NSW")), called(one, None)), ("NSW".into(), "agent 1".into()));
        assert_eq!(called_briefly(one, None), "1");
        assert_eq!(called_together([(one, None), (two, None)]), "agent 1, 2");
        assert_eq!(called_together([(one, Some("NSW")), (two, Some("VIC"))]), "NSW, VIC");
        assert_eq!(called_together([(one, Some("NSW")), (two, None)]), "NSW, agent 2");
        let long = "ä".repeat(41);
        assert_eq!(called(one, Some(&long)), format!("{}…", "ä".repeat(40)));
    }
}
