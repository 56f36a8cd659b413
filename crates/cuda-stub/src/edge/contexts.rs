//! `cuCtx*`.

use super::exports::exports;
use super::{In, Out};
use crate::error::Code;
use crate::stream::PRIORITIES;

exports! {
    [3020 Setup] fn cuCtxCreate_v2(context: Out<u64>, flags: u32, device: i32) |driver| {
        context.require()?;
        context.set(driver.create_context(flags, device)?)
    }

    // Execution affinity is not modelled: what asks for none is an ordinary context.
    [11040 Setup] fn cuCtxCreate_v3(context: Out<u64>, affinity: usize, count: i32, flags: u32, device: i32) |driver| {
        context.require()?;
        if affinity != 0 || count != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        context.set(driver.create_context(flags, device)?)
    }

    [12050 Setup] fn cuCtxCreate_v4(context: Out<u64>, parameters: In<[usize; 3]>, flags: u32, device: i32) |driver| {
        context.require()?;
        if parameters.get().is_ok_and(|parameters| parameters != [0; 3]) {
            return Err(Code::NOT_SUPPORTED);
        }
        context.set(driver.create_context(flags, device)?)
    }

    [4000 Setup] fn cuCtxDestroy_v2(context: u64) |driver| { driver.destroy_context(context) }

    [4000 Setup] fn cuCtxPushCurrent_v2(context: u64) |driver| { driver.push_context(context) }

    [4000 Setup] fn cuCtxPopCurrent_v2(context: Out<u64>) |driver| {
        let popped = driver.pop_context()?;
        context.set_if_wanted(popped);
        Ok(())
    }

    [4000 Setup] fn cuCtxSetCurrent(context: u64) |driver| { driver.set_current(context) }

    [4000 Setup] fn cuCtxGetCurrent(context: Out<u64>) |driver| { context.set(driver.current_or_none().unwrap_or(0)) }

    [2000 Normal] fn cuCtxGetDevice(device: Out<i32>) |driver| {
        device.set(i32::try_from(driver.current_device()?).map_err(|_| Code::INVALID_DEVICE)?)
    }

    [13000 Normal] fn cuCtxGetDevice_v2(device: Out<i32>, context: u64) |driver| {
        let context = driver.context_or_current(context)?;
        device.set(i32::try_from(driver.context_device(context)?).map_err(|_| Code::INVALID_DEVICE)?)
    }

    [7000 Normal] fn cuCtxGetFlags(flags: Out<u32>) |driver| {
        let current = driver.current()?;
        flags.set(driver.contexts.get(current).map_or(0, |context| context.flags))
    }

    [12010 Normal] fn cuCtxSetFlags(flags: u32) |driver| {
        let current = driver.current()?;
        driver.contexts.get_mut(current).ok_or(Code::INVALID_CONTEXT)?.flags = flags;
        Ok(())
    }

    [12000 Normal] fn cuCtxGetId(context: u64, id: Out<u64>) |driver| {
        let context = driver.context_or_current(context)?;
        id.set(driver.contexts.get(context).map_or(0, |context| context.id))
    }

    [3020 Normal] fn cuCtxGetApiVersion(context: u64, version: Out<u32>) |driver| {
        driver.context_or_current(context)?;
        version.set(3020)
    }

    [2000 Unsafe] fn cuCtxSynchronize() |driver| {
        let context = driver.current()?;
        driver.synchronise_context(context)
    }

    [13000 Unsafe] fn cuCtxSynchronize_v2(context: u64) |driver| {
        let context = driver.context_or_current(context)?;
        driver.synchronise_context(context)
    }

    [5050 Normal] fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) |driver| {
        driver.current()?;
        least.set_if_wanted(PRIORITIES.0);
        greatest.set_if_wanted(PRIORITIES.1);
        Ok(())
    }

    [3010 Normal] fn cuCtxGetLimit(value: Out<u64>, limit: u32) |driver| { value.set(driver.context_limit(limit)?) }

    [3010 Normal] fn cuCtxSetLimit(limit: u32, value: u64) |driver| { driver.set_context_limit(limit, value) }

    [3020 Normal] fn cuCtxGetCacheConfig(config: Out<u32>) |driver| {
        let current = driver.current()?;
        config.set(driver.contexts.get(current).map_or(0, |context| context.cache_config))
    }

    [3020 Normal] fn cuCtxSetCacheConfig(config: u32) |driver| {
        let current = driver.current()?;
        driver.contexts.get_mut(current).ok_or(Code::INVALID_CONTEXT)?.cache_config = config;
        Ok(())
    }

    [4000 Normal] fn cuCtxEnablePeerAccess(peer: u64, flags: u32) |driver| {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        driver.enable_peer(peer)
    }

    [4000 Normal] fn cuCtxDisablePeerAccess(peer: u64) |driver| { driver.disable_peer(peer) }
}
