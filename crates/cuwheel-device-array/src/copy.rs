//! Copies between arrays, and between arrays and memory of the host.
//!
//! Where the elements lie decides how few steps a copy takes: one for adjacent bytes, one for rows at a constant
//! distance, and some for the rest. What the driver cannot do in few steps the processor rearranges.

mod dimensions;
mod error;
mod fill;
mod host;
mod transfer;

use std::marker::PhantomData;
use std::ops::Range;

use dimensions::{Blocks, Lead};
pub use error::CopyError;
use smallvec::SmallVec;
use transfer::Host;

use crate::stream::CaptureStatus;
use crate::{
    Allocation, Array, ArrayView, DType, Device, Dims, Driver, DriverError, Error, Layout, LayoutError, MemoryKind,
    Order, Stream,
};

/// A copy from one device memory to another takes a detour over the host when it has more steps than this.
const MOST_COPIES: i64 = 256;

/// Memory of the host with elements to copy from.
#[derive(Debug, Clone, Copy)]
pub struct HostRegion<'a> {
    address: usize,
    layout: &'a Layout,
    dtype: DType,
}

/// Memory of the host with elements to copy to.
#[derive(Debug)]
pub struct HostRegionMut<'a> {
    region: HostRegion<'a>,
    exclusive: PhantomData<&'a mut [u8]>,
}

impl<'a> HostRegion<'a> {
    /// The elements that lie around `address`, that of the first one, in `layout`.
    ///
    /// # Safety
    /// All elements are memory of this process that can be read, and that nobody writes, for as long as `'a` lasts.
    #[inline]
    pub unsafe fn new(address: usize, layout: &'a Layout, dtype: DType) -> Self {
        Self { address, layout, dtype }
    }
}

impl<'a> HostRegionMut<'a> {
    /// The elements that lie around `address`, that of the first one, in `layout`.
    ///
    /// # Safety
    /// All elements are memory of this process that can be written, and that nobody else uses, for as long as `'a`
    /// lasts.
    #[inline]
    pub unsafe fn new(address: usize, layout: &'a Layout, dtype: DType) -> Self {
        Self { region: HostRegion { address, layout, dtype }, exclusive: PhantomData }
    }
}

/// One side of a copy: where elements are, with strides in bytes.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    address: u64,
    shape: &'a [i64],
    strides: &'a [i64],
}

impl Array {
    /// Copies elements of the same type and shape from the host to here, in the order of `stream`, a stream of this
    /// array's device. Returns when they are there.
    ///
    /// # Errors
    /// The types or shapes differ, this array is read-only, the stream is being captured, or there is no memory to
    /// rearrange elements in.
    pub fn copy_from_host(&self, source: HostRegion<'_>, stream: &Stream) -> Result<(), Error> {
        self.check_destination(source.layout, source.dtype)?;
        self.exchange(&source, Lead::Destination, self.device(), stream)
    }

    /// Copies all elements to memory of the host for the same type and shape, in the order of `stream`, a stream of
    /// this array's device. Returns when they are there.
    ///
    /// # Errors
    /// The types or shapes differ, the stream is being captured, or there is no memory to rearrange elements in.
    #[expect(clippy::needless_pass_by_value, reason = "as with `&mut`, the right to write is given away")]
    pub fn copy_to_host(&self, destination: HostRegionMut<'_>, stream: &Stream) -> Result<(), Error> {
        let region = &destination.region;
        check_same(self, region.layout, region.dtype)?;
        self.exchange(region, Lead::Source, self.device(), stream)
    }

    /// Copies all elements to an array of the same type and shape, in the order of `stream`: a stream of the
    /// destination's device, or of this array's if only this one is device memory.
    ///
    /// `stream` waits for the streams of both arrays first, and they wait for it afterwards, unless one of them is
    /// being captured: then the order is the caller's. The host waits only if one of them is ordinary host memory, if
    /// elements have to be rearranged on the host, which a stream that is being captured never does, or if the driver
    /// wants to.
    ///
    /// # Errors
    /// The types or shapes differ, the destination is read-only, or there is no memory to rearrange elements in.
    pub fn copy_to(&self, destination: &Self, stream: &Stream) -> Result<(), Error> {
        destination.check_destination(self.layout(), self.dtype())?;
        if self.size() == 0 || self.is_same_memory(destination) {
            return Ok(());
        }
        // The device that the stream belongs to.
        let device = match (self.kind(), destination.kind()) {
            (MemoryKind::Device, MemoryKind::Device) => destination.device(),
            (MemoryKind::Device, _) | (_, MemoryKind::Host) => self.device(),
            _ => destination.device(),
        };
        if overlap(&self.addresses(), &destination.addresses()) {
            let kind = if self.kind() == MemoryKind::Host { MemoryKind::Host } else { MemoryKind::Device };
            return self.contiguous_copy(kind, device, stream)?.copy_to(destination, stream);
        }
        match (self.kind(), destination.kind()) {
            (_, MemoryKind::Host) => self.exchange(&destination.host_region(), Lead::Source, device, stream),
            (MemoryKind::Host, _) => destination.exchange(&self.host_region(), Lead::Destination, device, stream),
            _ if self.is_on_other_device_than(destination) => self.copy_to_other_device(destination, stream),
            _ => self.copy_beside(destination, device, stream),
        }
    }

