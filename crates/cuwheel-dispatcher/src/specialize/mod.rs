//! Kernels that are made for the types of their arguments when they are first launched with them.
//!
//! An [`ArgumentType`] is what counts of an argument: the type, and of arrays the number of dimensions and the order. A
//! [`Template`] says what of that decides between overloads, and which C++ template stands for all of them.
//! [`Specializations`] are what was made so far: found without a lock, and made once however many threads ask.
//!
//! For overloads that are given, and chosen by what arguments convert to, see [`Overloads`](crate::Overloads).

mod argument_type;
mod capability;
mod pattern;
mod specializations;
mod spelling;
mod template;

pub use argument_type::{ArgumentType, ArrayOrder};
pub use capability::capability;
pub use specializations::{Failure, Flight, Making, Recursion, Specializations};
pub use spelling::Spellings;
pub use template::{Bound, Template, TemplateError};
