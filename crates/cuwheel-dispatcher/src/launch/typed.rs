//! A launch whose arguments Rust knows: for functions of extensions, which take arrays and numbers of fixed types.
//!
//! Not for arguments that are told apart while the program runs: [`Arguments`] and [`Placement`] are what this is made of.

use cuwheel_device_array::{ArrayView, DType, Event, Stream};

use super::{Argument, ArgumentError, Arguments, Kernel, LaunchConfig, LaunchError, Parameter, Placement};

/// A launch in the making: the arguments in the order of the parameters, then [`submit`](Self::submit).
///
/// It goes on the stream that the producers of the arrays work on; arrays on other streams are ordered with it, and it is
/// recorded where a CUDA graph is. Each argument is held against the signature that the kernel was made with.
///
/// ```no_run
/// use cuwheel_dispatcher::launch::{Image, Launch, LaunchConfig, LaunchError, Module, Signature};
/// use cuwheel_device_array::ArrayView;
///
/// fn scale(factor: f32, array: &ArrayView, fatbin: &[u8]) -> Result<(), LaunchError> {
///     let signature = Signature::parse(["int64 n", "float32 factor", "float32* array"])?;
///     let kernel = Module::new(Image::new(fatbin)?).kernel("scale", Some(signature));
///     let launch = Launch::new(&kernel)?.number(array.size() as i64)?.number(factor)?.array(array)?;
///     // SAFETY: the kernel touches `n` elements of an array that is alive, and has as many.
///     unsafe { launch.submit(&LaunchConfig::linear(64, 256)?) }?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use = "nothing is launched before `submit`"]
pub struct Launch<'a> {
    kernel: &'a Kernel,
    parameters: &'a [Parameter],
    /// The arguments that were given.
    given: usize,
    arguments: Arguments,
    placement: Placement,
}

impl<'a> Launch<'a> {
    /// A launch on the stream that follows from the arrays.
    ///
    /// # Errors
    /// If there is no driver, or the kernel cannot be found.
    pub fn new(kernel: &'a Kernel) -> Result<Self, LaunchError> {
        Self::placed(kernel, Placement::new(None))
    }

    /// A launch on a stream that the caller names.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn on(kernel: &'a Kernel, stream: Stream) -> Result<Self, LaunchError> {
        Self::placed(kernel, Placement::new(Some(stream)))
    }

    fn placed(kernel: &'a Kernel, placement: Placement) -> Result<Self, LaunchError> {
        let signature = kernel.signature()?;
        let mut arguments = Arguments::empty();
        arguments.clear_for(signature);
        Ok(Self { kernel, parameters: signature.parameters(), given: 0, arguments, placement })
    }

    /// Gives the next parameter an array.
    ///
    /// # Errors
    /// If the parameter is of another type, the array is read-only and the parameter not, or the arrays are on several
    /// devices.
    pub fn array(mut self, array: &ArrayView) -> Result<Self, LaunchError> {
        let (position, parameter) = self.next()?;
        self.arguments
            .set_array(parameter, array)
            .map_err(|error| Argument::refused(self.kernel, position, parameter, error))?;
        self.placement.add(array, array.stream())?;
        Ok(self)
    }

    /// Gives the next parameter a number.
    ///
    /// # Errors
    /// If the parameter is of another type.
    pub fn number<T: Number>(mut self, number: T) -> Result<Self, LaunchError> {
        let (position, parameter) = self.next()?;
        let (given, kind) = (T::DTYPE, parameter.kind);
        let is_unknown = kind == super::ParameterType::Unknown { size_bytes: size_of::<T>() };
        if kind != super::ParameterType::Scalar(given) && !is_unknown {
            let error = ArgumentError::Number { given, kind };
            return Err(Argument::refused(self.kernel, position, parameter, error));
        }
        number.set(&mut self.arguments, parameter);
        Ok(self)
    }

    fn next(&mut self) -> Result<(usize, &'a Parameter), LaunchError> {
        let position = self.given;
        self.given += 1;
        self.parameters.get(position).map(|parameter| (position, parameter)).ok_or_else(|| self.wrong_count())
    }

    #[cold]
    fn wrong_count(&self) -> LaunchError {
        let (kernel, expected) = (self.kernel.name().to_owned(), self.parameters.len());
        LaunchError::Count { kernel, expected, given: self.given }
    }

    /// Puts the launch on its stream. The device's context is made current for the call; nothing is waited for.
    ///
    /// Nobody waits for a launch on a [named](Self::on) stream: if there is a mark in the result, what keeps the memory of
    /// the arrays has to be kept until it is reached, for which there is [`hold_until`](cuwheel_device_array::hold_until).
    ///
    /// # Errors
    /// If an argument is missing, the device does not allow the configuration, or the driver refuses.
    ///
    /// # Safety
    /// The arrays are alive, and have as many elements as the kernel touches. Memory that others free before the launch is
    /// done is freed in the order of the stream that they work on. A named stream is one of the device.
    pub unsafe fn submit(self, config: &LaunchConfig) -> Result<Option<Event>, LaunchError> {
        if self.given != self.parameters.len() {
            return Err(self.wrong_count());
        }
        // SAFETY: as the caller promises; each argument was held against its parameter.
        unsafe { self.placement.launch(self.kernel, &self.arguments, config) }
    }
}

/// A number that kernels take by value.
pub trait Number: Copy {
    /// The type in signatures.
    const DTYPE: DType;

    /// Sets a parameter of this type.
    fn set(self, arguments: &mut Arguments, parameter: &Parameter);
}

macro_rules! numbers {
    ($($rust:ty => $dtype:ident,)*) => {
        $(impl Number for $rust {
            const DTYPE: DType = DType::$dtype;

            fn set(self, arguments: &mut Arguments, parameter: &Parameter) {
                arguments.set(parameter, &self.to_ne_bytes());
            }
        })*
    };
}

numbers! {
    i8 => Int8,
    i16 => Int16,
    i32 => Int32,
    i64 => Int64,
    u8 => UInt8,
    u16 => UInt16,
    u32 => UInt32,
    u64 => UInt64,
    f32 => Float32,
    f64 => Float64,
}

impl Number for bool {
    const DTYPE: DType = DType::Bool;

    fn set(self, arguments: &mut Arguments, parameter: &Parameter) {
        arguments.set(parameter, &[u8::from(self)]);
    }
}
