//! Launches as most are, at the least that they can take: a kernel that was launched before, on arrays of its device and plain
//! numbers, all on one stream.
//!
//! A launch that is anything else is not made here, and nothing has happened then that matters: [`place`](super::place) makes
//! any launch, and says what is wrong with one.

use std::sync::atomic::{AtomicUsize, Ordering};

use cuwheel_device_array::{ArrayView, DType, Device, MemoryKind, Stream, stream};
use cuwheel_dispatcher::launch::{Kernel, LaunchConfig, LaunchError, PlainSignature, PlainType, ReadyKernel};
use cuwheel_exchange::{UsualArray, UsualArrays};
use pyo3::ffi;
use pyo3::prelude::*;

use super::configure::LaunchShape;
use super::configured::Args;
use super::scalar;
use crate::devicearray::DeviceArray;

/// The context in which a configuration was last found to fit, so that launches there do not look again.
#[derive(Debug, Default)]
pub(super) struct FoundToFit(AtomicUsize);

impl FoundToFit {
    #[inline]
    fn is_so(&self, kernel: &ReadyKernel<'_>, config: &LaunchConfig) -> bool {
        let context = kernel.context();
        if self.0.load(Ordering::Relaxed) == context {
            return true;
        }
        let fits = kernel.fits(config);
        if fits {
            self.0.store(context, Ordering::Relaxed);
        }
        fits
    }
}

/// Launches the kernel, if that is all that there is to do.
#[inline]
pub(super) fn launch(
    py: Python<'_>,
    kernel: &Kernel,
    shape: &LaunchShape,
    args: &Args<'_, '_>,
) -> Option<Result<(), Box<LaunchError>>> {
    let ready = kernel.ready()?;
    let parameters = ready.signature().parameters();
    if args.len() != parameters.len() || !shape.fitting.is_so(&ready, &shape.config) {
        return None;
    }
    let mut packing = Packing {
        block: [0; PlainSignature::MOST_BYTES],
        device: ready.device(),
        stream: shape.stream.as_ref().map(Stream::handle),
        foreign: UsualArrays::on(ready.device()),
    };
    for (parameter, &value) in parameters.iter().zip(args) {
        let offset = parameter.offset_bytes as usize;
        if let PlainType::Pointer { elements, is_const } = parameter.kind {
            packing.add_array(offset, value, elements, is_const)?;
        } else {
            packing.add_value(offset, value, parameter.kind)?;
        }
    }
    let bytes = packing.block.get(..ready.signature().size_bytes())?;
    let stream = packing.stream.unwrap_or_else(|| stream::current_handle(packing.device));
    // Nothing of Python's is used until it is dropped.
    let detached = shape.releases_gil.then(|| Detached::new(py));
    // SAFETY: no other code has run since the context was looked at but that of producers, which restore it. The arrays are
    // alive, since the caller has them. What the kernel does with them is for who wrote it; who names a stream by a number
    // vouches for it.
    let launched = unsafe { ready.launch(bytes, &shape.config, stream) };
    drop(detached);
    Some(launched)
}

/// The parameters of a launch, and where it goes.
struct Packing {
    block: [u8; PlainSignature::MOST_BYTES],
    device: Device,
    /// The handle of the stream, once one was named or there was an array.
    stream: Option<usize>,
    foreign: UsualArrays,
}

impl Packing {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "of its two callers one is the loop that most launches are")]
    fn add_array(
        &mut self,
        offset: usize,
        value: Borrowed<'_, '_, PyAny>,
        elements: Option<(DType, (u8, u8, u16))>,
        is_const: bool,
    ) -> Option<()> {
        let array = match DeviceArray::known(value) {
            Some(own) => {
                self.stream.get_or_insert_with(|| stream::current_handle(self.device));
                self.own(&own.get().array, elements.map(|(dtype, _)| dtype), is_const)?
            }
            None => self.foreign.read(&value, elements.map(|(_, dlpack)| dlpack))?,
        };
        if *self.stream.get_or_insert(array.stream) != array.stream {
            return None;
        }
        self.put(offset, array.pointer.to_ne_bytes())
    }

    #[inline]
    fn own(&self, array: &ArrayView, dtype: Option<DType>, is_const: bool) -> Option<UsualArray> {
        let is_usual = array.device() == self.device
            && array.kind() == MemoryKind::Device
            && dtype.is_none_or(|dtype| dtype == array.dtype())
            && (is_const || !array.is_read_only());
        is_usual.then(|| UsualArray { pointer: array.pointer(), stream: array.stream().handle() })
    }

    /// Anything but an array for a pointer.
    #[inline(never)]
    fn add_value(&mut self, offset: usize, value: Borrowed<'_, '_, PyAny>, kind: PlainType) -> Option<()> {
        let by_class = |float, integer| if scalar::is_float(&value) { float } else { integer };
        let dtype = match kind {
            PlainType::Scalar(dtype) => dtype,
            PlainType::HalfWord => by_class(DType::Float32, DType::Int32),
            PlainType::Word if scalar::is_usual(&value) => by_class(DType::Float64, DType::Int64),
            PlainType::Word | PlainType::Pointer { .. } => return self.add_array(offset, value, None, false),
        };
        match scalar::usual(&value, dtype)? {
            scalar::Usual::Wide(bits) => self.put(offset, bits.to_ne_bytes()),
            scalar::Usual::Narrow(bits) => self.put(offset, bits.to_ne_bytes()),
        }
    }

    #[inline]
    fn put<const SIZE: usize>(&mut self, offset: usize, bytes: [u8; SIZE]) -> Option<()> {
        *self.block.get_mut(offset..)?.first_chunk_mut()? = bytes;
        Some(())
    }
}

/// Other threads of Python run until it is dropped; what this thread does until then uses no object of Python's, not even to
/// drop a reference.
///
/// PyO3 does the same with notes for itself, which take as long as all else here.
struct Detached(*mut ffi::PyThreadState);

impl Detached {
    #[inline]
    fn new(_attached: Python<'_>) -> Self {
        // SAFETY: the thread is attached.
        Self(unsafe { ffi::PyEval_SaveThread() })
    }
}

impl Drop for Detached {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the state is what this thread gave up.
        unsafe { ffi::PyEval_RestoreThread(self.0) };
    }
}
