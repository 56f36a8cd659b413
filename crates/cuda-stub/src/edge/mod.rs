//! The C border: one guarded call for each exported function, and the types that foreign pointers come in as.

mod contexts;
mod control;
mod copies;
mod devices;
mod errors;
mod events;
mod exports;
mod graphs;
mod launches;
mod memory;
mod modules;
mod pointers;
mod pools;
mod proc_address;
mod streams;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

use crate::driver::{Class, Driver};
use crate::error::{Code, Outcome};
use crate::settings::{AtExit, Settings, base_name};
use crate::work::HostCall;

/// The driver of the process. It exists from the first call on.
static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);
/// Set in a child that was forked after the first call: its driver's state is a copy that belongs to nobody.
static FORKED: AtomicBool = AtomicBool::new(false);
/// Set once the process is ending and the driver's own handler has run: what is called later finds no driver.
static ENDED: AtomicBool = AtomicBool::new(false);
static NEXT_THREAD: AtomicU64 = AtomicU64::new(1);

/// A thread as the driver knows it. The entry goes when the thread ends.
struct ThreadKey(u64);

impl Drop for ThreadKey {
    fn drop(&mut self) {
        if FORKED.load(Ordering::Relaxed) {
            return;
        }
        if let Some(driver) = lock().as_mut() {
            driver.threads.remove(&self.0);
        }
    }
}

thread_local! {
    static THREAD: ThreadKey = ThreadKey(NEXT_THREAD.fetch_add(1, Ordering::Relaxed));
}

/// An exported function, as its calls are counted and failed.
pub(crate) struct Function {
    pub(crate) symbol: &'static str,
    pub(crate) class: Class,
    pub(crate) name: OnceLock<&'static str>,
}

impl Function {
    pub(crate) const fn new(symbol: &'static str, class: Class) -> Self {
        Self { symbol, class, name: OnceLock::new() }
    }

    fn name(&self) -> &'static str {
        self.name.get_or_init(|| base_name(self.symbol))
    }
}

fn lock() -> MutexGuard<'static, Option<Driver>> {
    // A panic under the lock was reported as a violation; what it left is still the best there is.
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The driver behind the lock, made from the variable `CUDA_STUB` if there is none yet.
fn existing(slot: &mut Option<Driver>) -> Outcome<&mut Driver> {
    if slot.is_none() {
        let mut settings = Settings::default();
        if let Ok(text) = std::env::var("CUDA_STUB")
            && let Err(error) = settings.apply(&text)
        {
            eprintln!("{error}");
            return Err(Code::NOT_INITIALIZED);
        }
        let driver = Driver::new(settings).ok_or_else(|| {
            eprintln!("cuda-stub: the process may not reserve addresses for its devices; lift its limit (ulimit -v)");
            Code::OUT_OF_MEMORY
        })?;
        register_with_process();
        *slot = Some(driver);
    }
    slot.as_mut().ok_or(Code::UNKNOWN)
}

fn register_with_process() {
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: both functions are `extern "C"`, take nothing, and stay where they are while the library is loaded;
        // glibc forgets those of a library that is unloaded.
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
            libc::atexit(at_exit);
        }
    });
}

/// Reports what is alive when the process ends, if that was asked for.
extern "C" fn at_exit() {
    let outcome = catch_unwind(|| {
        ENDED.store(true, Ordering::Relaxed);
        if FORKED.load(Ordering::Relaxed) {
            return false;
        }
        // A thread that still holds the lock is in the middle of a call; the process does not wait for it.
        let Ok(mut slot) = DRIVER.try_lock() else { return false };
        let Some(driver) = slot.as_mut() else { return false };
        let mode = driver.settings.at_exit;
        if mode == AtExit::Nothing {
            return false;
        }
        let faults = driver.faults_at_exit();
        for fault in &faults {
            eprintln!("cuda-stub: {fault}");
        }
        mode == AtExit::Fail && !faults.is_empty()
    });
    if outcome.unwrap_or(true) {
        // SAFETY: flushing every stream and ending the process need nothing of the state of this library.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(97);
        }
    }
}

