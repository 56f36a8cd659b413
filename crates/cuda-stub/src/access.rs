//! Who touched which bytes of an allocation, and the check that whoever touches them next comes after.

use crate::clock::{Clock, Moment};
use crate::region::Region;

/// What an operation does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Read,
    Write,
}

/// One operation on a stream.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) function: &'static str,
    /// How many calls came before it in the whole run, itself included.
    pub(crate) call: u64,
    pub(crate) stream: u64,
    pub(crate) moment: Moment,
}

impl Place {
    pub(crate) fn text(&self) -> String {
        format!("{} (call {}, stream {})", self.function, self.call, stream_name(self.stream))
    }
}

/// The two default streams by their names, others by their handles.
pub(crate) fn stream_name(handle: u64) -> String {
    match handle {
        0 | 1 => "legacy default".to_owned(),
        2 => "per-thread default".to_owned(),
        _ => format!("{handle:#x}"),
    }
}

struct Access {
    region: Region,
    mode: Mode,
    place: Place,
}

/// Accesses that the host does not know to be over.
#[derive(Default)]
pub(crate) struct History {
    accesses: Vec<Access>,
}

impl History {
    /// Enters an access of `mode` to `region` at `place`, of which `clock` says what came before. Gives the earlier
    /// access that it may race with.
    pub(crate) fn enter(
        &mut self,
        region: Region,
        mode: Mode,
        place: Place,
        clock: &Clock,
        host: &Clock,
    ) -> Option<Place> {
        self.accesses.retain(|earlier| !host.covers(earlier.place.moment));
        let conflict = self.conflict(&region, mode, clock);
        let replaces = |earlier: &Access| {
            region.holds(&earlier.region)
                && clock.covers(earlier.place.moment)
                && (mode == Mode::Write
                    || earlier.mode == Mode::Read && earlier.place.moment.timeline == place.moment.timeline)
        };
        self.accesses.retain(|earlier| !replaces(earlier));
        self.accesses.push(Access { region, mode, place });
        conflict
    }

    /// An earlier access to `region` that is not known to be over, one of both being a write.
    pub(crate) fn conflict(&self, region: &Region, mode: Mode, clock: &Clock) -> Option<Place> {
        let found = self.accesses.iter().find(|earlier| {
            (mode == Mode::Write || earlier.mode == Mode::Write)
                && !clock.covers(earlier.place.moment)
                && earlier.region.meets(region)
        })?;
        Some(found.place.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(moment: Moment) -> Place {
        Place { function: "cuMemcpy", call: 1, stream: 0x10, moment }
    }

    #[test]
    fn a_write_and_what_is_not_ordered_after_it_conflict() {
        let (mut history, host) = (History::default(), Clock::default());
        let (mut one, mut two) = (Clock::default(), Clock::default());
        let moment = one.advance(1);
        let whole = Region::run(0, 100);
        assert!(history.enter(whole, Mode::Write, place(moment), &one, &host).is_none());

        let moment = two.advance(2);
        let conflict = history.enter(Region::run(50, 1), Mode::Read, place(moment), &two, &host).unwrap();
        assert_eq!(conflict.text(), "cuMemcpy (call 1, stream 0x10)");

        two.join(&one);
        let moment = two.advance(2);
        assert!(history.enter(Region::run(50, 1), Mode::Read, place(moment), &two, &host).is_none());
        let moment = one.advance(1);
        assert!(history.enter(whole, Mode::Write, place(moment), &one, &host).is_some(), "a read is still under way");
    }

    #[test]
    fn what_the_host_knows_to_be_over_conflicts_with_nothing() {
        let (mut history, mut host) = (History::default(), Clock::default());
        let (mut one, mut two) = (Clock::default(), Clock::default());
        let moment = one.advance(1);
        history.enter(Region::run(0, 8), Mode::Write, place(moment), &one, &host);
        host.join(&one);
        two.join(&host);
        let moment = two.advance(2);
        assert!(history.enter(Region::run(0, 8), Mode::Write, place(moment), &two, &host).is_none());
        assert_eq!(history.accesses.len(), 1);
    }
}
