//! Which type may stand in for which other.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use crate::TypeCode;

/// What an argument loses when it is taken for another type; the later, the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conversion {
    /// Nothing: the types are the same.
    Exact,
    /// Nothing: a larger type of the same kind.
    Promote,
    /// Nothing: a type of another kind that holds every value.
    Safe,
    /// Perhaps digits or range.
    Unsafe,
}

/// The conversions that are known.
///
/// Threads may read and write it at the same time. A choice among overloads sees it as it was when the choice began.
#[derive(Debug, Default)]
pub struct ConversionTable {
    entries: RwLock<HashMap<(TypeCode, TypeCode), Conversion>>,
}

impl ConversionTable {
    /// A table in which types convert to themselves only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says how `from` converts to `to`, in place of what was said before.
    pub fn set(&self, from: TypeCode, to: TypeCode, conversion: Conversion) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).insert((from, to), conversion);
    }

    /// How `from` converts to `to`, or `None` if it does not. A type converts to itself, whatever the table says.
    pub fn get(&self, from: TypeCode, to: TypeCode) -> Option<Conversion> {
        self.read().get(from, to)
    }

    /// The table as it is now; it does not change as long as the result lives.
    pub(crate) fn read(&self) -> ConversionsNow<'_> {
        ConversionsNow(self.entries.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A table that is being read.
pub(crate) struct ConversionsNow<'table>(RwLockReadGuard<'table, HashMap<(TypeCode, TypeCode), Conversion>>);

impl ConversionsNow<'_> {
    pub(crate) fn get(&self, from: TypeCode, to: TypeCode) -> Option<Conversion> {
        if from == to { Some(Conversion::Exact) } else { self.0.get(&(from, to)).copied() }
    }
}
