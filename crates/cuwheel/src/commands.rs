//! The commands: one file each, arguments → plan → run.

pub mod build_wheel;
pub mod check_wheel;
pub mod ci;
pub mod develop;
pub mod doctor;
pub mod lock;
pub mod new;
pub mod overlay;
pub mod repair;
pub mod test;
pub mod test_gpu;
