//! Fatbins in a file of any bytes: the pieces that it comes in do not matter.

#![no_main]

use cuwheel_inspect::fatbin::{self, Scanner};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let whole = fatbin::find(data);
    let size = data.first().map_or(1, |first| usize::from(*first) + 1);
    let mut scanner = Scanner::new();
    data.chunks(size).for_each(|piece| scanner.push(piece));
    assert_eq!(scanner.finish(), whole);
});
