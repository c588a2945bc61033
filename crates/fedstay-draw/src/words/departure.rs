//! When an agent is predicted to leave.

use fedstay::forecast::Forecast;

/// The range as somebody in round `now` of a run of at most `asked` rounds would say it: `in 40 to 90 rounds`.
pub fn departure(told: &Forecast, now: u32, asked: u32) -> String {
    if told.soonest > asked.max(now) {
        return format!("not within {asked} rounds");
    }
    let from = |round: u32| round.saturating_sub(now).max(1);
    match (down(from(told.soonest)), up(from(told.latest))) {
        (1, 1) => "in the next round".to_owned(),
        (soonest, latest) if soonest == latest => format!("in {soonest} rounds"),
        (soonest, latest) => format!("in {soonest} to {latest} rounds"),
    }
}

/// A number of rounds with two digits that count: more of them would be claimed and not known.
fn down(rounds: u32) -> u32 {
    rounds - rounds % unit(rounds)
}

fn up(rounds: u32) -> u32 {
    rounds.next_multiple_of(unit(rounds))
}

fn unit(rounds: u32) -> u32 {
    10_u32.pow(rounds.max(1).ilog10().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_departure_is_a_range_from_now_on() {
        let told = Forecast { soonest: 140, likely: 160, latest: 190 };
        assert_eq!(departure(&told, 100, 280), "in 40 to 90 rounds");
        assert_eq!(departure(&told, 189, 280), "in the next round");
        assert_eq!(departure(&told, 150, 280), "in 1 to 40 rounds", "what is over is not ahead");
        assert_eq!(departure(&told, 100, 139), "not within 139 rounds");
        let far = Forecast { soonest: 219, likely: 400, latest: 942 };
        assert_eq!(departure(&far, 100, 280), "in 110 to 850 rounds", "two digits that count");
        let sharp = Forecast { soonest: 105, likely: 105, latest: 105 };
        assert_eq!(departure(&sharp, 100, 280), "in 5 rounds");
    }
}
