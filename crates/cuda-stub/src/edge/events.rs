//! `cuEvent*`.

use super::Out;
use super::exports::exports;
use crate::error::Code;

exports! {
    [2000 Normal] fn cuEventCreate(event: Out<u64>, flags: u32) |driver| {
        event.require()?;
        event.set(driver.create_event(flags)?)
    }

    [4000 Normal] fn cuEventDestroy_v2(event: u64) |driver| { driver.destroy_event(event) }

    [2000 Normal cuEventRecord_ptsz] fn cuEventRecord(event: u64, stream: u64) |driver| {
        driver.record_event(event, stream)
    }

    [11010 Normal cuEventRecordWithFlags_ptsz] fn cuEventRecordWithFlags(event: u64, stream: u64, flags: u32) |driver| {
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        driver.record_event(event, stream)
    }

    [2000 Unsafe] fn cuEventQuery(event: u64) |driver| { driver.synchronise_event(event) }

    [2000 Unsafe] fn cuEventSynchronize(event: u64) |driver| { driver.synchronise_event(event) }

    [2000 Normal] fn cuEventElapsedTime(milliseconds: Out<f32>, start: u64, end: u64) |driver| {
        milliseconds.set(driver.elapsed(start, end)?)
    }

    [12080 Normal] fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: u64, end: u64) |driver| {
        milliseconds.set(driver.elapsed(start, end)?)
    }
}