/// Makes one call: everything that is the same for all functions.
fn call(function: &Function, per_thread_default: bool, body: impl FnOnce(&mut Driver) -> Outcome) -> u32 {
    let guarded = catch_unwind(AssertUnwindSafe(|| locked_call(function, per_thread_default, body)));
    match guarded {
        Ok(Ok(())) => 0,
        Ok(Err(code)) => code.0,
        Err(_) => {
            if let Some(driver) = lock().as_mut() {
                driver.violation("the stand-in itself failed; the panic is on stderr");
            }
            Code::UNKNOWN.0
        }
    }
}

fn locked_call(function: &Function, per_thread_default: bool, body: impl FnOnce(&mut Driver) -> Outcome) -> Outcome {
    let forked = FORKED.load(Ordering::Relaxed);
    let needs_state = function.class != Class::Always || function.symbol == "cuInit";
    if forked && needs_state {
        refuse_in_child(function);
        return Err(Code::NOT_INITIALIZED);
    }
    if needs_state && ENDED.load(Ordering::Relaxed) {
        return Err(Code::DEINITIALIZED);
    }
    let thread = THREAD.try_with(|key| key.0).unwrap_or(0);
    let (outcome, host_calls) = {
        // In a forked child the lock may be held by a thread that was not copied.
        let mut slot = if forked { DRIVER.try_lock().map_err(|_| Code::NOT_INITIALIZED)? } else { lock() };
        let driver = existing(&mut slot)?;
        let outcome =
            driver.enter(thread, function.name(), function.class, per_thread_default).and_then(|()| body(driver));
        let (number, name) = (driver.calling.call, function.name());
        let result = outcome.err().map_or("CUDA_SUCCESS", Code::name);
        driver.journal.log_line(format_args!("{number} thread {thread} {name}: {result}"));
        (outcome, std::mem::take(&mut driver.host_calls))
    };
    for host_call in host_calls {
        // SAFETY: the program gave this function with this argument to be called. No lock is held.
        unsafe {
            match host_call {
                HostCall::Function { function, argument } => function(argument),
                HostCall::Callback { function, stream, argument } => function(stream, 0, argument),
            }
        }
    }
    outcome
}

fn refuse_in_child(function: &Function) {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if !ONCE.swap(true, Ordering::Relaxed) {
        eprintln!(
            "cuda-stub: {} is called in a process that was forked after the driver was used, where no driver works; \
             start the process anew (spawn) instead",
            function.name()
        );
    }
}

/// A pointer that a C caller gives for a result: null, or valid for a write of a `T` while the call lasts. `cuda.h` asks that
/// of callers.
#[repr(transparent)]
struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes the result. A null pointer is an invalid argument.
    fn set(&self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        self.set_if_wanted(value);
        Ok(())
    }

    /// Writes the result unless the caller does not want it.
    fn set_if_wanted(&self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so valid for a write, by the promise that the type stands for.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    fn require(&self) -> Outcome {
        if self.0.is_null() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    /// Writes the items one after the other.
    ///
    /// # Safety
    /// The pointer is null or valid for as many items.
    unsafe fn set_all(&self, items: &[T]) -> Outcome
    where
        T: Copy,
    {
        self.require()?;
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(items.as_ptr(), self.0, items.len()) };
        Ok(())
    }
}

/// A pointer that a C caller gives to something to read: null, or valid for reads of a `T` while the call lasts.
#[repr(transparent)]
struct In<T>(*const T);

impl<T: Copy> In<T> {
    fn get(&self) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so valid for a read, by the promise that the type stands for.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// Item `index` of an array whose length the caller of the C function gave beside it.
    ///
    /// # Safety
    /// The pointer is null or valid for more than `index` items.
    unsafe fn item(&self, index: usize) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }
}

/// A C string that a caller gives: null, or ended by a zero.
#[repr(transparent)]
struct Text(*const libc::c_char);

impl Text {
    fn get(&self) -> Outcome<String> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so ended by a zero, by the promise that the type stands for.
        let text = unsafe { std::ffi::CStr::from_ptr(self.0) };
        text.to_str().map(str::to_owned).map_err(|_| Code::INVALID_VALUE)
    }
}