    /// The same elements one beside the other in new memory, copied in the order of `stream`.
    pub fn contiguous_copy(&self, kind: MemoryKind, device: Device, stream: &Stream) -> Result<Self, Error> {
        let copy = Self::empty(self.shape(), self.dtype(), kind, device, stream, Order::C)?;
        self.copy_to(&copy, stream)?;
        Ok(copy)
    }

    /// Fails if elements of this type and layout cannot be written here.
    fn check_destination(&self, layout: &Layout, dtype: DType) -> Result<(), CopyError> {
        if self.is_read_only() { Err(CopyError::ReadOnly) } else { check_same(self, layout, dtype) }
    }

    fn is_same_memory(&self, other: &Self) -> bool {
        self.pointer() == other.pointer() && self.layout() == other.layout()
    }

    /// Memory of the host belongs to no device, whatever device it was made for.
    fn is_on_other_device_than(&self, other: &Self) -> bool {
        (self.kind(), other.kind()) == (MemoryKind::Device, MemoryKind::Device) && self.device() != other.device()
    }

    fn host_region(&self) -> HostRegion<'_> {
        HostRegion { address: self.address(), layout: self.layout(), dtype: self.dtype() }
    }

    /// Copies between this array and memory of the host in the order of a stream of `device`; the side that leads is
    /// this array's.
    fn exchange(&self, region: &HostRegion<'_>, lead: Lead, device: Device, stream: &Stream) -> Result<(), Error> {
        if self.size() == 0 {
            return Ok(());
        }
        let (layouts, item) = ByteLayouts::new(self.layout(), region.layout, self.dtype())?;
        let here = layouts.first.at(self.pointer());
        let there = layouts.second.at(region.address as u64);
        let overlaps = overlap(&self.addresses(), &region.addresses()?);
        if self.kind() == MemoryKind::Host && !overlaps {
            let (destination, source) = match lead {
                Lead::Destination => (&here, &there),
                Lead::Source => (&there, &here),
            };
            // SAFETY: this array's memory is the host's, and the region's maker promises it for that; they do not
            // overlap.
            unsafe { host::copy(destination, source, item) };
            return Ok(());
        }
        if self.kind() == MemoryKind::Host {
            let staging = Self::empty(self.shape(), self.dtype(), MemoryKind::Host, device, stream, Order::C)?;
            return match lead {
                Lead::Destination => {
                    staging.exchange(region, lead, device, stream)?;
                    staging.copy_to(self, stream)
                }
                Lead::Source => {
                    self.copy_to(&staging, stream)?;
                    staging.exchange(region, lead, device, stream)
                }
            };
        }
        let _guard = device.enter()?;
        let driver = Driver::get()?;
        if stream.capture_status_here(driver)? != CaptureStatus::None {
            return Err(CopyError::Capturing.into());
        }
        stream.wait_for(device, &stream.unordered(device, &[self])?)?;
        // SAFETY: the array keeps its memory, the region's maker promises it until this returns, when the stream is
        // done; the order of other streams that use the array was seen to.
        unsafe { transfer_host(driver, &here, &there, item, lead, overlaps, stream) }
    }

    /// Copies to memory that the same device can reach.
    fn copy_beside(&self, destination: &Self, device: Device, stream: &Stream) -> Result<(), Error> {
        let _guard = device.enter()?;
        let driver = Driver::get()?;
        let (layouts, item) = ByteLayouts::new(destination.layout(), self.layout(), self.dtype())?;
        let to = layouts.first.at(destination.pointer());
        let from = layouts.second.at(self.pointer());
        let Some(blocks) = Blocks::new(&to, &from, item, Lead::Destination) else { return Ok(()) };
        let is_capturing = stream.capture_status_here(driver)? != CaptureStatus::None;
        if blocks.copies() > MOST_COPIES && !is_capturing {
            return self.contiguous_copy(MemoryKind::Host, device, stream)?.copy_to(destination, stream);
        }
        stream.between(device, &[self, destination], || {
            // SAFETY: both arrays keep their memory, which is freed in the order of their streams, which come behind
            // this.
            Ok(unsafe { transfer::copy(driver, blocks, Host::Neither, stream) }?)
        })
    }

    /// Copies from the memory of another device, where only adjacent bytes can be copied.
    fn copy_to_other_device(&self, destination: &Self, stream: &Stream) -> Result<(), Error> {
        if !self.is_c_contiguous() {
            let copy = self.contiguous_copy(MemoryKind::Device, self.device(), self.stream())?;
            return copy.copy_to(destination, stream);
        }
        let device = destination.device();
        if !destination.is_c_contiguous() {
            return self.contiguous_copy(MemoryKind::Device, device, stream)?.copy_to(destination, stream);
        }
        let _guard = device.enter()?;
        let driver = Driver::get()?;
        let (to, from) = (driver.context(device)?, driver.context(self.device())?);
        stream.between(device, &[self, destination], || {
            let (destination, source, size) = (destination.pointer(), self.pointer(), self.size_bytes());
            // SAFETY: both arrays keep their memory of this many bytes, which is freed in the order of their streams,
            // which come behind this.
            Ok(unsafe { driver.cuMemcpyPeerAsync(destination, to, source, from, size, stream.raw()) }?)
        })
    }
}

