//! The driver's error codes: their numbers, names and descriptions. What each means is said in `cuda.h`; who gives it, where
//! it is given.

use std::ffi::CStr;

/// A `CUresult` that is not success. A plain integer: it crosses the C border, where an enum would have to be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Code(pub(crate) u32);

/// What every call of the model gives.
pub(crate) type Outcome<T = ()> = Result<T, Code>;

impl Code {
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);
    pub(crate) const NOT_INITIALIZED: Self = Self(3);
    pub(crate) const DEINITIALIZED: Self = Self(4);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const INVALID_DEVICE: Self = Self(101);
    pub(crate) const INVALID_IMAGE: Self = Self(200);
    pub(crate) const INVALID_CONTEXT: Self = Self(201);
    pub(crate) const NO_BINARY_FOR_GPU: Self = Self(209);
    pub(crate) const INVALID_PTX: Self = Self(218);
    pub(crate) const FILE_NOT_FOUND: Self = Self(301);
    pub(crate) const INVALID_HANDLE: Self = Self(400);
    pub(crate) const ILLEGAL_STATE: Self = Self(401);
    pub(crate) const NOT_FOUND: Self = Self(500);
    pub(crate) const LAUNCH_OUT_OF_RESOURCES: Self = Self(701);
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Self = Self(704);
    pub(crate) const PEER_ACCESS_NOT_ENABLED: Self = Self(705);
    pub(crate) const CONTEXT_IS_DESTROYED: Self = Self(709);
    pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Self = Self(712);
    pub(crate) const HOST_MEMORY_NOT_REGISTERED: Self = Self(713);
    pub(crate) const COOPERATIVE_LAUNCH_TOO_LARGE: Self = Self(720);
    pub(crate) const NOT_PERMITTED: Self = Self(800);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);
    pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Self = Self(900);
    pub(crate) const STREAM_CAPTURE_INVALIDATED: Self = Self(901);
    pub(crate) const STREAM_CAPTURE_MERGE: Self = Self(902);
    pub(crate) const STREAM_CAPTURE_UNMATCHED: Self = Self(903);
    pub(crate) const STREAM_CAPTURE_UNJOINED: Self = Self(904);
    pub(crate) const STREAM_CAPTURE_ISOLATION: Self = Self(905);
    pub(crate) const STREAM_CAPTURE_IMPLICIT: Self = Self(906);
    pub(crate) const CAPTURED_EVENT: Self = Self(907);
    pub(crate) const STREAM_CAPTURE_WRONG_THREAD: Self = Self(908);
    pub(crate) const INVALID_CLUSTER_SIZE: Self = Self(912);
    pub(crate) const UNKNOWN: Self = Self(999);

    /// The code called `name`, with or without `CUDA_ERROR_`; none for success.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let short = name.strip_prefix("CUDA_ERROR_").unwrap_or(name).as_bytes();
        let found = TABLE[1..].iter().find(|row| row.1.to_bytes().strip_prefix(b"CUDA_ERROR_") == Some(short))?;
        Some(Self(found.0))
    }

    pub(crate) fn name(self) -> &'static str {
        texts(self.0).and_then(|(name, _)| name.to_str().ok()).unwrap_or("an unknown error")
    }
}

/// Name and description of a `CUresult`, success included.
pub(crate) fn texts(code: u32) -> Option<(&'static CStr, &'static CStr)> {
    let index = TABLE.binary_search_by_key(&code, |row| row.0).ok()?;
    Some((TABLE[index].1, TABLE[index].2))
}

