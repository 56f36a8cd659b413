//! `cuModule*`, `cuLibrary*`, `cuKernel*` and `cuFunc*`.

use std::ffi::{CString, c_char};

use super::exports::exports;
use super::{In, Out, Text};
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::image::{Parameter, Refusal, raw};

/// `CUjit_option`: buffers for what the compiler says, and their sizes in and out.
const INFO_LOG: u32 = 3;
const INFO_LOG_BYTES: u32 = 4;
const ERROR_LOG: u32 = 5;
const ERROR_LOG_BYTES: u32 = 6;

/// An image that a caller gives by its address: null, or what `cuModuleLoadData` takes.
#[repr(transparent)]
struct ImageAddress(*const u8);

impl ImageAddress {
    fn copy(&self) -> Result<Vec<u8>, Refusal> {
        if self.0.is_null() {
            return Err(Refusal { code: Code::INVALID_VALUE, reason: "the image is null".to_owned() });
        }
        // SAFETY: not null, so an image, by the promise that the type stands for.
        unsafe { raw::copy(self.0) }.ok_or_else(|| Refusal {
            code: Code::INVALID_IMAGE,
            reason: "the image is neither a cubin nor a fat binary nor PTX".to_owned(),
        })
    }
}

/// Options of the compiler: as many keys as values.
struct Options {
    count: u32,
    keys: In<u32>,
    values: *mut usize,
}

