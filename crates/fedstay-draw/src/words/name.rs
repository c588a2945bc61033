//! What a run is called, by its header: in the terminal, on the page, in reports and in pictures.

use fedstay::record::Header;

/// What the server did and on what: `fedavg+adam+preview on digits, seed 0`. The header's rule has
/// everything that was added to it: changes, optimiser, policy, behaviour.
pub fn title(header: &Header) -> String {
    format!("{} on {}, seed {}", header.rule, header.on, header.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fedstay_sim::experiment::Experiment;
    use fedstay_sim::run::Trial;

    #[test]
    fn a_run_is_called_by_everything_that_was_added_to_its_rule() {
        let text = "[rule]\nkind = \"ada-gd\"\non_settled = \"halve\"\n\
                    [policy]\nkind = \"keep-best\"\n[behaviour]\nkind = \"never\"\n\
                    [problem]\nkind = \"observation-3\"\n";
        let trial = Trial::new(Experiment::parse(text, &[]).unwrap()).unwrap();
        let wanted = "ada-gd+halve+keep-best+never on observation-3, seed 0";
        assert_eq!(title(trial.header()), wanted);
    }
}
