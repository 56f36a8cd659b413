//! A program that uses the stand-in as it would use a driver: functions by name from the loaded library.

use std::sync::MutexGuard;

use cuda::control::Stub;

/// Calls a function of the driver: `cu!(program, cuMemAlloc_v2(&raw mut address => *mut u64, 64 => usize))` is its code.
macro_rules! cu {
    ($program:expr, $name:ident($($value:expr => $type:ty),* $(,)?)) => {{
        let symbol = concat!(stringify!($name), "\0").as_bytes();
        // SAFETY: each use writes the types that cuda.h has for the function, and its pointers are good for the call.
        unsafe {
            let function: unsafe extern "C" fn($($type),*) -> u32 = $program.stub.function(symbol);
            function($($value),*)
        }
    }};
}
pub(crate) use cu;

/// The only test at work: the driver, its record and its primary context are of the process.
pub(crate) struct Program {
    pub(crate) stub: &'static Stub,
    pub(crate) context: u64,
    _alone: MutexGuard<'static, ()>,
}

impl Program {
    /// A program with the primary context of device 0 current, and an empty record.
    pub(crate) fn start() -> Self {
        let (stub, alone) = Stub::alone();
        stub.configure("memory=1073741824;driver=13010").unwrap();
        let mut program = Self { stub, context: 0, _alone: alone };
        assert_eq!(cu!(program, cuInit(0 => u32)), 0);
        let mut context = 0;
        assert_eq!(cu!(program, cuDevicePrimaryCtxRetain(&raw mut context => *mut u64, 0 => i32)), 0);
        assert_eq!(cu!(program, cuCtxSetCurrent(context => u64)), 0);
        program.context = context;
        program
    }

    pub(crate) fn allocate(&self, size: usize) -> u64 {
        let mut address = 0;
        assert_eq!(cu!(self, cuMemAlloc_v2(&raw mut address => *mut u64, size => usize)), 0);
        address
    }

    pub(crate) fn allocate_async(&self, size: usize, stream: u64) -> u64 {
        let mut address = 0;
        let code = cu!(self, cuMemAllocAsync(&raw mut address => *mut u64, size => usize, stream => u64));
        assert_eq!(code, 0);
        address
    }

    pub(crate) fn stream(&self, flags: u32) -> u64 {
        let mut stream = 0;
        assert_eq!(cu!(self, cuStreamCreate(&raw mut stream => *mut u64, flags => u32)), 0);
        stream
    }

    pub(crate) fn event(&self) -> u64 {
        let mut event = 0;
        assert_eq!(cu!(self, cuEventCreate(&raw mut event => *mut u64, 0 => u32)), 0);
        event
    }

    pub(crate) fn upload(&self, address: u64, bytes: &[u8]) -> u32 {
        cu!(self, cuMemcpyHtoD_v2(address => u64, bytes.as_ptr() => *const u8, bytes.len() => usize))
    }

    pub(crate) fn download(&self, address: u64, size: usize) -> Result<Vec<u8>, u32> {
        let mut bytes = vec![0; size];
        let code = cu!(self, cuMemcpyDtoH_v2(bytes.as_mut_ptr() => *mut u8, address => u64, size => usize));
        if code == 0 { Ok(bytes) } else { Err(code) }
    }

    /// Fills memory on a stream.
    pub(crate) fn fill(&self, address: u64, size: usize, stream: u64) {
        assert_eq!(cu!(self, cuMemsetD8Async(address => u64, 7 => u8, size => usize, stream => u64)), 0);
    }

    /// Texts of the violations so far, with addresses and handles taken out: they differ from run to run.
    pub(crate) fn violations(&self) -> Vec<String> {
        let report = self.stub.report();
        let texts = report["violations"].as_array().unwrap().iter();
        texts.map(|text| without_numbers(text.as_str().unwrap())).collect()
    }

    /// A count under `alive`.
    pub(crate) fn alive(&self, what: &str) -> usize {
        let alive = &self.stub.report()["alive"][what];
        alive.as_array().map_or_else(|| usize::try_from(alive.as_u64().unwrap()).unwrap(), Vec::len)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let alive = ["allocations", "streams", "events", "modules", "graphs"].map(|what| self.alive(what));
            assert_eq!(alive, [0; 5], "the test left something alive");
        }
        // A test that failed must not fail the next.
        cu!(self, cuDevicePrimaryCtxReset_v2(0 => i32));
        cu!(self, cuDevicePrimaryCtxRelease_v2(0 => i32));
        // The driver forgets a thread when it has ended, which may be after the next test has begun.
        cu!(self, cuCtxSetCurrent(0 => u64));
    }
}

/// Hexadecimal numbers as `#`, and numbers of calls as `n`.
fn without_numbers(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.split_once("0x") {
        Some((before, number)) => {
            let end = number.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(number.len());
            format!("{before}#{}", &number[end..])
        }
        None => word.to_owned(),
    });
    let text = words.collect::<Vec<_>>().join(" ");
    let mut parts = text.split("(call ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str("(call n");
        plain.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    }
    plain
}
