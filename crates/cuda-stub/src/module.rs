//! Modules and libraries, and the kernels and functions in them.
//!
//! A module belongs to a context. A library belongs to none, and becomes a module of each context in which one of its kernels
//! is used.

use std::collections::HashMap;
use std::sync::Arc;

use crate::device::SHARED_BYTES_PER_BLOCK;
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::handle::{Kind, Table};
use crate::image::{self, Image, Refusal, Target};
use crate::memory::{MemoryKind, Owner};

/// One module.
pub(crate) struct Module {
    pub(crate) context: u64,
    image: Arc<Image>,
    /// Functions by name; each is given out once.
    functions: HashMap<Arc<str>, u64>,
    /// Memory of variables that were asked for.
    variables: HashMap<String, u64>,
    /// Whether it is the module of a library, which unloads it.
    of_library: bool,
}

/// One library.
pub(crate) struct Library {
    image: Arc<Image>,
    kernels: HashMap<Arc<str>, u64>,
    modules: HashMap<u64, u64>,
}

/// A kernel of a library, in no context.
pub(crate) struct LibraryKernel {
    pub(crate) library: u64,
    pub(crate) kernel: image::Kernel,
    pub(crate) settings: FunctionSettings,
}

/// A kernel in a context.
pub(crate) struct Function {
    pub(crate) module: u64,
    pub(crate) context: u64,
    pub(crate) kernel: image::Kernel,
    pub(crate) settings: FunctionSettings,
}

/// What programs set of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionSettings {
    pub(crate) dynamic_shared_bytes: u32,
    carveout: i32,
    pub(crate) non_portable_cluster: bool,
}

impl Default for FunctionSettings {
    fn default() -> Self {
        Self { dynamic_shared_bytes: SHARED_BYTES_PER_BLOCK, carveout: -1, non_portable_cluster: false }
    }
}

