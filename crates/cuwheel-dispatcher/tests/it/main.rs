//! The dispatcher's decisions against models of them, and launches against the stand-in driver.

mod choice;
mod counter;
mod fingerprint;
mod launch;
mod specialize;
mod threads;
mod typed_launch;
