//! Choices among overloads, beside a model that compares every pair of candidates.

#![no_main]

use arbitrary::Arbitrary;
use cuwheel_dispatcher::{Choice, Conversion, ConversionTable, Overloads, Rules, TypeCode};
use libfuzzer_sys::fuzz_target;

/// Few types, so that conversions meet signatures.
const TYPE_COUNT: u8 = 6;

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Kind {
    Exact,
    Promote,
    Safe,
    Unsafe,
}

#[derive(Debug, Arbitrary)]
struct Input {
    conversions: Vec<(u8, u8, Kind)>,
    signatures: Vec<Vec<u8>>,
    arguments: Vec<Option<u8>>,
    exact_only: bool,
    allow_unsafe: bool,
}

fuzz_target!(|input: Input| {
    let table = ConversionTable::new();
    for &(from, to, kind) in &input.conversions {
        table.set(code(from), code(to), conversion(kind));
    }
    let rules = Rules { exact_only: input.exact_only, allow_unsafe: input.allow_unsafe };
    let arguments: Vec<_> = input.arguments.iter().map(|argument| argument.map(code)).collect();
    let signatures: Vec<Vec<_>> =
        input.signatures.iter().map(|signature| signature.iter().copied().map(code).collect()).collect();

    let choice = Choice::among(&arguments, signatures.iter().map(Vec::as_slice), &table, rules);
    assert_eq!(choice, model(&input));

    let mut overloads = Overloads::variadic();
    for (position, signature) in signatures.iter().enumerate() {
        overloads.insert(signature.clone(), position).expect("any number of types");
    }
    let expected = match signatures.iter().position(Vec::is_empty) {
        Some(first) if arguments.is_empty() => Choice::One(first),
        _ => choice,
    };
    assert_eq!(overloads.choose(&arguments, &table, rules).map(|position| *position), expected);
});

fn code(number: u8) -> TypeCode {
    TypeCode::from(i32::from(number % TYPE_COUNT))
}

fn conversion(kind: Kind) -> Conversion {
    match kind {
        Kind::Exact => Conversion::Exact,
        Kind::Promote => Conversion::Promote,
        Kind::Safe => Conversion::Safe,
        Kind::Unsafe => Conversion::Unsafe,
    }
}

/// The one candidate that is better than every other.
fn model(input: &Input) -> Choice<usize> {
    let prices: Vec<_> = input.signatures.iter().map(|signature| price(input, signature)).collect();
    let candidates = || prices.iter().enumerate().filter_map(|(position, price)| Some((position, (*price)?)));
    if candidates().next().is_none() {
        return Choice::None;
    }
    let mut winners = candidates()
        .filter(|(position, price)| candidates().all(|(other, its)| other == *position || is_better(*price, its)));
    winners.next().map_or(Choice::Ambiguous, |(position, _)| Choice::One(position))
}

/// How many conversions of each kind the arguments need: unsafe, safe, promotions. `None` if they do not fit.
fn price(input: &Input, signature: &[u8]) -> Option<[usize; 3]> {
    if signature.len() != input.arguments.len() {
        return None;
    }
    let mut price = [0; 3];
    for (argument, parameter) in input.arguments.iter().zip(signature) {
        let (from, to) = ((*argument)? % TYPE_COUNT, parameter % TYPE_COUNT);
        // What was said last holds.
        let said = input.conversions.iter().rfind(|entry| (entry.0 % TYPE_COUNT, entry.1 % TYPE_COUNT) == (from, to));
        match said.map(|entry| entry.2) {
            _ if from == to => {}
            _ if input.exact_only => return None,
            None => return None,
            Some(Kind::Exact) => {}
            Some(Kind::Promote) => price[2] += 1,
            Some(Kind::Safe) => price[1] += 1,
            Some(Kind::Unsafe) if input.allow_unsafe => price[0] += 1,
            Some(Kind::Unsafe) => return None,
        }
    }
    Some(price)
}

/// Fewer unsafe conversions are better; if there are as many, fewer safe ones; then fewer promotions.
fn is_better(one: [usize; 3], other: [usize; 3]) -> bool {
    let differs = (0..3).find(|&rank| one[rank] != other[rank]);
    differs.is_some_and(|rank| one[rank] < other[rank])
}
