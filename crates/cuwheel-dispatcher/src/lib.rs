//! Type codes, conversion rules and overload choice, what a kernel dispatcher decides by; and kernels and their launches.
//! Without Python.
//!
//! A type is known by its [`TypeCode`] alone. A [`ConversionTable`] says which type may stand in for which other and at
//! what price, [`Overloads`] find the one signature that fits given arguments best, a [`Fingerprint`] is a string of
//! bytes that is equal for values of equal type, and a [`Memo`] remembers what was found out about one.
//!
//! Kernels are loaded and launched by [`launch`], compiled by [`compile`], and made for the types of their arguments by
//! [`specialize`].
//!
//! ```
//! use cuwheel_dispatcher::{Choice, Conversion, ConversionTable, Overloads, Rules, TypeCode};
//!
//! let code = |number: i64| TypeCode::try_from(number);
//! let (float32, float64) = (code(8)?, code(9)?);
//! let conversions = ConversionTable::new();
//! conversions.set(float32, float64, Conversion::Promote);
//!
//! let mut overloads = Overloads::new(1);
//! overloads.insert(vec![float64], "kernel for float64")?;
//! let rules = Rules { exact_only: false, allow_unsafe: false };
//! assert_eq!(overloads.choose(&[Some(float32)], &conversions, rules), Choice::One(&"kernel for float64"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_code)]

mod choice;
#[expect(unsafe_code, reason = "the compiler is NVRTC, which is C")]
pub mod compile;
mod conversion;
mod fingerprint;
#[expect(unsafe_code, reason = "kernels are launched by the driver, which is C")]
pub mod launch;
mod memo;
mod overloads;
pub mod specialize;
mod type_code;

pub use choice::{Choice, Rules};
pub use conversion::{Conversion, ConversionTable};
pub use fingerprint::{Fingerprint, Item, Layout};
pub use memo::Memo;
pub use overloads::{Overloads, OverloadsError};
pub use type_code::{TypeCode, TypeCodeError};
