//! A C++ template with its parameters: which arguments share an overload, and what each overload is.

use cuwheel_device_array::{Classified, DType, ErrorKind};
use thiserror::Error;

use super::argument_type::part;
use super::pattern::{Element, Pattern, Rank, Variables};
use super::{ArgumentType, ArrayOrder, Spellings};
use crate::launch::{ParameterType, Signature, SignatureError};

/// A kernel by a C++ expression and parameters that share variables, such as `saxpy<T>` with `T* y`, `const T* x`, `T a`.
///
/// What is between the angle brackets of the expression and in the parameters too is a variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Template {
    expression: Box<str>,
    texts: Box<[Box<str>]>,
    parameters: Box<[(Pattern, Option<Box<str>>)]>,
    variables: Variables,
    /// The bits of each argument's type that tell overloads apart.
    masks: Box<[u64]>,
    spellings: Spellings,
}

/// An overload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The C++ expression with types and numbers for its variables.
    pub expression: String,
    /// The parameters, with types for theirs.
    pub signature: Signature,
}

/// Arguments that no overload can be made for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// More or fewer than there are parameters.
    #[error("{template} takes {expected} arguments ({parameters}), and {given} are given")]
    Count {
        /// The expression of the template.
        template: String,
        /// The number of parameters.
        expected: usize,
        /// The parameters.
        parameters: String,
        /// The number of arguments.
        given: usize,
    },
    /// An array for a number, or the other way around.
    #[error("{place} is {}, and the parameter is {parameter}", if *is_array { "an array" } else { "no array" })]
    Kind {
        /// Which argument.
        place: String,
        /// Whether it is an array.
        is_array: bool,
        /// The parameter.
        parameter: String,
    },
    /// Two arguments want the same variable to be different things.
    #[error(
        "{variable} of {template} is {first} by argument {first_position} and {second} by argument {second_position}"
    )]
    Conflict {
        /// The variable.
        variable: String,
        /// The expression of the template.
        template: String,
        /// What it is at first.
        first: String,
        /// By which argument.
        first_position: usize,
        /// What it is then.
        second: String,
        /// By which argument.
        second_position: usize,
    },
    /// An element type without a name in C++.
    #[error("{place} has the type {dtype}, and no C++ type is known for it; name one: types={{\"{dtype}\": \"…\"}}")]
    NoSpelling {
        /// Which argument.
        place: String,
        /// The type.
        dtype: DType,
    },
    /// A type that parameters cannot have.
    #[error("{place}: {error}")]
    Signature {
        /// Which argument.
        place: String,
        /// Why not.
        error: SignatureError,
    },
}

impl Classified for TemplateError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Conflict { .. } | Self::Kind { .. } | Self::Count { .. } | Self::NoSpelling { .. } => ErrorKind::Type,
            Self::Signature { .. } => ErrorKind::Value,
        }
    }
}

/// What a variable stands for in an overload, and the argument that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Type(DType),
    Rank(usize),
    Order(bool),
}

