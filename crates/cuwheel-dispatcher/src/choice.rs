//! The choice of the signature that fits arguments best.

use std::cmp::Ordering;

use crate::conversion::ConversionsNow;
use crate::{Conversion, ConversionTable, TypeCode};

/// Which conversions a choice may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Arguments must have exactly the types of the signature.
    pub exact_only: bool,
    /// Conversions that may lose digits or range count as well.
    pub allow_unsafe: bool,
}

/// What a choice came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice<T> {
    /// One signature fits better than all others.
    One(T),
    /// None fits.
    None,
    /// Several fit equally well, and none better.
    Ambiguous,
}

/// How many arguments are converted at which price. The smaller the better; first of all the unsafe ones count, then the
/// safe ones, then the promoted ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Rating {
    unsafe_conversions: u32,
    safe_conversions: u32,
    promotions: u32,
}

impl<T> Choice<T> {
    /// The same choice with another name for what was chosen.
    pub fn map<U>(self, rename: impl FnOnce(T) -> U) -> Choice<U> {
        match self {
            Self::One(chosen) => Choice::One(rename(chosen)),
            Self::None => Choice::None,
            Self::Ambiguous => Choice::Ambiguous,
        }
    }
}

impl Choice<usize> {
    /// The position of the signature that fits best.
    ///
    /// An argument whose type is not known (`None`) fits nothing. A signature with another number of types than there
    /// are arguments does not fit.
    pub fn among<'a>(
        arguments: &[Option<TypeCode>],
        signatures: impl IntoIterator<Item = &'a [TypeCode]>,
        conversions: &ConversionTable,
        rules: Rules,
    ) -> Self {
        let signatures = signatures.into_iter();
        if rules.exact_only {
            return best(signatures.map(|signature| is_same(arguments, signature).then_some(())));
        }
        let conversions = conversions.read();
        best(signatures.map(|signature| rating(arguments, signature, &conversions, rules)))
    }
}

fn is_same(arguments: &[Option<TypeCode>], signature: &[TypeCode]) -> bool {
    arguments.len() == signature.len()
        && arguments.iter().zip(signature).all(|(&argument, &parameter)| argument == Some(parameter))
}

fn rating(
    arguments: &[Option<TypeCode>],
    signature: &[TypeCode],
    conversions: &ConversionsNow<'_>,
    rules: Rules,
) -> Option<Rating> {
    if arguments.len() != signature.len() {
        return None;
    }
    let mut rating = Rating::default();
    for (&argument, &parameter) in arguments.iter().zip(signature) {
        match conversions.get(argument?, parameter)? {
            Conversion::Exact => {}
            Conversion::Promote => rating.promotions += 1,
            Conversion::Safe => rating.safe_conversions += 1,
            Conversion::Unsafe if rules.allow_unsafe => rating.unsafe_conversions += 1,
            Conversion::Unsafe => return None,
        }
    }
    Some(rating)
}

/// The position of the one smallest rating; signatures that do not fit have none.
fn best<R: Ord>(ratings: impl Iterator<Item = Option<R>>) -> Choice<usize> {
    let mut best: Option<(R, Choice<usize>)> = None;
    for (position, rating) in ratings.enumerate() {
        let Some(rating) = rating else { continue };
        best = match best {
            None => Some((rating, Choice::One(position))),
            Some((smallest, choice)) => Some(match rating.cmp(&smallest) {
                Ordering::Less => (rating, Choice::One(position)),
                Ordering::Equal => (smallest, Choice::Ambiguous),
                Ordering::Greater => (smallest, choice),
            }),
        };
    }
    best.map_or(Choice::None, |(_, choice)| choice)
}
