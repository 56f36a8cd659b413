//! Vector clocks: what is known to have happened before what. A timeline is a stream; the host has none of its own, because
//! how its threads order themselves cannot be seen from here and is taken to be right.

use crate::handle::NumberMap;

/// A point on the timeline of one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment {
    pub(crate) timeline: u64,
    pub(crate) tick: u64,
}

/// For each timeline, up to where it is known to have come.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Clock {
    ticks: NumberMap<u64>,
}

impl Clock {
    pub(crate) fn covers(&self, moment: Moment) -> bool {
        self.ticks.get(&moment.timeline).is_some_and(|tick| *tick >= moment.tick)
    }

    /// Learns all that `other` knows.
    pub(crate) fn join(&mut self, other: &Self) {
        for (timeline, tick) in &other.ticks {
            let known = self.ticks.entry(*timeline).or_default();
            *known = (*known).max(*tick);
        }
    }

    /// Takes the next step on `timeline`.
    pub(crate) fn advance(&mut self, timeline: u64) -> Moment {
        let tick = self.ticks.entry(timeline).or_default();
        *tick += 1;
        Moment { timeline, tick: *tick }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_covers_what_it_joined_and_not_what_came_later() {
        let (mut first, mut second) = (Clock::default(), Clock::default());
        let before = first.advance(1);
        second.join(&first);
        let after = first.advance(1);
        assert!(second.covers(before));
        assert!(!second.covers(after));
        assert!(first.covers(after));
    }
}
