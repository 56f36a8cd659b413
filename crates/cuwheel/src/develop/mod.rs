//! Editable installs: the Python files stay where they are edited, the native library lies beside them, and everything else
//! of the wheel is installed.
//!
//! The parts are in the order in which they are used: [`destination`] is where to install, [`plan`] how; [`examination`]
//! tells by [`inputs`] and [`note`] whether that is to be done at all; [`install`] does it: [`layout`] says what becomes of
//! each file of the wheel, [`site`] and [`placement`] put it there, [`shadows`] finds what would be imported instead, [`hook`]
//! builds again on import, and [`running`] names the processes that go on with what was there before. Not for compiling:
//! see [`crate::maturin`].

pub mod destination;
pub mod examination;
pub mod hook;
pub mod inputs;
pub mod install;
pub mod layout;
pub mod note;
pub mod placement;
pub mod plan;
pub mod running;
pub mod shadows;
pub mod site;