/// By code, ascending.
const TABLE: &[(u32, &CStr, &CStr)] = &[
    (0, c"CUDA_SUCCESS", c"no error"),
    (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
    (3, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
    (4, c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
    (5, c"CUDA_ERROR_PROFILER_DISABLED", c"profiler disabled"),
    (6, c"CUDA_ERROR_PROFILER_NOT_INITIALIZED", c"profiler not initialized"),
    (7, c"CUDA_ERROR_PROFILER_ALREADY_STARTED", c"profiler already started"),
    (8, c"CUDA_ERROR_PROFILER_ALREADY_STOPPED", c"profiler already stopped"),
    (34, c"CUDA_ERROR_STUB_LIBRARY", c"stub library"),
    (36, c"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", c"call requires newer driver"),
    (46, c"CUDA_ERROR_DEVICE_UNAVAILABLE", c"device unavailable"),
    (47, c"CUDA_ERROR_MULTICAST_RESOURCE_FULL", c"multicast resource full"),
    (100, c"CUDA_ERROR_NO_DEVICE", c"no device"),
    (101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device"),
    (102, c"CUDA_ERROR_DEVICE_NOT_LICENSED", c"device not licensed"),
    (200, c"CUDA_ERROR_INVALID_IMAGE", c"device kernel image is invalid"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context"),
    (202, c"CUDA_ERROR_CONTEXT_ALREADY_CURRENT", c"context already current"),
    (205, c"CUDA_ERROR_MAP_FAILED", c"map failed"),
    (206, c"CUDA_ERROR_UNMAP_FAILED", c"unmap failed"),
    (207, c"CUDA_ERROR_ARRAY_IS_MAPPED", c"array is mapped"),
    (208, c"CUDA_ERROR_ALREADY_MAPPED", c"already mapped"),
    (209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image is available for execution on the device"),
    (210, c"CUDA_ERROR_ALREADY_ACQUIRED", c"already acquired"),
    (211, c"CUDA_ERROR_NOT_MAPPED", c"not mapped"),
    (212, c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY", c"not mapped as array"),
    (213, c"CUDA_ERROR_NOT_MAPPED_AS_POINTER", c"not mapped as pointer"),
    (214, c"CUDA_ERROR_ECC_UNCORRECTABLE", c"ecc uncorrectable"),
    (215, c"CUDA_ERROR_UNSUPPORTED_LIMIT", c"unsupported limit"),
    (216, c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE", c"context already in use"),
    (217, c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"peer access unsupported"),
    (218, c"CUDA_ERROR_INVALID_PTX", c"invalid ptx"),
    (219, c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", c"invalid graphics context"),
    (220, c"CUDA_ERROR_NVLINK_UNCORRECTABLE", c"nvlink uncorrectable"),
    (221, c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", c"jit compiler not found"),
    (222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"unsupported ptx version"),
    (223, c"CUDA_ERROR_JIT_COMPILATION_DISABLED", c"jit compilation disabled"),
    (224, c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", c"unsupported exec affinity"),
    (225, c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC", c"unsupported devside sync"),
    (226, c"CUDA_ERROR_CONTAINED", c"contained"),
    (227, c"CUDA_ERROR_INSUFFICIENT_LOADER_VERSION", c"insufficient loader version"),
    (300, c"CUDA_ERROR_INVALID_SOURCE", c"invalid source"),
    (301, c"CUDA_ERROR_FILE_NOT_FOUND", c"file not found"),
    (302, c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", c"shared object symbol not found"),
    (303, c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", c"shared object init failed"),
    (304, c"CUDA_ERROR_OPERATING_SYSTEM", c"operating system"),
    (400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
    (401, c"CUDA_ERROR_ILLEGAL_STATE", c"illegal state"),
    (402, c"CUDA_ERROR_LOSSY_QUERY", c"lossy query"),
    (500, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
    (600, c"CUDA_ERROR_NOT_READY", c"device not ready"),
    (700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
    (701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"launch out of resources"),
    (702, c"CUDA_ERROR_LAUNCH_TIMEOUT", c"launch timeout"),
    (703, c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", c"launch incompatible texturing"),
    (704, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access already enabled"),
    (705, c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", c"peer access not enabled"),
    (708, c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", c"primary context active"),
    (709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED", c"context is destroyed"),
    (710, c"CUDA_ERROR_ASSERT", c"assert"),
    (711, c"CUDA_ERROR_TOO_MANY_PEERS", c"too many peers"),
    (712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", c"host memory already registered"),
    (713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", c"host memory not registered"),
    (714, c"CUDA_ERROR_HARDWARE_STACK_ERROR", c"hardware stack error"),
    (715, c"CUDA_ERROR_ILLEGAL_INSTRUCTION", c"illegal instruction"),
    (716, c"CUDA_ERROR_MISALIGNED_ADDRESS", c"misaligned address"),
    (717, c"CUDA_ERROR_INVALID_ADDRESS_SPACE", c"invalid address space"),
    (718, c"CUDA_ERROR_INVALID_PC", c"invalid pc"),
    (719, c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
    (720, c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", c"cooperative launch too large"),
    (721, c"CUDA_ERROR_TENSOR_MEMORY_LEAK", c"tensor memory leak"),
    (800, c"CUDA_ERROR_NOT_PERMITTED", c"not permitted"),
    (801, c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported"),
    (802, c"CUDA_ERROR_SYSTEM_NOT_READY", c"system not ready"),
    (803, c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", c"system driver mismatch"),
    (804, c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", c"compat not supported on device"),
    (805, c"CUDA_ERROR_MPS_CONNECTION_FAILED", c"mps connection failed"),
    (806, c"CUDA_ERROR_MPS_RPC_FAILURE", c"mps rpc failure"),
    (807, c"CUDA_ERROR_MPS_SERVER_NOT_READY", c"mps server not ready"),
    (808, c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", c"mps max clients reached"),
    (809, c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", c"mps max connections reached"),
    (810, c"CUDA_ERROR_MPS_CLIENT_TERMINATED", c"mps client terminated"),
    (811, c"CUDA_ERROR_CDP_NOT_SUPPORTED", c"cdp not supported"),
    (812, c"CUDA_ERROR_CDP_VERSION_MISMATCH", c"cdp version mismatch"),
    (900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"stream capture unsupported"),
    (901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", c"stream capture invalidated"),
    (902, c"CUDA_ERROR_STREAM_CAPTURE_MERGE", c"stream capture merge"),
    (903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"stream capture unmatched"),
    (904, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", c"stream capture unjoined"),
    (905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", c"stream capture isolation"),
    (906, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", c"stream capture implicit"),
    (907, c"CUDA_ERROR_CAPTURED_EVENT", c"captured event"),
    (908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", c"stream capture wrong thread"),
    (909, c"CUDA_ERROR_TIMEOUT", c"timeout"),
    (910, c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", c"graph exec update failure"),
    (911, c"CUDA_ERROR_EXTERNAL_DEVICE", c"external device"),
    (912, c"CUDA_ERROR_INVALID_CLUSTER_SIZE", c"invalid cluster size"),
    (913, c"CUDA_ERROR_FUNCTION_NOT_LOADED", c"function not loaded"),
    (914, c"CUDA_ERROR_INVALID_RESOURCE_TYPE", c"invalid resource type"),
    (915, c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", c"invalid resource configuration"),
    (916, c"CUDA_ERROR_KEY_ROTATION", c"key rotation"),
    (917, c"CUDA_ERROR_STREAM_DETACHED", c"stream detached"),
    (918, c"CUDA_ERROR_GRAPH_RECAPTURE_FAILURE", c"graph recapture failure"),
    (919, c"CUDA_ERROR_FABRIC_NOT_READY", c"fabric not ready"),
    (999, c"CUDA_ERROR_UNKNOWN", c"unknown"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_by_number_and_by_name() {
        assert!(TABLE.is_sorted_by_key(|row| row.0));
        assert_eq!(Code::from_name("CUDA_ERROR_OUT_OF_MEMORY"), Some(Code::OUT_OF_MEMORY));
        assert_eq!(Code::from_name("LAUNCH_FAILED").map(Code::name), Some("CUDA_ERROR_LAUNCH_FAILED"));
        assert_eq!(Code::from_name("CUDA_SUCCESS"), None);
        assert_eq!(texts(12345), None);
    }
}
