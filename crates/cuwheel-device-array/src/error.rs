//! What the errors of this crate have in common: the class of Python exception that each stands for.
//!
//! The errors themselves live beside what raises them.

/// The Python exception that an error stands for, so that bindings map errors in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// `IndexError`.
    Index,
    /// `ValueError`.
    Value,
    /// `TypeError`.
    Type,
    /// An axis that the array does not have. NumPy's `AxisError` is both a `ValueError` and an `IndexError`.
    Axis,
    /// `MemoryError`.
    Memory,
    /// `BufferError`: the data cannot be described to the other side.
    Buffer,
    /// `NotImplementedError`: the request makes sense, but not here.
    NotSupported,
    /// `RuntimeError`: the driver is absent, too old, or refused.
    Driver,
}