impl HostRegion<'_> {
    fn addresses(&self) -> Result<Range<u64>, LayoutError> {
        let extents = self.layout.extents_bytes(self.dtype)?;
        let address = self.address as u64;
        Ok(address.wrapping_add_signed(extents.start)..address.wrapping_add_signed(extents.end))
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Fails if elements of this type and layout cannot be copied to or from `array`.
fn check_same(array: &ArrayView, layout: &Layout, dtype: DType) -> Result<(), CopyError> {
    if array.dtype() != dtype {
        return Err(CopyError::DType { one: array.dtype(), other: dtype });
    }
    if array.shape() != layout.shape() {
        let (one, other) = (Dims::from_slice(array.shape()), Dims::from_slice(layout.shape()));
        return Err(CopyError::Shape { one, other });
    }
    Ok(())
}

/// Shape and strides in bytes.
#[derive(Debug)]
struct ByteLayout {
    shape: Dims,
    strides: Dims,
}

impl ByteLayout {
    fn at(&self, address: u64) -> Place<'_> {
        Place { address, shape: &self.shape, strides: &self.strides }
    }
}

/// Two layouts of the same shape.
struct ByteLayouts {
    first: ByteLayout,
    second: ByteLayout,
}

impl ByteLayouts {
    /// Also gives the bytes of an element. Packed elements must lie alike without gaps; then they are bytes in a row.
    fn new(first: &Layout, second: &Layout, dtype: DType) -> Result<(Self, i64), Error> {
        let layout = |layout: &Layout| -> Result<ByteLayout, LayoutError> {
            Ok(ByteLayout { shape: Dims::from_slice(layout.shape()), strides: layout.strides_bytes(dtype)? })
        };
        let alike =
            first.is_c_contiguous() && second.is_c_contiguous() || first.is_f_contiguous() && second.is_f_contiguous();
        if dtype.size_bytes().is_none() && alike {
            let size = i64::try_from(first.size_bytes(dtype)?).map_err(|_| LayoutError::TooLarge)?;
            let bytes = || ByteLayout { shape: Dims::from_slice(&[size]), strides: Dims::from_slice(&[1]) };
            return Ok((Self { first: bytes(), second: bytes() }, 1));
        }
        let layouts = Self { first: layout(first)?, second: layout(second)? };
        let item = dtype.size_bytes().and_then(|size| i64::try_from(size).ok()).ok_or(LayoutError::TooLarge)?;
        Ok((layouts, item))
    }
}