impl FunctionSettings {
    /// `CUfunction_attribute` of a kernel.
    pub(crate) fn attribute(&self, kernel: &image::Kernel, attribute: u32, compute: i32) -> Outcome<i32> {
        Ok(match attribute {
            0 => 1024,
            1 => kernel.shared_bytes.cast_signed(),
            2 | 3 | 7 | 10..=13 | 15 => 0,
            4 => kernel.registers.cast_signed(),
            5 | 6 => compute,
            8 => self.dynamic_shared_bytes.cast_signed(),
            9 => self.carveout,
            14 => i32::from(self.non_portable_cluster),
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    pub(crate) fn set_attribute(&mut self, kernel: &image::Kernel, attribute: u32, value: i32) -> Outcome {
        match attribute {
            8 => {
                let most = crate::device::SHARED_BYTES_PER_BLOCK_OPT_IN.saturating_sub(kernel.shared_bytes);
                self.dynamic_shared_bytes =
                    u32::try_from(value).ok().filter(|bytes| *bytes <= most).ok_or(Code::INVALID_VALUE)?;
            }
            9 if (-1..=100).contains(&value) => self.carveout = value,
            14 => self.non_portable_cluster = value != 0,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }
}

/// Everything that was loaded.
pub(crate) struct Images {
    pub(crate) modules: Table<Module>,
    pub(crate) libraries: Table<Library>,
    pub(crate) kernels: Table<LibraryKernel>,
    pub(crate) functions: Table<Function>,
}

impl Default for Images {
    fn default() -> Self {
        Self {
            modules: Table::new(Kind::Module),
            libraries: Table::new(Kind::Library),
            kernels: Table::new(Kind::Kernel),
            functions: Table::new(Kind::Function),
        }
    }
}

impl Images {
    /// Modules of a context that goes.
    pub(crate) fn unload_context(&mut self, context: u64) {
        self.modules.take(|module| module.context == context);
        self.functions.take(|function| function.context == context);
        for library in self.libraries.values_mut() {
            library.modules.remove(&context);
        }
    }

    /// Modules and libraries that a program has to unload.
    pub(crate) fn alive(&self) -> usize {
        self.modules.iter().filter(|(_, module)| !module.of_library).count() + self.libraries.iter().count()
    }
}

impl Driver {
    fn target(&self) -> Target {
        let (major, minor) = self.settings.compute_capability;
        let compute = u32::try_from(major * 10 + minor).unwrap_or_default();
        Target { compute, driver_version: self.settings.driver_version }
    }

    /// `cuModuleLoadData`.
    pub(crate) fn load_module(&mut self, bytes: &[u8]) -> Result<u64, Refusal> {
        let context = self.current().map_err(|code| Refusal { code, reason: "no context is current".to_owned() })?;
        let image = Arc::new(image::parse(bytes, self.target())?);
        Ok(self.add_module(context, image, false))
    }

    fn add_module(&mut self, context: u64, image: Arc<Image>, of_library: bool) -> u64 {
        let (functions, variables) = (HashMap::new(), HashMap::new());
        self.images.modules.insert(Module { context, image, functions, variables, of_library })
    }

    /// `cuModuleUnload`.
    pub(crate) fn unload_module(&mut self, handle: u64) -> Outcome {
        if self.module(handle)?.of_library {
            return Err(Code::NOT_PERMITTED);
        }
        self.drop_module(handle);
        Ok(())
    }

    fn drop_module(&mut self, handle: u64) {
        let Some(module) = self.images.modules.remove(handle) else { return };
        self.images.functions.take(|function| function.module == handle);
        let by = self.place_text();
        for address in module.variables.values() {
            self.forget_allocation(*address, &by);
        }
    }

    pub(crate) fn module(&mut self, handle: u64) -> Outcome<&mut Module> {
        if self.images.modules.get(handle).is_none() {
            let was = self.images.modules.was(handle);
            return self.stale("module", handle, was);
        }
        self.images.modules.get_mut(handle).ok_or(Code::INVALID_HANDLE)
    }

    /// `cuModuleGetFunction`.
    pub(crate) fn module_function(&mut self, module_handle: u64, name: &str) -> Outcome<u64> {
        let module = self.module(module_handle)?;
        if let Some(function) = module.functions.get(name) {
            return Ok(*function);
        }
        let context = module.context;
        let kernel = module.image.kernel(name).ok_or(Code::NOT_FOUND)?;
        let name = kernel.name.clone();
        let settings = FunctionSettings::default();
        let function = self.images.functions.insert(Function { module: module_handle, context, kernel, settings });
        self.module(module_handle)?.functions.insert(name, function);
        Ok(function)
    }

    pub(crate) fn module_kernel_names(&mut self, handle: u64) -> Outcome<Vec<Arc<str>>> {
        Ok(self.module(handle)?.image.kernels.keys().cloned().collect())
    }

    /// `cuModuleGetGlobal`: address and size of a variable, which is zero at first.
    pub(crate) fn module_variable(&mut self, handle: u64, name: &str) -> Outcome<(u64, u64)> {
        let module = self.module(handle)?;
        let context = module.context;
        let size = *module.image.variables.get(name).ok_or(Code::NOT_FOUND)?;
        if let Some(address) = module.variables.get(name) {
            return Ok((*address, size));
        }
        let owner = Owner { device: self.context_device(context)?, context, pool: None, stream: None, flags: 0 };
        let origin = format!("the variable {name} of a module");
        let address = self.memory.allocate(MemoryKind::Variable, size, owner, origin).ok_or(Code::OUT_OF_MEMORY)?;
        self.module(handle)?.variables.insert(name.to_owned(), address);
        Ok((address, size))
    }

    /// `cuLibraryLoadData`.
    pub(crate) fn load_library(&mut self, bytes: &[u8]) -> Result<u64, Refusal> {
        let image = Arc::new(image::parse(bytes, self.target())?);
        let (kernels, modules) = (HashMap::new(), HashMap::new());
        Ok(self.images.libraries.insert(Library { image, kernels, modules }))
    }

    fn library(&mut self, handle: u64) -> Outcome<&mut Library> {
        if self.images.libraries.get(handle).is_none() {
            let was = self.images.libraries.was(handle);
            return self.stale("library", handle, was);
        }
        self.images.libraries.get_mut(handle).ok_or(Code::INVALID_HANDLE)
    }

    /// `cuLibraryUnload`.
    pub(crate) fn unload_library(&mut self, handle: u64) -> Outcome {
        self.library(handle)?;
        let library = self.images.libraries.remove(handle).ok_or(Code::INVALID_HANDLE)?;
        self.images.kernels.take(|kernel| kernel.library == handle);
        for module in library.modules.values() {
            self.drop_module(*module);
        }
        Ok(())
    }

    /// `cuLibraryGetKernel`.
    pub(crate) fn library_kernel(&mut self, handle: u64, name: &str) -> Outcome<u64> {
        let library = self.library(handle)?;
        if let Some(kernel) = library.kernels.get(name) {
            return Ok(*kernel);
        }
        let kernel = library.image.kernel(name).ok_or(Code::NOT_FOUND)?;
        let name = kernel.name.clone();
        let kernel = LibraryKernel { library: handle, kernel, settings: FunctionSettings::default() };
        let kernel = self.images.kernels.insert(kernel);
        self.library(handle)?.kernels.insert(name, kernel);
        Ok(kernel)
    }

    pub(crate) fn library_kernel_names(&mut self, handle: u64) -> Outcome<Vec<Arc<str>>> {
        Ok(self.library(handle)?.image.kernels.keys().cloned().collect())
    }

    /// `cuLibraryGetModule`: the library's module in the current context.
    pub(crate) fn library_module(&mut self, handle: u64) -> Outcome<u64> {
        let context = self.current()?;
        let library = self.library(handle)?;
        if let Some(module) = library.modules.get(&context) {
            return Ok(*module);
        }
        let image = library.image.clone();
        let module = self.add_module(context, image, true);
        self.library(handle)?.modules.insert(context, module);
        Ok(module)
    }

    pub(crate) fn kernel(&mut self, handle: u64) -> Outcome<&mut LibraryKernel> {
        if self.images.kernels.get(handle).is_none() {
            let was = self.images.kernels.was(handle);
            return self.stale("kernel", handle, was);
        }
        self.images.kernels.get_mut(handle).ok_or(Code::INVALID_HANDLE)
    }

    /// `cuKernelGetFunction`: the kernel in the current context. What was set of the kernel holds for the function.
    pub(crate) fn kernel_function(&mut self, handle: u64) -> Outcome<u64> {
        let kernel = self.kernel(handle)?;
        let (library, name, settings) = (kernel.library, kernel.kernel.name.clone(), kernel.settings);
        let module = self.library_module(library)?;
        let function = self.module_function(module, &name)?;
        self.images.functions.get_mut(function).ok_or(Code::INVALID_HANDLE)?.settings = settings;
        Ok(function)
    }

    /// The function that a caller means by a `CUfunction`, which may be a `CUkernel` too.
    pub(crate) fn function(&mut self, handle: u64) -> Outcome<u64> {
        if self.images.functions.get(handle).is_some() {
            return Ok(handle);
        }
        if self.images.kernels.get(handle).is_some() {
            return self.kernel_function(handle);
        }
        let was = self.images.functions.was(handle) || self.images.kernels.was(handle);
        self.stale("function", handle, was)
    }
}
