//! Tests of the crate from outside: one binary, one file per subject.

mod dtype;
mod layout;
