//! Porting a project of setuptools: facts of the existing one, and with these the files of a new one and what is left to do.
//!
//! [`read`] runs nothing of the project, and [`plan`] is pure. The list of what a human has to port is as much a result as the
//! files are: what is not known is named, and never guessed. Not for copying or writing: [`crate::commands::new`] does.

mod cuda;
mod declared;
mod existing;
mod extension;
mod functions;
mod gaps;
mod license;
mod metadata;
mod packages;
mod value;

pub use cuda::{CudaSource, Use};
pub use existing::{Command, ExistingProject, Fault, read};
pub use extension::{Extension, Kind};
pub use functions::Entry;
pub use gaps::Gap;
pub use metadata::{Metadata, Person, Version};
pub use packages::{Module, Package, Packages};
pub use value::{Place, Variable};
