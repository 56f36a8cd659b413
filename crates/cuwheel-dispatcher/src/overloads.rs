//! The signatures of one function, each with what implements it.

use thiserror::Error;

use crate::{Choice, ConversionTable, Rules, TypeCode};

/// The overloads of one function, in the order in which they were added.
#[derive(Debug)]
pub struct Overloads<T> {
    parameter_count: Option<usize>,
    signatures: Vec<Box<[TypeCode]>>,
    implementations: Vec<T>,
}

/// A signature cannot be one of the function's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the signature has {actual} types, but the function has {expected} parameters; give one type for each")]
pub struct OverloadsError {
    /// The number of types given.
    pub actual: usize,
    /// The number of parameters of the function.
    pub expected: usize,
}

impl<T> Overloads<T> {
    /// No overloads, of a function with this many parameters.
    pub fn new(parameter_count: usize) -> Self {
        Self { parameter_count: Some(parameter_count), signatures: Vec::new(), implementations: Vec::new() }
    }

    /// No overloads, of a function with any number of parameters.
    pub fn variadic() -> Self {
        Self { parameter_count: None, signatures: Vec::new(), implementations: Vec::new() }
    }

    /// Adds an overload. The same signature may be added again: then arguments of just these types are ambiguous.
    pub fn insert(&mut self, signature: Vec<TypeCode>, implementation: T) -> Result<(), OverloadsError> {
        if let Some(expected) = self.parameter_count
            && expected != signature.len()
        {
            return Err(OverloadsError { actual: signature.len(), expected });
        }
        self.signatures.push(signature.into());
        self.implementations.push(implementation);
        Ok(())
    }

    /// Removes all overloads, and hands over what implemented them.
    pub fn clear(&mut self) -> Vec<T> {
        self.signatures.clear();
        std::mem::take(&mut self.implementations)
    }

    /// The overload that fits the arguments best.
    ///
    /// Without arguments there is nothing to choose by: it is the first overload without parameters.
    pub fn choose(&self, arguments: &[Option<TypeCode>], conversions: &ConversionTable, rules: Rules) -> Choice<&T> {
        let signatures = self.signatures.iter().map(AsRef::as_ref);
        if arguments.is_empty() {
            let first = self.signatures.iter().position(|signature| signature.is_empty());
            return first.map_or(Choice::None, |position| Choice::One(&self.implementations[position]));
        }
        Choice::among(arguments, signatures, conversions, rules).map(|position| &self.implementations[position])
    }

    /// What implements the overloads, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.implementations.iter()
    }
}
