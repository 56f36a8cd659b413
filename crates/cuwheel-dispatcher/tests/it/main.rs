//! The dispatcher's decisions against models of them.

mod choice;
mod fingerprint;
mod threads;