impl Options {
    /// Puts what is to be said into the buffers that the caller gave for it.
    fn log(&self, errors: &str) -> Outcome {
        let mut buffers = [(0_usize, 0_usize); 2];
        for index in 0..self.count as usize {
            // SAFETY: the caller says that so many keys and values are there.
            let (key, value) = unsafe { (self.keys.item(index)?, In(self.values.cast_const()).item(index)?) };
            match key {
                INFO_LOG => buffers[0].0 = value,
                INFO_LOG_BYTES => buffers[0].1 = value,
                ERROR_LOG => buffers[1].0 = value,
                ERROR_LOG_BYTES => buffers[1].1 = value,
                _ => {}
            }
        }
        let written = [("", buffers[0]), (errors, buffers[1])].map(|(text, (buffer, size))| {
            let text = &text.as_bytes()[..text.len().min(size.saturating_sub(1))];
            let place = Out(std::ptr::with_exposed_provenance_mut::<u8>(buffer));
            // SAFETY: the caller says that the buffer has the size that it gave; the text and its end fit.
            if size > 0 && unsafe { place.set_all(&[text, &[0]].concat()) }.is_ok() { text.len() } else { 0 }
        });
        for index in 0..self.count as usize {
            // SAFETY: the caller says that so many keys and values are there.
            unsafe {
                match self.keys.item(index)? {
                    INFO_LOG_BYTES => self.values.add(index).write(written[0]),
                    ERROR_LOG_BYTES => self.values.add(index).write(written[1]),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The result of a load, with its log written.
    fn finish(&self, driver: &mut Driver, loaded: Result<u64, Refusal>) -> Outcome<u64> {
        let reason = loaded.as_ref().err().map_or("", |refusal| refusal.reason.as_str());
        self.log(reason)?;
        loaded.map_err(|refusal| driver.refuse(&refusal))
    }
}

impl Driver {
    /// The code of a refusal; its reason goes to the log.
    fn refuse(&mut self, refusal: &Refusal) -> Code {
        self.journal.log_line(format_args!("refused: {}", refusal.reason));
        refusal.code
    }
}

fn read_file(path: &Text) -> Result<Vec<u8>, Refusal> {
    let path = path.get().map_err(|code| Refusal { code, reason: "the path is no text".to_owned() })?;
    std::fs::read(&path).map_err(|error| Refusal { code: Code::FILE_NOT_FOUND, reason: format!("{path}: {error}") })
}

exports! {
    [2000 Unsafe] fn cuModuleLoadData(module: Out<u64>, image: ImageAddress) |driver| {
        module.require()?;
        let loaded = image.copy().and_then(|bytes| driver.load_module(&bytes));
        module.set(loaded.map_err(|refusal| driver.refuse(&refusal))?)
    }

    [2010 Unsafe] fn cuModuleLoadDataEx(
        module: Out<u64>, image: ImageAddress, count: u32, keys: In<u32>, values: *mut usize,
    ) |driver| {
        module.require()?;
        let loaded = image.copy().and_then(|bytes| driver.load_module(&bytes));
        let options = Options { count, keys, values };
        module.set(options.finish(driver, loaded)?)
    }

    [2000 Unsafe] fn cuModuleLoadFatBinary(module: Out<u64>, image: ImageAddress) |driver| {
        module.require()?;
        let loaded = image.copy().and_then(|bytes| driver.load_module(&bytes));
        module.set(loaded.map_err(|refusal| driver.refuse(&refusal))?)
    }

    [2000 Unsafe] fn cuModuleLoad(module: Out<u64>, path: Text) |driver| {
        module.require()?;
        let loaded = read_file(&path).and_then(|bytes| driver.load_module(&bytes));
        module.set(loaded.map_err(|refusal| driver.refuse(&refusal))?)
    }

    [2000 Unsafe] fn cuModuleUnload(module: u64) |driver| { driver.unload_module(module) }

    [11070 Setup] fn cuModuleGetLoadingMode(mode: Out<u32>) |_driver| { mode.set(2) }

    [2000 Normal] fn cuModuleGetFunction(function: Out<u64>, module: u64, name: Text) |driver| {
        function.require()?;
        function.set(driver.module_function(module, &name.get()?)?)
    }

    [3020 Normal] fn cuModuleGetGlobal_v2(address: Out<u64>, size: Out<usize>, module: u64, name: Text) |driver| {
        let (start, length) = driver.module_variable(module, &name.get()?)?;
        address.set_if_wanted(start);
        size.set_if_wanted(crate::index(length));
        Ok(())
    }

    [12040 Normal] fn cuModuleGetFunctionCount(count: Out<u32>, module: u64) |driver| {
        count.set(u32::try_from(driver.module_kernel_names(module)?.len()).unwrap_or(u32::MAX))
    }

    [12040 Normal] fn cuModuleEnumerateFunctions(functions: Out<u64>, room: u32, module: u64) |driver| {
        let names = driver.module_kernel_names(module)?;
        let handles = names.iter().take(room as usize).map(|name| driver.module_function(module, name));
        let handles = handles.collect::<Outcome<Vec<u64>>>()?;
        // SAFETY: the caller says that `room` handles fit.
        unsafe { functions.set_all(&handles) }
    }

    [12000 Unsafe] fn cuLibraryLoadData(
        library: Out<u64>, image: ImageAddress, jit_keys: In<u32>, jit_values: *mut usize, jit_count: u32,
        _keys: In<u32>, _values: In<usize>, _count: u32,
    ) |driver| {
        library.require()?;
        let loaded = image.copy().and_then(|bytes| driver.load_library(&bytes));
        let options = Options { count: jit_count, keys: jit_keys, values: jit_values };
        library.set(options.finish(driver, loaded)?)
    }

    [12000 Unsafe] fn cuLibraryLoadFromFile(
        library: Out<u64>, path: Text, jit_keys: In<u32>, jit_values: *mut usize, jit_count: u32,
        _keys: In<u32>, _values: In<usize>, _count: u32,
    ) |driver| {
        library.require()?;
        let loaded = read_file(&path).and_then(|bytes| driver.load_library(&bytes));
        let options = Options { count: jit_count, keys: jit_keys, values: jit_values };
        library.set(options.finish(driver, loaded)?)
    }

    [12000 Unsafe] fn cuLibraryUnload(library: u64) |driver| { driver.unload_library(library) }

    [12000 Normal] fn cuLibraryGetKernel(kernel: Out<u64>, library: u64, name: Text) |driver| {
        kernel.require()?;
        kernel.set(driver.library_kernel(library, &name.get()?)?)
    }

    [12000 Normal] fn cuLibraryGetModule(module: Out<u64>, library: u64) |driver| {
        module.require()?;
        module.set(driver.library_module(library)?)
    }

    [12000 Normal] fn cuLibraryGetGlobal(address: Out<u64>, size: Out<usize>, library: u64, name: Text) |driver| {
        let module = driver.library_module(library)?;
        let (start, length) = driver.module_variable(module, &name.get()?)?;
        address.set_if_wanted(start);
        size.set_if_wanted(crate::index(length));
        Ok(())
    }

    [12040 Normal] fn cuLibraryGetKernelCount(count: Out<u32>, library: u64) |driver| {
        count.set(u32::try_from(driver.library_kernel_names(library)?.len()).unwrap_or(u32::MAX))
    }

    [12040 Normal] fn cuLibraryEnumerateKernels(kernels: Out<u64>, room: u32, library: u64) |driver| {
        let names = driver.library_kernel_names(library)?;
        let handles = names.iter().take(room as usize).map(|name| driver.library_kernel(library, name));
        let handles = handles.collect::<Outcome<Vec<u64>>>()?;
        // SAFETY: the caller says that `room` handles fit.
        unsafe { kernels.set_all(&handles) }
    }

    [12000 Normal] fn cuKernelGetFunction(function: Out<u64>, kernel: u64) |driver| {
        function.require()?;
        function.set(driver.kernel_function(kernel)?)
    }

    [12050 Normal] fn cuKernelGetLibrary(library: Out<u64>, kernel: u64) |driver| {
        library.set(driver.kernel(kernel)?.library)
    }

    [12030 Normal] fn cuKernelGetName(name: Out<*const c_char>, kernel: u64) |driver| {
        let text = driver.kernel(kernel)?.kernel.name.to_string();
        name.set(driver.kept_text(&text)?)
    }

    [12000 Normal] fn cuKernelGetAttribute(value: Out<i32>, attribute: u32, kernel: u64, device: i32) |driver| {
        driver.device(device)?;
        let compute = driver.compute_number();
        let known = driver.kernel(kernel)?;
        value.set(known.settings.attribute(&known.kernel, attribute, compute)?)
    }

    [12000 Normal] fn cuKernelSetAttribute(attribute: u32, value: i32, kernel: u64, device: i32) |driver| {
        driver.device(device)?;
        let known = driver.kernel(kernel)?;
        known.settings.set_attribute(&known.kernel, attribute, value)
    }

    [12000 Normal] fn cuKernelSetCacheConfig(kernel: u64, _config: u32, device: i32) |driver| {
        driver.device(device)?;
        driver.kernel(kernel).map(drop)
    }

    [12040 Normal] fn cuKernelGetParamInfo(kernel: u64, index: usize, offset: Out<usize>, size: Out<usize>) |driver| {
        let parameters = driver.kernel(kernel)?.kernel.parameters.clone();
        parameter_info(parameters.as_deref(), index, &offset, &size)
    }

    [13020 Normal] fn cuKernelGetParamCount(kernel: u64, count: Out<usize>) |driver| {
        let parameters = driver.kernel(kernel)?.kernel.parameters.as_ref().ok_or(Code::NOT_SUPPORTED)?.len();
        count.set(parameters)
    }

    [2020 Normal] fn cuFuncGetAttribute(value: Out<i32>, attribute: u32, function: u64) |driver| {
        let compute = driver.compute_number();
        let known = driver.known_function(function)?;
        value.set(known.settings.attribute(&known.kernel, attribute, compute)?)
    }

    [9000 Normal] fn cuFuncSetAttribute(function: u64, attribute: u32, value: i32) |driver| {
        let known = driver.known_function(function)?;
        known.settings.set_attribute(&known.kernel, attribute, value)
    }

    [3000 Normal] fn cuFuncSetCacheConfig(function: u64, _config: u32) |driver| {
        driver.known_function(function).map(drop)
    }

    [4020 Normal] fn cuFuncSetSharedMemConfig(function: u64, _config: u32) |driver| {
        driver.known_function(function).map(drop)
    }

    [11000 Normal] fn cuFuncGetModule(module: Out<u64>, function: u64) |driver| {
        module.set(driver.known_function(function)?.module)
    }

    [12030 Normal] fn cuFuncGetName(name: Out<*const c_char>, function: u64) |driver| {
        let text = driver.known_function(function)?.kernel.name.to_string();
        name.set(driver.kept_text(&text)?)
    }

    [12040 Normal] fn cuFuncGetParamInfo(function: u64, index: usize, offset: Out<usize>, size: Out<usize>) |driver| {
        let parameters = driver.known_function(function)?.kernel.parameters.clone();
        parameter_info(parameters.as_deref(), index, &offset, &size)
    }

    [13020 Normal] fn cuFuncGetParamCount(function: u64, count: Out<usize>) |driver| {
        let parameters = driver.known_function(function)?.kernel.parameters.as_ref().ok_or(Code::NOT_SUPPORTED)?.len();
        count.set(parameters)
    }

    [12040 Normal] fn cuFuncIsLoaded(state: Out<u32>, function: u64) |driver| {
        driver.known_function(function)?;
        state.set(1)
    }

    [12040 Normal] fn cuFuncLoad(function: u64) |driver| { driver.known_function(function).map(drop) }
}

impl Driver {
    fn known_function(&mut self, handle: u64) -> Outcome<&mut crate::module::Function> {
        let function = self.function(handle)?;
        self.images.functions.get_mut(function).ok_or(Code::INVALID_HANDLE)
    }

    fn compute_number(&self) -> i32 {
        let (major, minor) = self.settings.compute_capability;
        major * 10 + minor
    }

    /// A C string that lasts as long as the driver.
    fn kept_text(&mut self, text: &str) -> Outcome<*const c_char> {
        if !self.texts.contains_key(text) {
            let ended = CString::new(text).map_err(|_| Code::INVALID_VALUE)?;
            self.texts.insert(text.to_owned(), ended);
        }
        Ok(self.texts[text].as_ptr())
    }
}

fn parameter_info(parameters: Option<&[Parameter]>, index: usize, offset: &Out<usize>, size: &Out<usize>) -> Outcome {
    let parameter = parameters.ok_or(Code::NOT_SUPPORTED)?.get(index).ok_or(Code::INVALID_VALUE)?;
    offset.set(parameter.offset)?;
    size.set_if_wanted(parameter.size);
    Ok(())
}
