//! The device and the stream of a launch, as they follow from the arrays among its arguments.

use std::fmt;
use std::mem::ManuallyDrop;

use cuwheel_device_array::stream::CaptureStatus;
use cuwheel_device_array::{Device, DriverError, Event, MemoryKind, Stream, stream};
use smallvec::SmallVec;

use super::{Arguments, ArrayArgument, Kernel, LaunchConfig, LaunchError};

/// Where a launch goes: a device, a stream, and the streams that it has to be ordered with.
///
/// The launch comes after what is on the streams of all arrays. On a stream that the caller named, what is put on those
/// streams afterwards does not wait for it; on one that followed from the arrays it does.
#[derive(Debug, Default)]
pub struct Placement {
    device: Option<Device>,
    /// Whether an array lies in memory of the device itself, which no other device reads.
    is_bound: bool,
    is_named: bool,
    stream: Option<Stream>,
    others: Others,
}

/// The streams of arrays that are not that of the launch. There are none of them as a rule, and then dropping takes a
/// comparison.
#[derive(Debug, Default)]
struct Others(ManuallyDrop<SmallVec<[(Device, Stream); 2]>>);

impl Drop for Others {
    #[inline]
    fn drop(&mut self) {
        #[cold]
        fn drop_all(others: &mut ManuallyDrop<SmallVec<[(Device, Stream); 2]>>) {
            // SAFETY: this is the end of what they are in.
            unsafe { ManuallyDrop::drop(others) }
        }

        // They are never taken out, so that without any there is no memory either.
        if !self.0.is_empty() {
            drop_all(&mut self.0);
        }
    }
}

/// Arrays of several devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MixedDevices;

impl fmt::Display for MixedDevices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the arrays are on several devices; copy them to one first")
    }
}

impl std::error::Error for MixedDevices {}

impl Placement {
    /// A launch without arrays so far, on a stream that the caller names or on one that follows.
    #[inline]
    pub fn new(named: Option<Stream>) -> Self {
        Self { is_named: named.is_some(), stream: named, ..Self::default() }
    }

    /// Adds an array, whose producer works on `own`, the array's own stream.
    ///
    /// Memory that all devices see goes with any of them.
    #[inline]
    pub fn add(&mut self, array: &impl ArrayArgument, own: &Stream) -> Result<(), MixedDevices> {
        self.add_worked_on(array, own, || own.clone())
    }

    /// Adds an array, whose producer works on another stream than the array's own: on `current`.
    #[inline]
    pub fn add_worked_on(
        &mut self,
        array: &impl ArrayArgument,
        own: &Stream,
        current: impl FnOnce() -> Stream,
    ) -> Result<(), MixedDevices> {
        let is_bound = array.kind() == MemoryKind::Device;
        let device = array.device();
        if self.device != Some(device) {
            self.settle(device, is_bound)?;
        }
        self.is_bound |= is_bound;
        let launch = self.stream.get_or_insert_with(current);
        if launch != own || self.device != Some(device) {
            self.add_other(device, own);
        }
        Ok(())
    }

    /// Finds the device of the launch again, now that there is an array of another one, or the first.
    #[inline(never)]
    fn settle(&mut self, device: Device, is_bound: bool) -> Result<(), MixedDevices> {
        match self.device {
            Some(_) if is_bound && self.is_bound => return Err(MixedDevices),
            Some(known) if is_bound => self.move_to(known, device),
            Some(_) => {}
            None => self.device = Some(device),
        }
        Ok(())
    }

    /// Moves the launch from the device of memory that all devices see to that of memory that only one does.
    #[cold]
    fn move_to(&mut self, device: Device, other: Device) {
        self.device = Some(other);
        let stream = if self.is_named { self.stream.clone() } else { self.stream.take() };
        // A named stream is one of the other device, unless it is one that each device has.
        if let Some(stream) = stream.filter(|stream| !self.is_named || stream.is_legacy() || stream.is_per_thread()) {
            self.add_other(device, &stream);
        }
    }

    #[cold]
    fn add_other(&mut self, device: Device, stream: &Stream) {
        if !self.others.0.iter().any(|(known, other)| *known == device && other == stream) {
            self.others.0.push((device, stream.clone()));
        }
    }