impl Stream {
    /// Those of `arrays` whose streams have to wait for this stream of `device`, and the other way round. Work that is
    /// carried out and work that is recorded into a graph cannot wait for each other.
    fn unordered<'a>(&self, device: Device, arrays: &[&'a Array]) -> Result<SmallVec<[&'a Array; 2]>, DriverError> {
        let is_captured = |stream: &Self, device| -> Result<bool, DriverError> {
            Ok(stream.capture_status(device)? != CaptureStatus::None)
        };
        let mut unordered = SmallVec::new();
        for &array in arrays {
            let is_ordered = array.kind() == MemoryKind::Host
                || array.stream() == self && array.device() == device
                || is_captured(self, device)?
                || is_captured(array.stream(), array.device())?;
            if !is_ordered {
                unordered.push(array);
            }
        }
        Ok(unordered)
    }

    /// Makes this stream of `device` wait for what the streams of `arrays` do now.
    fn wait_for(&self, device: Device, arrays: &[&Array]) -> Result<(), DriverError> {
        arrays.iter().try_for_each(|array| self.order_after(device, array.stream(), array.device()))
    }

    /// Puts work with `arrays` into this stream of `device`, whose context is current, behind what their streams do now and
    /// before what they will.
    fn between(
        &self,
        device: Device,
        arrays: &[&Array],
        work: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let unordered = self.unordered(device, arrays)?;
        self.wait_for(device, &unordered)?;
        let result = work();
        // Also after an error: some of the work may have been put into the stream.
        let ordered = unordered.iter().try_for_each(|array| array.stream().order_after(array.device(), self, device));
        if ordered.is_err() {
            // Nothing else would keep the arrays' streams from freeing the memory under the work.
            // SAFETY: the stream is valid for as long as this value.
            unsafe { Driver::get()?.cuStreamSynchronize(self.raw()) }?;
        }
        result.and_then(|()| Ok(ordered?))
    }
}

/// Copies between memory of the driver's, `here`, and ordinary memory of the host, `there`. Returns when the copy is
/// done.
///
/// # Safety
/// The context of the stream's device is current, and `here` was put in the order of the stream. Both are memory until
/// this returns.
unsafe fn transfer_host(
    driver: &Driver,
    here: &Place<'_>,
    there: &Place<'_>,
    item: i64,
    lead: Lead,
    overlaps: bool,
    stream: &Stream,
) -> Result<(), Error> {
    let host = match lead {
        Lead::Destination => Host::Source,
        Lead::Source => Host::Destination,
    };
    let blocks = |there: &Place<'_>| match lead {
        Lead::Destination => Blocks::new(here, there, item, lead),
        Lead::Source => Blocks::new(there, here, item, lead),
    };
    let Some(direct) = blocks(there) else { return Ok(()) };
    let staging = Staging::new(here, item)?;
    let staged_blocks = |address| blocks(&staging.at(address, here.shape)).map(Blocks::without_repetition);
    let is_direct = !overlaps && staged_blocks(0).is_some_and(|staged| direct.copies() <= staged.copies());
    // SAFETY: the caller's promise; the stream is waited for before either memory is let go of, also after an error.
    let transfer = |blocks: Blocks| unsafe {
        let copied = transfer::copy(driver, blocks, host, stream);
        let done = driver.cuStreamSynchronize(stream.raw());
        copied.and(done)
    };
    if is_direct {
        return Ok(transfer(direct)?);
    }
    let memory = Allocation::new(MemoryKind::Host, staging.size_bytes, Device::new(0), stream)?;
    let staged = staging.at(memory.address(), here.shape);
    let Some(blocks) = staged_blocks(memory.address()) else { return Ok(()) };
    // SAFETY: the staging memory has room for all elements at the strides that were made for it, and is nobody else's.
    unsafe {
        match lead {
            Lead::Destination => {
                host::copy(&staged, there, item);
                transfer(blocks)?;
            }
            Lead::Source => {
                transfer(blocks)?;
                host::copy(there, &staged, item);
            }
        }
    }
    Ok(())
}

/// How elements lie in memory of the host between the driver and where they come from or go to: in the order in which
/// they lie in the driver's memory, but without gaps.
struct Staging {
    strides: Dims,
    size_bytes: usize,
    /// The first element, which is not the lowest one when a stride is negative, in bytes from the beginning.
    first: u64,
}

impl Staging {
    /// Memory for the elements of `item` bytes of a place.
    fn new(place: &Place<'_>, item: i64) -> Result<Self, Error> {
        let too_large = || Error::from(LayoutError::TooLarge);
        let mut axes: Vec<usize> = (0..place.shape.len()).filter(|&axis| place.shape[axis] != 1).collect();
        axes.sort_by_key(|&axis| place.strides[axis].unsigned_abs());
        let mut strides = Dims::from_elem(0, place.shape.len());
        let (mut size, mut first) = (item, 0);
        for axis in axes {
            // Elements that are the same one there are also one here.
            if place.strides[axis] != 0 {
                strides[axis] = size * place.strides[axis].signum();
                let previous = size;
                size = size.checked_mul(place.shape[axis]).ok_or_else(too_large)?;
                first += if strides[axis] < 0 { (size - previous).unsigned_abs() } else { 0 };
            }
        }
        Ok(Self { strides, size_bytes: usize::try_from(size).map_err(|_| too_large())?, first })
    }

    /// The elements in memory at `address`.
    fn at<'a>(&'a self, address: u64, shape: &'a [i64]) -> Place<'a> {
        Place { address: address + self.first, shape, strides: &self.strides }
    }
}
