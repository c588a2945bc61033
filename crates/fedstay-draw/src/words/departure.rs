//! When an agent is predicted to leave.

use fedstay::forecast::Forecast;

/// The range as somebody in round `now` of a run of at most `asked` rounds would say it: `in 40 to 90 rounds`.
pub fn departure(told: &Forecast, now: u32, asked: u32) -> String {
    if told.soonest > asked.max(now) {
        return format!("not within {asked} rounds");
    }
    let from = |round: u32| round.saturating_sub(now).max(1);
    match (from(told.soonest), from(told.latest)) {
        (1, 1) => "in the next round".to_owned(),
        (soonest, latest) if soonest == latest => format!("in {soonest} rounds"),
        (soonest, latest) => format!("in {soonest} to {latest} rounds"),
    }
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
        let sharp = Forecast { soonest: 105, likely: 105, latest: 105 };
        assert_eq!(departure(&sharp, 100, 280), "in 5 rounds");
    }
}