impl Template {
    /// Reads a template: the expression, and parameters as in a [`Signature`], with variables.
    pub fn parse<'a>(
        expression: &str,
        parameters: impl IntoIterator<Item = &'a str>,
        spellings: Spellings,
    ) -> Result<Self, SignatureError> {
        let inside = expression.find('<').map_or("", |start| &expression[start..]);
        let mut variables = Variables::new(words(inside).map(|(_, word)| word.to_owned()).collect());
        let texts: Box<[Box<str>]> = parameters.into_iter().map(|text| text.trim().into()).collect();
        let parameters = texts.iter().map(|text| variables.parse(text)).collect::<Result<Box<[_]>, _>>()?;
        let mut template = Self {
            expression: expression.trim().into(),
            texts,
            parameters,
            variables,
            masks: Box::default(),
            spellings,
        };
        template.masks = template.parameters.iter().map(|(pattern, _)| template.mask(*pattern)).collect();
        Ok(template)
    }

    /// The expression.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// The parameters as they were given.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// The variables, with what they stand for: a type, a number of dimensions, or an order.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.variables.used().iter().map(|(name, kind)| (name.as_str(), kind.name()))
    }

    /// The C++ names of types.
    pub fn spellings(&self) -> &Spellings {
        &self.spellings
    }

    /// The bits of each argument's type that tell overloads apart. An argument without any need not be looked at.
    #[inline]
    pub fn masks(&self) -> &[u64] {
        &self.masks
    }

    /// Whether a parameter takes arrays only.
    #[inline]
    pub fn takes_array(&self, position: usize) -> bool {
        !matches!(self.parameters[position].0, Pattern::Number(_))
    }

    /// Which argument a message is about.
    pub fn place(&self, position: usize) -> String {
        match self.parameters.get(position) {
            Some((_, Some(name))) => format!("argument {position} ({name}) of {}", self.expression),
            _ => format!("argument {position} of {}", self.expression),
        }
    }

    fn mask(&self, pattern: Pattern) -> u64 {
        let of_element = |element| if matches!(element, Element::Variable(_)) { part::DTYPE } else { 0 };
        match pattern {
            Pattern::Pointer { element, .. } => of_element(element),
            Pattern::View { element, rank, order, .. } => {
                let rank = if matches!(rank, Rank::Variable(_)) { part::NDIM } else { 0 };
                of_element(element) | rank | order.map_or(0, |_| part::IS_C)
            }
            // A number is converted to what an array says, and decides only where no array does.
            Pattern::Number(Element::Variable(variable)) if !self.is_of_array(variable) => part::DTYPE,
            Pattern::Number(_) => 0,
        }
    }

    /// Whether an array says what a variable is.
    fn is_of_array(&self, variable: usize) -> bool {
        self.parameters.iter().any(|(pattern, _)| match pattern {
            Pattern::Pointer { element, .. } | Pattern::View { element, .. } => *element == Element::Variable(variable),
            Pattern::Number(_) => false,
        })
    }

    /// Checks the number of arguments.
    #[inline]
    pub fn check_count(&self, given: usize) -> Result<(), TemplateError> {
        if given == self.parameters.len() {
            return Ok(());
        }
        Err(TemplateError::Count {
            template: self.expression.to_string(),
            expected: self.parameters.len(),
            parameters: self.texts.join(", "),
            given,
        })
    }

    /// The overload for arguments of these types; of those that decide nothing, any type will do.
    pub fn bind(&self, types: &[ArgumentType]) -> Result<Bound, TemplateError> {
        self.check_count(types.len())?;
        let mut values: Vec<Option<(Value, usize)>> = vec![None; self.variables.used().len()];
        for (position, ((pattern, _), kind)) in self.parameters.iter().zip(types).enumerate() {
            if self.masks[position] == 0 {
                continue;
            }
            self.check_kind(position, *pattern, *kind)?;
            for (variable, value) in wanted(*pattern, *kind) {
                self.unify(&mut values, variable, value, position)?;
            }
        }
        let signature = self.parameters.iter().map(|(pattern, name)| (concrete(*pattern, &values), name.clone()));
        Ok(Bound { expression: self.spelled(&values)?, signature: Signature::new(signature) })
    }

    fn check_kind(&self, position: usize, pattern: Pattern, kind: ArgumentType) -> Result<(), TemplateError> {
        let is_array = kind.is_array();
        if is_array != matches!(pattern, Pattern::Number(_)) {
            let unfit = |error| TemplateError::Signature { place: self.place(position), error };
            return match (pattern, kind.ndim()) {
                (Pattern::View { .. }, Some(ndim)) if ndim > ParameterType::MOST_DIMENSIONS => {
                    Err(unfit(SignatureError::UnknownType { text: format!("view[{}, {ndim}]", kind.dtype()) }))
                }
                _ => Ok(()),
            };
        }
        Err(TemplateError::Kind { place: self.place(position), is_array, parameter: self.texts[position].to_string() })
    }

    fn unify(
        &self,
        values: &mut [Option<(Value, usize)>],
        variable: usize,
        value: Value,
        position: usize,
    ) -> Result<(), TemplateError> {
        let (first, first_position) = *values[variable].get_or_insert((value, position));
        if first == value {
            return Ok(());
        }
        Err(TemplateError::Conflict {
            variable: self.variables.used()[variable].0.clone(),
            template: self.expression.to_string(),
            first: first.text(),
            first_position,
            second: value.text(),
            second_position: position,
        })
    }

    /// The expression with the values of its variables.
    fn spelled(&self, values: &[Option<(Value, usize)>]) -> Result<String, TemplateError> {
        let start = self.expression.find('<').unwrap_or(self.expression.len());
        let (before, inside) = self.expression.split_at(start);
        let mut spelled = before.to_owned();
        let mut end = 0;
        for (at, word) in words(inside) {
            let variable = self.variables.used().iter().position(|(name, _)| name == word);
            let Some((value, position)) = variable.and_then(|variable| values[variable]) else { continue };
            spelled.push_str(&inside[end..at]);
            end = at + word.len();
            match value {
                Value::Type(dtype) => {
                    let no_spelling = || TemplateError::NoSpelling { place: self.place(position), dtype };
                    spelled.push_str(self.spellings.of(dtype).ok_or_else(no_spelling)?);
                }
                Value::Rank(ndim) => spelled.push_str(&ndim.to_string()),
                Value::Order(is_c) => spelled.push_str(if is_c { "true" } else { "false" }),
            }
        }
        spelled.push_str(&inside[end..]);
        Ok(spelled)
    }
}