    /// The device: that of the arrays, or of the thread's current context where there are none.
    #[inline]
    pub fn device(&self) -> Result<Device, DriverError> {
        self.device.map_or_else(Device::current, Ok)
    }

    /// The stream.
    #[inline]
    pub fn stream(&self, device: Device) -> Stream {
        self.stream.clone().unwrap_or_else(|| stream::current(device))
    }

    /// Puts a launch on the stream, in order with the streams of the arrays. Nothing is waited for. Returns a mark if what
    /// keeps the arrays' memory has to be kept until it is reached.
    ///
    /// # Safety
    /// As for [`Kernel::launch`]; every array among the arguments was added. Their memory is there until the mark is reached
    /// or, without a mark, until work that ends it, which is behind the launch on the stream of its array.
    #[inline]
    pub unsafe fn launch(
        &self,
        kernel: &Kernel,
        arguments: &Arguments,
        config: &LaunchConfig,
    ) -> Result<Option<Event>, LaunchError> {
        if self.is_simple() {
            let (device, _guard) = match self.device {
                Some(device) => (device, device.enter_often()?),
                None => Device::enter_current()?,
            };
            // SAFETY: as the caller promises, and the context is current.
            unsafe { kernel.launch_here(arguments, config, device, &self.stream(device)) }?;
            return Ok(None);
        }
        let device = self.device()?;
        // SAFETY: as the caller promises.
        unsafe { self.launch_ordered(kernel, arguments, config, (device, &self.stream(device))) }
    }

    /// A launch on a stream that is not that of all arrays.
    ///
    /// # Safety
    /// As for [`launch`](Self::launch).
    #[cold]
    unsafe fn launch_ordered(
        &self,
        kernel: &Kernel,
        arguments: &Arguments,
        config: &LaunchConfig,
        (device, stream): (Device, &Stream),
    ) -> Result<Option<Event>, LaunchError> {
        self.order_before(device, stream)?;
        // SAFETY: as the caller promises; the streams of the arrays wait for the launch, or a mark is returned.
        unsafe { kernel.launch(arguments, config, device, stream) }?;
        self.order_behind(device, stream)?;
        if self.must_keep_arguments() { Ok(self.mark(device, stream)?) } else { Ok(None) }
    }

    /// Whether there is nothing to be ordered with.
    #[inline]
    pub fn is_simple(&self) -> bool {
        self.others.0.is_empty()
    }

    /// Whether the arguments have to be kept until the stream has passed the launch: nobody else waits for it.
    pub fn must_keep_arguments(&self) -> bool {
        self.is_named && !self.others.0.is_empty()
    }

    /// Puts the launch, which is still to come, behind what is on the streams of the arrays.
    ///
    /// A stream that is captured into a graph waits for captured streams only: what others did has to be over before the
    /// graph runs, and waiting for them would end the capture.
    pub fn order_before(&self, device: Device, stream: &Stream) -> Result<(), DriverError> {
        self.with_others(device, stream, &|other_device, other| stream.order_after(device, other, other_device))
    }

    /// Puts what is put on the streams of the arrays from now on behind the launch, which has been made.
    pub fn order_behind(&self, device: Device, stream: &Stream) -> Result<(), DriverError> {
        if self.is_named {
            return Ok(());
        }
        self.with_others(device, stream, &|other_device, other| other.order_after(other_device, stream, device))
    }

    fn with_others(
        &self,
        device: Device,
        stream: &Stream,
        order: &dyn Fn(Device, &Stream) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        if self.others.0.is_empty() {
            return Ok(());
        }
        let is_captured =
            |device, stream: &Stream| stream.capture_status(device).map(|status| status != CaptureStatus::None);
        let must_be_captured = is_captured(device, stream)?;
        for (other_device, other) in self.others.0.iter() {
            if !must_be_captured || is_captured(*other_device, other)? {
                order(*other_device, other)?;
            }
        }
        Ok(())
    }

    /// A mark behind the launch that has been made, unless it was captured: a graph runs when it is launched, and its
    /// owner keeps what it uses.
    pub fn mark(&self, device: Device, stream: &Stream) -> Result<Option<Event>, DriverError> {
        if stream.capture_status(device)? != CaptureStatus::None {
            return Ok(None);
        }
        let event = Event::new(device)?;
        event.record(stream)?;
        Ok(Some(event))
    }
}
