//! One program of NVRTC: made, compiled, asked, destroyed.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;

use cudarc::nvrtc::sys;

use super::nvrtc::Nvrtc;
use super::{Architecture, CompileError, CompilerRefusal, Source};

/// What NVRTC made of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) image: Vec<u8>,
    /// Expressions with their names in the image.
    pub(super) names: Vec<(String, String)>,
    pub(super) log: String,
}

/// Has a source compiled.
pub(super) fn make(
    nvrtc: &Nvrtc,
    source: &Source,
    architecture: Architecture,
    include_dirs: &[PathBuf],
) -> Result<Made, CompileError> {
    let options = options(source, architecture, include_dirs)?;
    let program = Program::new(nvrtc, source, architecture)?;
    let names = all_texts("a name", &source.names)?;
    for name in &names {
        // SAFETY: the program exists, and the text ends in a zero.
        program.check("nvrtcAddNameExpression", unsafe {
            (nvrtc.functions.nvrtcAddNameExpression)(program.handle, name.as_ptr())
        })?;
    }
    let pointers = pointers(&options);
    // SAFETY: there are as many options as is said, each a text that ends in a zero.
    let code = unsafe { (nvrtc.functions.nvrtcCompileProgram)(program.handle, count(&pointers), pointers.as_ptr()) };
    program.check("nvrtcCompileProgram", code)?;
    let names = source.names.iter().zip(&names).map(|(name, text)| Ok((name.clone(), program.lowered(text)?)));
    let names = names.collect::<Result<_, CompileError>>()?;
    Ok(Made { image: program.image()?, names, log: program.log() })
}

/// The options for the compiler: those of here first, so that the source's own can add to them.
fn options(
    source: &Source,
    architecture: Architecture,
    include_dirs: &[PathBuf],
) -> Result<Vec<CString>, CompileError> {
    let mut texts = vec![format!("--gpu-architecture={architecture}").into_bytes()];
    for directory in include_dirs {
        texts.push([b"--include-path=", directory.as_os_str().as_encoded_bytes()].concat());
    }
    texts.extend(source.options.iter().map(|option| option.clone().into_bytes()));
    texts.into_iter().map(|text| zero_ended("an option", text)).collect()
}

fn zero_ended(what: &str, text: impl Into<Vec<u8>>) -> Result<CString, CompileError> {
    CString::new(text).map_err(|_| CompileError::ZeroCharacter { what: what.to_owned() })
}

fn all_texts<'a>(what: &str, texts: impl IntoIterator<Item = &'a String>) -> Result<Vec<CString>, CompileError> {
    texts.into_iter().map(|text| zero_ended(what, text.as_str())).collect()
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}

fn count<T>(items: &[T]) -> c_int {
    // More are not passed, and as many options do not fit into memory.
    c_int::try_from(items.len()).unwrap_or(c_int::MAX)
}

struct Program<'a> {
    nvrtc: &'a Nvrtc,
    handle: sys::nvrtcProgram,
    filename: &'a str,
    architecture: Architecture,
}

impl<'a> Program<'a> {
    fn new(nvrtc: &'a Nvrtc, source: &'a Source, architecture: Architecture) -> Result<Self, CompileError> {
        let code = zero_ended("the source", source.code.as_str())?;
        let filename = zero_ended("the name of the source", source.filename.as_str())?;
        let names = all_texts("the name of a header", source.headers.iter().map(|(name, _)| name))?;
        let contents = all_texts("a header", source.headers.iter().map(|(_, content)| content))?;
        let (contents, names) = (pointers(&contents), pointers(&names));
        let mut program = Self { nvrtc, handle: std::ptr::null_mut(), filename: &source.filename, architecture };
        // SAFETY: there are as many headers as is said, and all are texts that end in a zero. NVRTC copies them.
        let created = unsafe {
            (nvrtc.functions.nvrtcCreateProgram)(
                &raw mut program.handle,
                code.as_ptr(),
                filename.as_ptr(),
                count(&contents),
                contents.as_ptr(),
                names.as_ptr(),
            )
        };
        program.check("nvrtcCreateProgram", created)?;
        Ok(program)
    }

    fn check(&self, call: &'static str, code: u32) -> Result<(), CompileError> {
        if code == 0 {
            return Ok(());
        }
        Err(self.refused(call, code, self.log()))
    }

    fn refused(&self, call: &'static str, code: u32, log: String) -> CompileError {
        CompileError::Refused(Box::new(CompilerRefusal {
            filename: self.filename.to_owned(),
            architecture: self.architecture.to_string(),
            compiler: self.nvrtc.name(),
            call,
            name: self.nvrtc.functions.name_of(code),
            code,
            log,
        }))
    }

    /// What the compiler says of the source; a program that says nothing, or cannot, has an empty log.
    fn log(&self) -> String {
        if self.handle.is_null() {
            return String::new();
        }
        let functions = &self.nvrtc.functions;
        let log = self.bytes("nvrtcGetProgramLog", functions.nvrtcGetProgramLogSize, functions.nvrtcGetProgramLog);
        let bytes = log.unwrap_or_default();
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// The name in the image of an expression.
    fn lowered(&self, expression: &CStr) -> Result<String, CompileError> {
        let mut name = std::ptr::null();
        // SAFETY: the program exists, the text ends in a zero, and the pointer is to a local variable.
        let code =
            unsafe { (self.nvrtc.functions.nvrtcGetLoweredName)(self.handle, expression.as_ptr(), &raw mut name) };
        self.check("nvrtcGetLoweredName", code)?;
        if name.is_null() {
            return Ok(String::new());
        }
        // SAFETY: NVRTC gives a text that ends in a zero and lasts as long as the program.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    fn image(&self) -> Result<Vec<u8>, CompileError> {
        let functions = &self.nvrtc.functions;
        if self.architecture.is_ptx() {
            return self.bytes("nvrtcGetPTX", functions.nvrtcGetPTXSize, functions.nvrtcGetPTX);
        }
        self.bytes("nvrtcGetCUBIN", functions.nvrtcGetCUBINSize, functions.nvrtcGetCUBIN)
    }

    /// What one function tells the size of, and the other writes.
    fn bytes(
        &self,
        call: &'static str,
        size: unsafe extern "C" fn(sys::nvrtcProgram, *mut usize) -> u32,
        write: unsafe extern "C" fn(sys::nvrtcProgram, *mut c_char) -> u32,
    ) -> Result<Vec<u8>, CompileError> {
        let mut size_bytes = 0;
        // SAFETY: the program exists, and the pointer is to a local variable.
        let code = unsafe { size(self.handle, &raw mut size_bytes) };
        if code != 0 {
            return Err(self.refused(call, code, String::new()));
        }
        let mut bytes = vec![0_u8; size_bytes];
        // SAFETY: there is room for as many bytes as NVRTC says.
        let code = unsafe { write(self.handle, bytes.as_mut_ptr().cast()) };
        if code == 0 { Ok(bytes) } else { Err(self.refused(call, code, String::new())) }
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the program was made here, and nobody else knows it. A failure to destroy it loses some memory.
            unsafe { (self.nvrtc.functions.nvrtcDestroyProgram)(&raw mut self.handle) };
        }
    }
}