impl Value {
    fn text(self) -> String {
        match self {
            Self::Type(dtype) => dtype.to_string(),
            Self::Rank(ndim) => ndim.to_string(),
            Self::Order(is_c) => is_c.to_string(),
        }
    }
}

/// What an argument says of the variables of its parameter.
fn wanted(pattern: Pattern, kind: ArgumentType) -> impl Iterator<Item = (usize, Value)> {
    let dtype = |element| match element {
        Element::Variable(variable) => Some((variable, Value::Type(kind.dtype()))),
        _ => None,
    };
    let found = match pattern {
        Pattern::Pointer { element, .. } | Pattern::Number(element) => [dtype(element), None, None],
        Pattern::View { element, rank, order, .. } => {
            let rank = match rank {
                Rank::Variable(variable) => kind.ndim().map(|ndim| (variable, Value::Rank(ndim))),
                Rank::Known(_) => None,
            };
            let order = order.map(|variable| (variable, Value::Order(kind.order() == Some(ArrayOrder::C))));
            [dtype(element), rank, order]
        }
    };
    found.into_iter().flatten()
}

/// The type of a parameter in an overload.
fn concrete(pattern: Pattern, values: &[Option<(Value, usize)>]) -> ParameterType {
    let dtype = |element| match element {
        Element::Known(dtype) => Some(dtype),
        Element::Any => None,
        Element::Variable(variable) => match values[variable] {
            Some((Value::Type(dtype), _)) => Some(dtype),
            _ => None,
        },
    };
    match pattern {
        Pattern::Pointer { element, is_const } => ParameterType::Pointer { dtype: dtype(element), is_const },
        // Every variable has a value: its own argument gives it one.
        Pattern::Number(element) => ParameterType::Scalar(dtype(element).unwrap_or(DType::UInt8)),
        Pattern::View { element, rank, is_const, .. } => {
            let ndim = match rank {
                Rank::Known(ndim) => ndim,
                Rank::Variable(variable) => match values[variable] {
                    Some((Value::Rank(ndim), _)) => ndim,
                    _ => 0,
                },
            };
            ParameterType::View { dtype: dtype(element).unwrap_or(DType::UInt8), ndim, is_const }
        }
    }
}

