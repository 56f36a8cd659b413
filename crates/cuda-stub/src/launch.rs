//! Launches.

use crate::access::Place;
use crate::driver::Driver;
use crate::error::Outcome;
use crate::journal::Launch;

impl Driver {
    pub(crate) fn launch_at(&mut self, _stream: u64, launch: Launch, _place: &Place) -> Outcome {
        self.journal.launched(launch);
        Ok(())
    }
}
