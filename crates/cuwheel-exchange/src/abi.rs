//! What DLPack 1.3 fixes: structures, names of attributes and capsules, versions.
//!
//! The structures are those of `dlpark`, which checks their layout against the header. Nothing is called here.

use std::ffi::CStr;

pub(crate) use dlpark::DlpackFlags;
pub(crate) use dlpark::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, DLPackExchangeAPI,
    DLPackExchangeAPIHeader, DLPackVersion, DLTensor,
};

/// The version that this crate writes, and the newest whose details it knows.
pub(crate) const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 3 };

/// The attribute of a type that holds its exchange table.
pub(crate) const TABLE_ATTRIBUTE: &str = "__dlpack_c_exchange_api__";
/// The name of the capsule around an exchange table.
pub(crate) const TABLE_CAPSULE: &CStr = c"dlpack_exchange_api";

/// The name of a capsule around a versioned tensor that nobody has taken.
pub(crate) const VERSIONED_CAPSULE: &CStr = c"dltensor_versioned";
/// The name of the same capsule once its tensor was taken.
pub(crate) const USED_VERSIONED_CAPSULE: &CStr = c"used_dltensor_versioned";
/// The name of a capsule around a tensor without version, as before DLPack 1.0.
pub(crate) const LEGACY_CAPSULE: &CStr = c"dltensor";
/// The name of the same capsule once its tensor was taken.
pub(crate) const USED_LEGACY_CAPSULE: &CStr = c"used_dltensor";

/// The name of a device type for messages.
pub(crate) fn device_type_name(device_type: DLDeviceType) -> String {
    let name = match device_type.0 {
        1 => "CPU",
        2 => "CUDA",
        3 => "CUDA host",
        4 => "OpenCL",
        7 => "Vulkan",
        8 => "Metal",
        9 => "VPI",
        10 => "ROCm",
        11 => "ROCm host",
        13 => "CUDA managed",
        14 => "oneAPI",
        15 => "WebGPU",
        16 => "Hexagon",
        17 => "MAIA",
        18 => "Trainium",
        other => return format!("DLPack type {other}"),
    };
    name.to_owned()
}
