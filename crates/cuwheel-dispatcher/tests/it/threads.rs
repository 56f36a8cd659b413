//! What threads share: tables and caches that are read and written at the same time.

use std::sync::Barrier;
use std::thread;

use cuwheel_dispatcher::{Choice, Conversion, ConversionTable, Memo, Rules, TypeCode};

const THREADS: i32 = 4;
const ROUNDS: i32 = if cfg!(miri) { 20 } else { 2000 };

#[test]
fn a_table_may_be_written_while_choices_are_made() {
    let (table, start) = (ConversionTable::new(), Barrier::new(4));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (table, start) = (&table, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..ROUNDS {
                    let (from, to) = (TypeCode::from(thread), TypeCode::from(THREADS + round));
                    table.set(from, to, Conversion::Safe);
                    let rules = Rules { exact_only: false, allow_unsafe: false };
                    let choice = Choice::among(&[Some(from)], [[to].as_slice()], table, rules);
                    assert_eq!(choice, Choice::One(0));
                }
            });
        }
    });
    assert_eq!(table.get(TypeCode::from(1), TypeCode::from(THREADS)), Some(Conversion::Safe));
}

#[test]
fn a_cache_keeps_to_its_capacity_and_hands_over_what_it_forgets() {
    let memo = Memo::new(2);
    assert!(memo.insert("one", 1).is_empty());
    assert!(memo.insert("two", 2).is_empty());
    assert_eq!(memo.insert("two", 22), [2]);
    let mut forgotten = memo.insert("three", 3);
    forgotten.sort_unstable();
    assert_eq!(forgotten, [1, 22]);
    assert_eq!((memo.get("one", |value| *value), memo.get("three", |value| *value)), (None, Some(3)));
}

#[test]
fn a_cache_may_be_used_by_threads_at_once() {
    let (memo, start) = (Memo::new(64), Barrier::new(4));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (memo, start) = (&memo, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..ROUNDS {
                    let key = round * THREADS + thread;
                    assert!(memo.insert(key, -key).iter().all(|forgotten| *forgotten <= 0));
                    assert!(memo.get(&key, |value| *value).is_none_or(|value| value == -key));
                }
            });
        }
    });
}
