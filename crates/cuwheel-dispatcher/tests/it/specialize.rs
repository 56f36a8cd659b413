//! Finding what was made for the types of arguments: without an allocation, and while other threads add to it.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use cuwheel_device_array::{ArrayParts, ArrayView, DType, Device, Layout, MemoryKind, Order, Stream};
use cuwheel_dispatcher::specialize::{ArgumentType, Failure, Making, Specializations, Spellings, Template};

use crate::counter;

const THREADS: u64 = 4;
const KEYS: u64 = if cfg!(miri) { 20 } else { 500 };

type Made = Specializations<u64, String>;

fn get_or_make(made: &Made, key: &[u64]) -> u64 {
    loop {
        if let Some(value) = made.get(key) {
            return *value;
        }
        match made.make(key).unwrap() {
            Making::Lead(lead) => return *lead.make(|| Ok::<_, Failure<String>>(key.iter().sum())).unwrap(),
            Making::Wait(flight) => flight.wait(Duration::from_secs(10)).unwrap().unwrap(),
        }
    }
}

fn array(dtype: DType, order: Order) -> ArrayView {
    let layout = Layout::contiguous(&[4, 6], order).unwrap();
    let (kind, device, stream) = (MemoryKind::Device, Device::new(0), Stream::LEGACY);
    ArrayView::new(ArrayParts { pointer: 4096, layout, dtype, kind, device, stream, read_only: false }).unwrap()
}

#[test]
fn a_hit_allocates_nothing() {
    let parameters = ["view[T, N, C] y", "const T* x", "T a"];
    let template = Template::parse("k<T, N, C>", parameters, Spellings::default()).unwrap();
    let (y, x) = (array(DType::Float32, Order::C), array(DType::Float32, Order::F));
    let key = || {
        template.check_count(3).unwrap();
        let types = [ArgumentType::of(&y), ArgumentType::of(&x), ArgumentType::number(DType::Float64)];
        let mut key = [0; 3];
        for ((bits, kind), mask) in key.iter_mut().zip(types).zip(template.masks()) {
            *bits = kind.bits() & mask;
        }
        key
    };
    let made = Made::new();
    (0..KEYS).for_each(|number| assert_eq!(get_or_make(&made, &[number]), number));
    let expected = get_or_make(&made, &key());
    let allocations = counter::allocations_during(|| {
        for _ in 0..100 {
            assert_eq!(made.get(&key()), Some(&expected));
        }
    });
    assert_eq!(allocations, 0);
}

#[test]
fn threads_may_look_for_values_while_others_are_made() {
    let (made, start) = (Made::new(), Barrier::new(4));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (made, start) = (&made, &start);
            scope.spawn(move || {
                start.wait();
                // Each in another order, so that each makes some and waits for some.
                for round in 0..KEYS {
                    let number = (round * 7 + thread * KEYS / THREADS) % KEYS;
                    assert_eq!(get_or_make(made, &[number, thread % 2]), number + thread % 2);
                }
            });
        }
    });
    assert_eq!(made.values().len() as u64, 2 * KEYS);
}
