//! Parameters with variables for what their arguments decide: `const T* x`, `view[T, N, C]`, `T a`.

use cuwheel_device_array::DType;

use crate::launch::{ParameterType, SignatureError, split_name};

/// The type of elements, or of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Element {
    /// Any, for `void*`.
    Any,
    Known(DType),
    Variable(usize),
}

/// The number of dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Rank {
    Known(usize),
    Variable(usize),
}

/// A parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Pattern {
    Pointer { element: Element, is_const: bool },
    Number(Element),
    View { element: Element, rank: Rank, order: Option<usize>, is_const: bool },
}

/// What a variable stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum VariableKind {
    Type,
    Rank,
    /// Whether an array is in C order.
    Order,
}

impl VariableKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Type => "a type",
            Self::Rank => "a number of dimensions",
            Self::Order => "an order",
        }
    }
}

/// The variables of a template, as far as its parameters have them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Variables {
    /// The names that may be variables.
    allowed: Vec<String>,
    used: Vec<(String, VariableKind)>,
}

impl Variables {
    /// Variables with these names at most.
    pub(super) fn new(allowed: Vec<String>) -> Self {
        Self { allowed, used: Vec::new() }
    }

    pub(super) fn used(&self) -> &[(String, VariableKind)] {
        &self.used
    }

    /// The number of a variable; `None` if the text is none, or one of another kind.
    fn find(&mut self, text: &str, kind: VariableKind) -> Option<usize> {
        let text = text.trim();
        if let Some(index) = self.used.iter().position(|(name, _)| name == text) {
            return (self.used[index].1 == kind).then_some(index);
        }
        if !self.allowed.iter().any(|name| name == text) {
            return None;
        }
        self.used.push((text.to_owned(), kind));
        Some(self.used.len() - 1)
    }

    fn element(&mut self, text: &str) -> Option<Element> {
        match text.trim() {
            "void" => Some(Element::Any),
            name => match DType::from_name(name) {
                Ok(dtype) => Some(Element::Known(dtype)),
                Err(_) => self.find(name, VariableKind::Type).map(Element::Variable),
            },
        }
    }

    /// Reads a parameter: a type, and a name or none.
    pub(super) fn parse(&mut self, text: &str) -> Result<(Pattern, Option<Box<str>>), SignatureError> {
        let (kind, name) = split_name(text)?;
        let unknown = || SignatureError::UnknownType { text: kind.to_owned() };
        Ok((self.pattern(kind).ok_or_else(unknown)?, name))
    }

    fn pattern(&mut self, text: &str) -> Option<Pattern> {
        // What has no variables means what it means in every signature.
        match ParameterType::parse(text) {
            Ok(ParameterType::Pointer { dtype, is_const }) => {
                return Some(Pattern::Pointer { element: dtype.map_or(Element::Any, Element::Known), is_const });
            }
            Ok(ParameterType::Scalar(dtype)) => return Some(Pattern::Number(Element::Known(dtype))),
            Ok(ParameterType::View { dtype, ndim, is_const }) => {
                let (element, rank) = (Element::Known(dtype), Rank::Known(ndim));
                return Some(Pattern::View { element, rank, order: None, is_const });
            }
            Ok(ParameterType::Unknown { .. }) => return None,
            Err(_) => {}
        }
        if let Some(inside) = text.strip_prefix("view[").and_then(|rest| rest.strip_suffix(']')) {
            let mut parts = inside.split(',');
            let (element, is_const) = without_const(parts.next()?);
            let element = self.element(element).filter(|element| *element != Element::Any)?;
            let rank = parts.next()?;
            let rank = match rank.trim().parse() {
                Ok(ndim) if ndim <= ParameterType::MOST_DIMENSIONS => Rank::Known(ndim),
                Ok(_) => return None,
                Err(_) => Rank::Variable(self.find(rank, VariableKind::Rank)?),
            };
            let order = match parts.next() {
                Some(order) => Some(self.find(order, VariableKind::Order)?),
                None => None,
            };
            return parts.next().is_none().then_some(Pattern::View { element, rank, order, is_const });
        }
        if let Some(element) = text.strip_suffix('*') {
            let (element, is_const) = without_const(element);
            return Some(Pattern::Pointer { element: self.element(element)?, is_const });
        }
        self.find(text, VariableKind::Type).map(|variable| Pattern::Number(Element::Variable(variable)))
    }
}

/// An element type, and whether `const` was before it.
fn without_const(text: &str) -> (&str, bool) {
    let text = text.trim();
    match text.strip_prefix("const").filter(|rest| rest.starts_with(char::is_whitespace)) {
        Some(rest) => (rest.trim(), true),
        None => (text, false),
    }
}
