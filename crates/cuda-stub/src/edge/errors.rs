//! `cuInit`, versions, and errors by name.

use std::ffi::c_char;

use super::exports::exports;
use super::{In, Out};
use crate::error::{Code, texts};

exports! {
    [2000 Always] fn cuInit(flags: u32) |driver| { driver.initialise(flags) }

    [2020 Always] fn cuDriverGetVersion(version: Out<i32>) |driver| { version.set(driver.settings.driver_version) }

    [6000 Always] fn cuGetErrorName(code: u32, name: Out<*const c_char>) |_driver| {
        set_text(&name, texts(code).map(|(name, _)| name))
    }

    [6000 Always] fn cuGetErrorString(code: u32, description: Out<*const c_char>) |_driver| {
        set_text(&description, texts(code).map(|(_, description)| description))
    }

    // What private interfaces are behind it is not said anywhere.
    [3000 Always] fn cuGetExportTable(table: Out<usize>, identity: In<[u8; 16]>) |_driver| {
        identity.get()?;
        table.set(0)?;
        Err(Code::NOT_SUPPORTED)
    }

    [4000 Normal] fn cuProfilerStart() |_driver| { Ok(()) }

    [4000 Normal] fn cuProfilerStop() |_driver| { Ok(()) }
}

fn set_text(place: &Out<*const c_char>, text: Option<&'static std::ffi::CStr>) -> crate::error::Outcome {
    place.set(text.map_or(std::ptr::null(), std::ffi::CStr::as_ptr))?;
    text.map(drop).ok_or(Code::INVALID_VALUE)
}
