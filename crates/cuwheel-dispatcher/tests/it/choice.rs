//! Choices among overloads: the same as a model that lists all candidates and compares them pairwise.

use cuwheel_dispatcher::{Choice, Conversion, ConversionTable, Overloads, OverloadsError, Rules, TypeCode};
use proptest::prelude::*;

fn code(number: i32) -> TypeCode {
    TypeCode::from(number)
}

/// What a conversion costs: (unsafe, safe, promote), or nothing if it must not be used.
fn price(conversion: Option<Conversion>, rules: Rules) -> Option<[u32; 3]> {
    match conversion? {
        Conversion::Exact => Some([0, 0, 0]),
        _ if rules.exact_only => None,
        Conversion::Promote => Some([0, 0, 1]),
        Conversion::Safe => Some([0, 1, 0]),
        Conversion::Unsafe => rules.allow_unsafe.then_some([1, 0, 0]),
    }
}

/// The candidate that no other one equals or beats.
fn model(
    arguments: &[Option<TypeCode>],
    signatures: &[Vec<TypeCode>],
    conversions: &ConversionTable,
    rules: Rules,
) -> Choice<usize> {
    let mut candidates = Vec::new();
    for (position, signature) in signatures.iter().enumerate() {
        let prices: Option<Vec<[u32; 3]>> = arguments
            .iter()
            .zip(signature)
            .map(|(argument, &parameter)| price(conversions.get((*argument)?, parameter), rules))
            .collect();
        if let Some(prices) = prices.filter(|_| arguments.len() == signature.len()) {
            let total = prices.iter().fold([0; 3], |sum, price| [0, 1, 2].map(|rank| sum[rank] + price[rank]));
            candidates.push((total, position));
        }
    }
    let Some(least) = candidates.iter().map(|(total, _)| *total).min() else { return Choice::None };
    let best: Vec<usize> = candidates.iter().filter(|(total, _)| *total == least).map(|(_, at)| *at).collect();
    if let [only] = best[..] { Choice::One(only) } else { Choice::Ambiguous }
}

fn conversions() -> impl Strategy<Value = Vec<(i32, i32, Conversion)>> {
    let kinds = prop_oneof![Just(Conversion::Promote), Just(Conversion::Safe), Just(Conversion::Unsafe)];
    prop::collection::vec((0..5, 0..5, kinds), 0..20)
}

fn signatures() -> impl Strategy<Value = Vec<Vec<TypeCode>>> {
    prop::collection::vec(prop::collection::vec((0..5).prop_map(code), 0..4), 0..8)
}

proptest! {
    #[test]
    fn the_choice_is_that_of_the_model(
        entries in conversions(),
        signatures in signatures(),
        arguments in prop::collection::vec(prop::option::weighted(0.95, (0..5).prop_map(code)), 0..4),
        exact_only: bool,
        allow_unsafe: bool,
    ) {
        let table = ConversionTable::new();
        for (from, to, conversion) in entries {
            table.set(code(from), code(to), conversion);
        }
        let rules = Rules { exact_only, allow_unsafe };
        let choice = Choice::among(&arguments, signatures.iter().map(Vec::as_slice), &table, rules);
        prop_assert_eq!(choice, model(&arguments, &signatures, &table, rules));

        let mut overloads = Overloads::variadic();
        for (position, signature) in signatures.iter().enumerate() {
            overloads.insert(signature.clone(), position).unwrap();
        }
        let chosen = overloads.choose(&arguments, &table, rules).map(|position| *position);
        if arguments.is_empty() {
            let first = signatures.iter().position(Vec::is_empty);
            prop_assert_eq!(chosen, first.map_or(Choice::None, Choice::One));
        } else {
            prop_assert_eq!(chosen, choice);
        }
    }
}

#[test]
fn codes_beyond_31_bits_are_refused() {
    for number in [i64::from(i32::MAX) + 1, i64::from(i32::MIN) - 1, 1 << 32, i64::MAX, i64::MIN] {
        let error = TypeCode::try_from(number).unwrap_err();
        assert!(error.to_string().contains(&number.to_string()));
    }
    for number in [0, 1, -1, i64::from(i32::MAX), i64::from(i32::MIN)] {
        assert_eq!(i64::from(TypeCode::try_from(number).unwrap().number()), number);
    }
}

#[test]
fn signatures_are_counted_before_they_are_added() {
    let mut overloads = Overloads::new(2);
    assert_eq!(overloads.insert(vec![code(1)], ()), Err(OverloadsError { actual: 1, expected: 2 }));
    assert_eq!(overloads.insert(vec![code(1); 3], ()), Err(OverloadsError { actual: 3, expected: 2 }));
    assert_eq!(overloads.iter().count(), 0);
}

#[test]
fn cleared_overloads_are_handed_over() {
    let mut overloads = Overloads::new(1);
    for value in ["one", "two"] {
        overloads.insert(vec![code(1)], value).unwrap();
    }
    assert_eq!(overloads.clear(), ["one", "two"]);
    let rules = Rules { exact_only: true, allow_unsafe: false };
    assert_eq!(overloads.choose(&[Some(code(1))], &ConversionTable::new(), rules), Choice::None);
}

#[test]
fn a_table_entry_for_a_type_and_itself_changes_nothing() {
    let table = ConversionTable::new();
    table.set(code(1), code(1), Conversion::Unsafe);
    assert_eq!(table.get(code(1), code(1)), Some(Conversion::Exact));
}
