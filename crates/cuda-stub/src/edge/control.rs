//! The functions by which a test steers the stand-in. They are no part of CUDA.

use std::ffi::{CString, c_char};
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::{FORKED, Text, existing, lock};

/// A hash of the sources that the library was built from.
#[unsafe(no_mangle)]
extern "C" fn cudaStubBuild() -> *const c_char {
    crate::BUILD.as_ptr().cast()
}

/// Applies settings. Gives 0, or 1 with a line on stderr that says what is wrong with them.
#[unsafe(no_mangle)]
extern "C" fn cudaStubConfigure(text: Text) -> i32 {
    let outcome = catch_unwind(|| {
        if FORKED.load(Ordering::Relaxed) {
            return Err("cuda-stub: a forked child has no driver that could be configured".to_owned());
        }
        let text = text.get().map_err(|_| "cuda-stub: settings are a text of UTF-8".to_owned())?;
        let mut slot = lock();
        let driver = existing(&mut slot).map_err(|code| format!("cuda-stub: there is no driver: {}", code.name()))?;
        driver.configure(&text).map_err(|error| error.to_string())
    });
    match outcome {
        Ok(Ok(())) => 0,
        Ok(Err(message)) => {
            eprintln!("{message}");
            1
        }
        Err(_) => 1,
    }
}

/// Forgets the record, disarms faults and revives contexts. What is alive stays alive.
#[unsafe(no_mangle)]
extern "C" fn cudaStubReset() {
    let outcome = catch_unwind(|| {
        // In a forked child the lock may be held by a thread that was not copied.
        if !FORKED.load(Ordering::Relaxed)
            && let Ok(driver) = existing(&mut lock())
        {
            driver.reset();
        }
    });
    if outcome.is_err() {
        eprintln!("cuda-stub: the record could not be reset");
    }
}

/// The record as JSON, or null in a forked child. The text is good until the next call of this function.
#[unsafe(no_mangle)]
extern "C" fn cudaStubReport() -> *const c_char {
    static LAST: Mutex<Option<CString>> = Mutex::new(None);
    let outcome = catch_unwind(|| {
        if FORKED.load(Ordering::Relaxed) {
            return std::ptr::null();
        }
        let text = existing(&mut lock()).map(|driver| driver.report()).unwrap_or_default();
        let text = CString::new(text).unwrap_or_default();
        let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        last.insert(text).as_ptr()
    });
    outcome.unwrap_or(std::ptr::null())
}
