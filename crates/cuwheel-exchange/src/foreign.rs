//! Tensors that another library made and that we own: their deleters run exactly once.

use std::ptr::NonNull;

use crate::abi::{DLManagedTensor, DLManagedTensorVersioned, DLTensor, DlpackFlags, VERSION};

/// A tensor of another library, of either kind. Dropping it calls its deleter.
#[derive(Debug)]
pub(crate) struct ForeignTensor(Kind);

#[derive(Debug)]
enum Kind {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Legacy(NonNull<DLManagedTensor>),
}

/// The tensor is of a DLPack version whose layout is not known.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "the tensor is of DLPack {major}.{minor}, and this library reads version {}; update it, or ask the producer for an \
     older version", VERSION.major
)]
pub(crate) struct UnknownVersion {
    major: u32,
    minor: u32,
}

impl ForeignTensor {
    /// # Safety
    /// `tensor` must point to a versioned tensor, and nobody else may delete it.
    pub(crate) unsafe fn from_versioned(tensor: NonNull<DLManagedTensorVersioned>) -> Self {
        Self(Kind::Versioned(tensor))
    }

    /// # Safety
    /// `tensor` must point to a tensor without version, and nobody else may delete it.
    pub(crate) unsafe fn from_legacy(tensor: NonNull<DLManagedTensor>) -> Self {
        Self(Kind::Legacy(tensor))
    }

    /// What the tensor describes, and its flags.
    pub(crate) fn tensor(&self) -> Result<(&DLTensor, DlpackFlags), UnknownVersion> {
        match &self.0 {
            Kind::Versioned(tensor) => {
                // SAFETY: the version is the first field in every version, and the tensor is alive until we drop it.
                let version = unsafe { (*tensor.as_ptr()).version };
                if version.major != VERSION.major {
                    return Err(UnknownVersion { major: version.major, minor: version.minor });
                }
                // SAFETY: of this version the layout is known; nobody writes to the tensor but its producer, before it
                // hands it out.
                let tensor = unsafe { tensor.as_ref() };
                Ok((&tensor.dl_tensor, tensor.flags))
            }
            // SAFETY: as above; this kind has one layout.
            Kind::Legacy(tensor) => Ok((unsafe { &tensor.as_ref().dl_tensor }, DlpackFlags::empty())),
        }
    }
}

impl Drop for ForeignTensor {
    fn drop(&mut self) {
        match self.0 {
            Kind::Versioned(tensor) => {
                // SAFETY: the tensor is ours, alive, and not used any more. The place of the deleter is the same in all
                // versions.
                unsafe {
                    if let Some(delete) = (*tensor.as_ptr()).deleter {
                        delete(tensor.as_ptr());
                    }
                }
            }
            Kind::Legacy(tensor) => {
                // SAFETY: as above.
                unsafe {
                    if let Some(delete) = (*tensor.as_ptr()).deleter {
                        delete(tensor.as_ptr());
                    }
                }
            }
        }
    }
}

// SAFETY: DLPack asks of producers that a deleter may be called on any thread, attached to Python or not; the description
// is not written to after the tensor was handed out.
unsafe impl Send for ForeignTensor {}
// SAFETY: as above; through a shared reference the description is only read.
unsafe impl Sync for ForeignTensor {}
