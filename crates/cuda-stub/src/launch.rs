//! Launches: their configuration is checked, their parameters are recorded, and nothing is run.
//!
//! What a kernel does with its parameters is not known. A parameter that is the address of known memory counts as a read of
//! the byte there: memory that has ended, or that work of another stream may still write, is found, and two kernels that only
//! read the same memory are no fault.

use std::sync::Arc;

use crate::access::{Mode, Place};
use crate::device::{
    MOST_BLOCK, MOST_BLOCKS_PER_CLUSTER, MOST_BLOCKS_PER_CLUSTER_NON_PORTABLE, MOST_GRID, MOST_THREADS_PER_BLOCK,
    MULTIPROCESSORS,
};
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::image::Parameter;
use crate::interpreter;
use crate::memory::{Found, MemoryKind};
use crate::occupancy::blocks_per_multiprocessor;
use crate::region::Region;
use crate::work::Work;

/// How a kernel is to be launched.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) shared_bytes: u32,
    /// As the caller gave it.
    pub(crate) stream: u64,
    pub(crate) cooperative: bool,
    /// Numbers of launch attributes that are not looked at.
    pub(crate) attributes: Vec<u32>,
}

/// One launch.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) function: Arc<str>,
    pub(crate) configuration: Configuration,
    /// Where each parameter lies in `bytes`.
    pub(crate) layout: Arc<[Parameter]>,
    pub(crate) bytes: Box<[u8]>,
    pub(crate) context: u64,
    pub(crate) device: usize,
    pub(crate) holds_gil: Option<bool>,
}

impl Launch {
    /// The bytes of each parameter.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &[u8]> {
        self.layout.iter().map(|parameter| &self.bytes[parameter.offset..parameter.offset + parameter.size])
    }
}

impl Driver {
    /// The layout of a function's parameters, and its handle with kernels resolved.
    pub(crate) fn launch_layout(&mut self, function: u64) -> Outcome<(u64, Arc<[Parameter]>)> {
        let function = self.function(function)?;
        let known = self.images.functions.get(function).ok_or(Code::INVALID_HANDLE)?;
        Ok((function, known.kernel.parameters.clone().unwrap_or_default()))
    }

    /// Launches a function whose parameters lie in `bytes` as `launch_layout` said.
    pub(crate) fn launch(
        &mut self,
        function: u64,
        configuration: Configuration,
        layout: Arc<[Parameter]>,
        bytes: Box<[u8]>,
    ) -> Outcome {
        let stream = self.stream_handle(configuration.stream)?;
        let known = self.images.functions.get(function).ok_or(Code::INVALID_HANDLE)?;
        let context = known.context;
        if self.stream(stream)?.context != context {
            return Err(Code::INVALID_HANDLE);
        }
        configuration.check(known.settings.non_portable_cluster)?;
        if configuration.shared_bytes > known.settings.dynamic_shared_bytes {
            return Err(Code::INVALID_VALUE);
        }
        let threads = configuration.block.iter().product();
        let blocks = blocks_per_multiprocessor(&known.kernel, threads, configuration.shared_bytes);
        if blocks == 0 {
            return Err(Code::LAUNCH_OUT_OF_RESOURCES);
        }
        let wanted: u64 = configuration.grid.iter().map(|extent| u64::from(*extent)).product();
        if configuration.cooperative && wanted > u64::from(blocks * MULTIPROCESSORS) {
            return Err(Code::COOPERATIVE_LAUNCH_TOO_LARGE);
        }
        let function = known.kernel.name.clone();
        let device = self.context_device(context)?;
        let holds_gil = interpreter::is_held();
        let launch = Launch { function, configuration, layout, bytes, context, device, holds_gil };
        self.submit(stream, Work::Launch(Arc::new(launch)))
    }

    /// The launch itself, when its turn on the stream has come.
    pub(crate) fn launch_at(&mut self, stream: u64, launch: &Arc<Launch>, place: &Place) {
        for (index, parameter) in launch.parameters().enumerate() {
            // A pointer may be a parameter or a field of one; fields are aligned.
            for (field, bytes) in parameter.chunks_exact(8).enumerate() {
                let address = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
                if address != 0 {
                    self.check_argument(stream, launch, (index, field), address, place);
                }
            }
        }
        self.journal.launched(launch.clone());
    }

    fn check_argument(&mut self, stream: u64, launch: &Launch, at: (usize, usize), address: u64, place: &Place) {
        let (index, field) = at;
        let position = || match field {
            0 => format!("parameter {index} of {}", launch.function),
            _ => format!("parameter {index} of {}, at byte {},", launch.function, field * 8),
        };
        match self.memory.find(address) {
            Found::Unknown => {}
            Found::Stale(text) => {
                let text = format!("{} is {address:#x}, which is not live: {text}", position());
                self.violation(text);
            }
            Found::Live(known) => {
                let (owner, origin, end) = (known.owner, known.origin.clone(), known.end());
                // With unified addresses every device sees host memory that is pinned, and managed memory.
                let is_bound = matches!(known.kind, MemoryKind::Device | MemoryKind::Variable);
                if is_bound && owner.device != launch.device && !self.reaches(launch.context, owner.context, owner.pool)
                {
                    let text = format!(
                        "{} is memory of device {} (from {origin}), which device {} has no access to",
                        position(),
                        owner.device,
                        launch.device
                    );
                    self.violation(text);
                }
                if address < end {
                    self.check_order(stream, Region::run(address, 1), Mode::Read, place);
                }
            }
        }
    }

    /// Whether work of a context may touch memory of another device: by peer access, or by the access of its pool.
    fn reaches(&self, context: u64, owner: u64, pool: Option<u64>) -> bool {
        let Some(known) = self.contexts.get(context) else { return false };
        match pool.and_then(|pool| self.pools.get(pool)) {
            Some(pool) => pool.access(known.device) != 0,
            None => known.peers.contains(&owner),
        }
    }
}

/// How large a cluster may be; more than the portable size has to be asked for.
pub(crate) fn most_blocks_per_cluster(non_portable: bool) -> u32 {
    if non_portable { MOST_BLOCKS_PER_CLUSTER_NON_PORTABLE } else { MOST_BLOCKS_PER_CLUSTER }
}

impl Configuration {
    /// Checks against the limits of the device.
    fn check(&self, non_portable_cluster: bool) -> Outcome {
        let fits = |extent: &[u32; 3], most: &[u32; 3]| {
            extent.iter().zip(most).all(|(extent, most)| (1..=*most).contains(extent))
        };
        let threads: u64 = self.block.iter().map(|extent| u64::from(*extent)).product();
        if !fits(&self.grid, &MOST_GRID) || !fits(&self.block, &MOST_BLOCK) || threads > MOST_THREADS_PER_BLOCK.into() {
            return Err(Code::INVALID_VALUE);
        }
        let most = most_blocks_per_cluster(non_portable_cluster);
        let cluster: u64 = self.cluster.iter().map(|extent| u64::from(*extent)).product();
        let divides = self.grid.iter().zip(&self.cluster).all(|(grid, cluster)| grid.checked_rem(*cluster) == Some(0));
        if cluster == 0 || cluster > most.into() || !divides {
            return Err(Code::INVALID_CLUSTER_SIZE);
        }
        Ok(())
    }
}
