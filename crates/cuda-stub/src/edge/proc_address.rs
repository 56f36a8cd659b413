//! `cuGetProcAddress`: functions by name and by the version that the caller was written for.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::exports::{Export, exports};
use super::{Out, Text};
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::settings::base_name;

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`, and the sum of all flags.
const PER_THREAD: u64 = 2;
const ALL_FLAGS: u64 = 3;

/// `CUdriverProcAddressQueryResult`.
const FOUND: u32 = 0;
const NO_SYMBOL: u32 = 1;
const TOO_OLD: u32 = 2;

exports! {
    [11030 Always] fn cuGetProcAddress(symbol: Text, function: Out<usize>, version: i32, flags: u64) |driver| {
        let (address, _) = find(driver, &symbol.get()?, version, flags)?;
        function.set(address)?;
        if address == 0 { Err(Code::NOT_FOUND) } else { Ok(()) }
    }

    [12000 Always] fn cuGetProcAddress_v2(
        symbol: Text, function: Out<usize>, version: i32, flags: u64, status: Out<u32>,
    ) |driver| {
        let (address, result) = find(driver, &symbol.get()?, version, flags)?;
        function.set(address)?;
        let status_wanted = status.require().is_ok();
        status.set_if_wanted(result);
        if address == 0 && !status_wanted { Err(Code::NOT_FOUND) } else { Ok(()) }
    }
}

/// Every exported function by its name without suffixes.
static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Export>>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for exports in [
        exports,
        super::contexts::exports,
        super::copies::exports,
        super::devices::exports,
        super::errors::exports,
        super::events::exports,
        super::graphs::exports,
        super::launches::exports,
        super::memory::exports,
        super::modules::exports,
        super::pointers::exports,
        super::pools::exports,
        super::streams::exports,
    ] {
        exports(&mut all);
    }
    let mut by_name: HashMap<_, Vec<Export>> = HashMap::new();
    for export in all {
        by_name.entry(base_name(export.symbol)).or_default().push(export);
    }
    by_name
});

/// The address of a function, and how the search for it went. The log says what was not found.
fn find(driver: &mut Driver, symbol: &str, version: i32, flags: u64) -> Outcome<(usize, u32)> {
    if flags & !ALL_FLAGS != 0 || version <= 0 {
        return Err(Code::INVALID_VALUE);
    }
    // A name may carry the suffix of the per-thread variants, but no version.
    let Some(known) = FUNCTIONS.get(base_name(symbol)).filter(|_| !driver.settings.missing.contains(base_name(symbol)))
    else {
        driver.journal.log_line(format_args!("not found: {symbol}"));
        return Ok((0, NO_SYMBOL));
    };
    let per_thread = flags & PER_THREAD != 0 || is_per_thread(symbol);
    let limit = version.min(driver.settings.driver_version);
    let newest = |wanted: bool| {
        known
            .iter()
            .filter(|export| export.version <= limit && is_per_thread(export.symbol) == wanted)
            .max_by_key(|export| export.version)
    };
    let found = if per_thread { newest(true).or_else(|| newest(false)) } else { newest(false) };
    Ok(found.map_or((0, TOO_OLD), |export| (export.address, FOUND)))
}

fn is_per_thread(symbol: &str) -> bool {
    symbol.ends_with("_ptsz") || symbol.ends_with("_ptds")
}
