//! What it costs to make arrays of what others hand over: `cargo run --release --example import_cost`.
//!
//! Prints the least and the median of many short rounds, in nanoseconds for each array. The least is what it costs; the
//! median also has what else the machine does.

use std::any::Any;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use cuwheel_device_array::{Array, ArrayParts, ArrayView, DType, Device, Layout, LayoutError, MemoryKind, Stream};

const ROUNDS: usize = 2001;
const ARRAYS: u32 = 500;

fn main() {
    let keep_alive: Arc<dyn Any + Send + Sync> = Arc::new(());
    for (shape, strides) in
        [(&[1024][..], &[1][..]), (&[64, 128, 3], &[384, 3, 1]), (&[2, 3, 4, 5, 6], &[360, 120, 30, 6, 1])]
    {
        let view = || view(black_box(shape), black_box(strides), black_box((2, 32, 1)));
        let description = measure(|| drop(black_box(view())));
        let shared = measure(|| {
            // SAFETY: nobody touches the memory.
            drop(black_box(view().map(|view| unsafe { Array::borrowed(view, Arc::clone(&keep_alive)) })));
        });
        let owned = measure(|| {
            // SAFETY: as above.
            drop(black_box(view().map(|view| unsafe { Array::borrowed(view, Arc::new([0_u64; 2])) })));
        });
        let dimensions = shape.len();
        println!(
            "{dimensions} dimensions: description {description}, and a shared hold {shared}, and a new hold {owned}"
        );
    }
}

/// As an import does it, from the numbers of a `DLTensor`.
#[inline(never)]
fn view(shape: &[i64], strides: &[i64], (code, bits, lanes): (u8, u8, u16)) -> Result<ArrayView, LayoutError> {
    let Ok(dtype) = DType::from_dlpack(code, bits, lanes) else { return Err(LayoutError::TooLarge) };
    ArrayView::new(ArrayParts {
        pointer: 0x7000_0000_0000,
        layout: Layout::from_elements(shape, strides)?,
        dtype,
        kind: MemoryKind::Device,
        device: Device::new(0),
        stream: Stream::LEGACY,
        read_only: false,
    })
}

/// The least and the median time of `action`, in nanoseconds.
fn measure(action: impl Fn()) -> String {
    let round = || {
        let start = Instant::now();
        (0..ARRAYS).for_each(|_| action());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ARRAYS)
    };
    let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    rounds.sort_by(f64::total_cmp);
    format!("{:.1} ({:.1})", rounds[0], rounds[ROUNDS / 2])
}
