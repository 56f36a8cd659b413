//! Porting a project of setuptools: facts of the existing one, and with these the files of a new one and what is left to do.
//!
//! [`read`] runs nothing of the project, and [`plan()`] is pure. The list of what a human has to port is as much a result as the
//! files are: what is not known is named, and never guessed. [`write()`] is the only part that changes anything.

pub mod command;
mod copies;
mod cuda;
mod declared;
mod dropped;
mod existing;
mod extension;
mod functions;
mod gaps;
mod kernels;
mod layout;
mod license;
mod metadata;
mod packages;
mod plan;
mod project_file;
mod render;
mod tasks;
mod value;
mod write;

pub use cuda::{CudaSource, Use};
pub use existing::{Command, ExistingProject, Fault, read};
pub use extension::{Extension, Kind};
pub use functions::Entry;
pub use gaps::Gap;
pub use layout::{Layout, NativeModule};
pub use metadata::{Metadata, Person, Version};
pub use packages::{Module, Package, Packages};
pub use plan::{Dependencies, Dropped, Options, Port, Task, plan};
pub use value::{Place, Variable};
pub use write::{destination, write};