/// The words of a text, names in C++, with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(is_of_word)?;
        let length = text[start..].find(|letter| !is_of_word(letter)).unwrap_or(text.len() - start);
        at = start + length;
        Some((start, &text[start..at]))
    })
    .filter(|(_, word)| !word.starts_with(|letter: char| letter.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(expression: &str, parameters: &[&str]) -> Template {
        let spellings = Spellings::new(vec![(DType::Complex64, "float2".to_owned())]);
        Template::parse(expression, parameters.iter().copied(), spellings).unwrap()
    }

    fn array(dtype: DType, ndim: usize) -> ArgumentType {
        ArgumentType::array(dtype, ndim, ArrayOrder::C)
    }

    fn float() -> ArgumentType {
        ArgumentType::number(DType::Float64)
    }

    fn bound(template: &Template, types: &[ArgumentType]) -> String {
        match template.bind(types) {
            Ok(bound) => {
                let kinds: Vec<String> =
                    bound.signature.parameters().iter().map(|each| each.kind.to_string()).collect();
                format!("{}({})", bound.expression, kinds.join(", "))
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn variables_are_what_the_arguments_are() {
        let saxpy = template("blas::saxpy<T, 4>", &["T* y", "const T* x", "T a", "int32 n"]);
        let float32 = array(DType::Float32, 1);
        assert_eq!(
            bound(&saxpy, &[float32, float32, float(), float()]),
            "blas::saxpy<float, 4>(float32*, const float32*, float32, int32)"
        );
        let complex = array(DType::Complex64, 2);
        assert_eq!(
            bound(&saxpy, &[complex, complex, float(), float()]),
            "blas::saxpy<float2, 4>(complex64*, const complex64*, complex64, int32)"
        );
        let views = template("k<T, N, C, U>", &["view[T, N, C] out", "view[const U, 1]", "void*"]);
        let strided = ArgumentType::array(DType::Int64, 3, ArrayOrder::F);
        assert_eq!(
            bound(&views, &[strided, float32, float32]),
            "k<long long, 3, false, float>(view[int64, 3], view[const float32, 1], void*)"
        );
        let number = template("fill<Type>", &["void* out", "Type value"]);
        assert_eq!(bound(&number, &[complex, float()]), "fill<double>(void*, float64)");
        let plain = template("plain", &["float32*", "int32"]);
        assert_eq!(bound(&plain, &[complex, float()]), "plain(float32*, int32)");
        let names: Vec<_> = views.variables().collect();
        assert_eq!(names, [("T", "a type"), ("N", "a number of dimensions"), ("C", "an order"), ("U", "a type")]);
    }

    #[test]
    fn arguments_that_decide_nothing_are_not_looked_at() {
        let masks = |expression, parameters: &[&str]| template(expression, parameters).masks().to_vec();
        assert_eq!(masks("k<T>", &["T*", "T", "int32", "float32*"]), [part::DTYPE, 0, 0, 0]);
        assert_eq!(masks("k<T>", &["void*", "T"]), [0, part::DTYPE]);
        assert_eq!(masks("k<N, C>", &["view[int8, N]", "view[int8, 2, C]"]), [part::NDIM, part::IS_C]);
    }

    #[test]
    fn orders_other_than_c_share_an_overload() {
        let template = template("k<C>", &["view[int8, 2, C]"]);
        let bits = |order| ArgumentType::array(DType::Int8, 2, order).bits() & template.masks()[0];
        assert_eq!(bits(ArrayOrder::F), bits(ArrayOrder::Strided));
        assert_ne!(bits(ArrayOrder::F), bits(ArrayOrder::C));
    }

    #[test]
    fn arguments_that_do_not_go_together_are_refused() {
        let two = template("k<T>", &["T* y", "const T* x"]);
        let (float32, float64) = (array(DType::Float32, 1), array(DType::Float64, 1));
        assert_eq!(bound(&two, &[float32, float64]), "T of k<T> is float32 by argument 0 and float64 by argument 1");
        assert_eq!(bound(&two, &[float32]), "k<T> takes 2 arguments (T* y, const T* x), and 1 are given");
        assert_eq!(
            bound(&two, &[float32, float()]),
            "argument 1 (x) of k<T> is no array, and the parameter is const T* x"
        );
        let number = template("k<T>", &["T"]);
        assert_eq!(bound(&number, &[float32]), "argument 0 of k<T> is an array, and the parameter is T");
        let unusual = array(DType::Float8E3M4, 1);
        assert_eq!(
            bound(&two, &[unusual, unusual]),
            "argument 0 (y) of k<T> has the type float8_e3m4, and no C++ type is known for it; name one: \
             types={\"float8_e3m4\": \"…\"}"
        );
        let view = template("k<N>", &["view[int8, N]"]);
        assert!(bound(&view, &[array(DType::Int8, 40)]).contains("view[int8, 40]"));
    }

    #[test]
    fn a_parameter_that_cannot_be_read_is_refused() {
        for (expression, parameter) in [
            ("k<T>", "U*"),
            ("k", "T*"),
            ("T<U>", "T*"),
            ("k<T>", "view[T]"),
            ("k<T>", "view[T, T]"),
            ("k<T, N>", "view[T, N, N]"),
            ("k<T, N, C>", "view[T, N, C, C]"),
            ("k<N>", "view[void, N]"),
            ("k<T>", "view[T, 33]"),
            ("k<T>", "const T"),
        ] {
            let result = Template::parse(expression, [parameter], Spellings::default());
            assert!(matches!(result, Err(SignatureError::UnknownType { .. })), "{expression} {parameter}: {result:?}");
        }
    }
}
