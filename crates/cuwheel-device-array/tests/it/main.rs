//! Tests of the crate from outside: one binary, one file per subject.

mod copies;
mod driver;
mod dtype;
mod layout;
mod memory;
mod model;
mod streams;
mod stub;
mod views;

use cuwheel_device_array::{Classified, Error};
use expect_test::Expect;

/// Compares what users are told, and the class of exception that they get, with what was agreed.
fn refusals(expected: &Expect, errors: impl IntoIterator<Item = Error>) {
    let lines = errors.into_iter().map(|error| format!("{:?}: {error}\n", error.kind()));
    expected.assert_eq(&lines.collect::<String>());
}
