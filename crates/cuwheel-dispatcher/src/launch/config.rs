//! The shape of a launch, and the limits of device and kernel that it is held against.

use std::fmt;

use cuwheel_device_array::Device;
use thiserror::Error;

use super::LaunchAttributes;

/// A number of blocks, or of threads, along up to three dimensions; those that are not named have 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Extent([u32; 3]);

impl Extent {
    /// One along each dimension.
    pub const ONE: Self = Self([1; 3]);

    /// The extent with these sizes along the dimensions x, y and z. `what` is named in errors: grid, block or cluster.
    #[inline]
    pub fn new(what: &'static str, sizes: &[u32]) -> Result<Self, ConfigError> {
        let extent = match *sizes {
            [x] => [x, 1, 1],
            [x, y] => [x, y, 1],
            [x, y, z] => [x, y, z],
            _ => return Err(ConfigError::Dimensions { what, count: sizes.len() }),
        };
        match extent.iter().position(|size| *size == 0) {
            Some(axis) => Err(ConfigError::Zero { what, axis: AXES[axis] }),
            None => Ok(Self(extent)),
        }
    }

    /// An extent that was one before.
    pub(super) const fn from_sizes(sizes: [u32; 3]) -> Self {
        Self(sizes)
    }

    /// The sizes along x, y and z.
    #[inline]
    pub fn sizes(self) -> [u32; 3] {
        self.0
    }

    /// Whether it is a multiple of another along each dimension.
    fn is_made_of(self, other: Option<Self>) -> bool {
        other.is_some_and(|other| self.0.iter().zip(other.0).all(|(size, other)| size % other == 0))
    }

    /// The product of the sizes.
    #[inline]
    pub fn count(self) -> u64 {
        self.0.iter().fold(1, |count, size| u64::saturating_mul(count, (*size).into()))
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([x, y, z]) = self;
        write!(formatter, "({x}, {y}, {z})")
    }
}

const AXES: [&str; 3] = ["x", "y", "z"];

/// The shape of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchConfig {
    /// The number of blocks.
    pub grid: Extent,
    /// The number of threads in each block.
    pub block: Extent,
    /// Bytes of dynamic shared memory for each block.
    pub shared_bytes: u32,
    /// The number of blocks in each cluster, for launches with clusters.
    pub cluster: Option<Extent>,
    /// Whether all blocks run at the same time, and can wait for each other.
    pub cooperative: bool,
    /// What else the driver is told.
    pub attributes: LaunchAttributes,
}

impl fmt::Display for LaunchConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { grid, block, shared_bytes, cluster, cooperative, attributes } = self;
        write!(formatter, "grid {grid}, block {block}")?;
        if *shared_bytes > 0 {
            write!(formatter, ", {shared_bytes} bytes of shared memory")?;
        }
        if let Some(cluster) = cluster {
            write!(formatter, ", cluster {cluster}")?;
        }
        if *cooperative {
            formatter.write_str(", cooperative")?;
        }
        attributes.iter().try_for_each(|attribute| write!(formatter, ", {attribute}"))
    }
}

/// What a device allows, and a kernel on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The device.
    pub device: Device,
    /// Blocks of a grid along each dimension.
    pub grid: [u32; 3],
    /// Threads of a block along each dimension.
    pub block: [u32; 3],
    /// Threads of a block.
    pub threads_per_block: u32,
    /// Threads of a block of this kernel, which its registers and its `maxntid` may lower.
    pub kernel_threads_per_block: u32,
    /// Bytes of shared memory of a block, once a kernel asks for more than usual.
    pub shared_bytes: u32,
    /// Bytes of shared memory that the kernel itself declares.
    pub static_shared_bytes: u32,
    /// Multiprocessors of the device.
    pub multiprocessors: u32,
    /// Whether the device has clusters.
    pub clusters: bool,
    /// Whether the device has cooperative launches.
    pub cooperative: bool,
}

/// A configuration that cannot be launched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Not one to three sizes.
    #[error("{what} has {count} sizes; give one to three, for x, y and z")]
    Dimensions {
        /// Grid, block or cluster.
        what: &'static str,
        /// The number of sizes.
        count: usize,
    },
    /// A size of zero.
    #[error("{what}.{axis} is 0, and nothing would run; leave the launch out")]
    Zero {
        /// Grid, block or cluster.
        what: &'static str,
        /// The dimension.
        axis: &'static str,
    },
    /// Something exceeds a limit.
    #[error("{what} is {value}, and the limit {limit_name} of device {} is {limit}; {remedy}", device.ordinal())]
    Exceeded {
        /// What exceeds it.
        what: String,
        /// By how much it does.
        value: u64,
        /// The name of the limit in CUDA.
        limit_name: &'static str,
        /// The limit.
        limit: u64,
        /// The device.
        device: Device,
        /// What to do.
        remedy: &'static str,
    },
    /// Clusters must be full.
    #[error("grid.{axis} is {grid}, which clusters of {cluster} do not divide; make it a multiple")]
    Cluster {
        /// The dimension.
        axis: &'static str,
        /// The blocks along it.
        grid: u32,
        /// The blocks of a cluster along it.
        cluster: u32,
    },
    /// Preferred clusters are made of clusters.
    #[error(
        "preferred_cluster_dimension is {preferred}, which is for launches with clusters and a multiple of theirs along each \
         dimension; {}",
        launched_with(cluster.as_ref())
    )]
    PreferredCluster {
        /// The clusters that are preferred.
        preferred: Extent,
        /// Those of the launch.
        cluster: Option<Extent>,
    },
    /// The device lacks something.
    #[error("device {} has no {feature}; use a newer device, or launch without", device.ordinal())]
    Unsupported {
        /// The device.
        device: Device,
        /// What it lacks.
        feature: &'static str,
    },
}

fn launched_with(cluster: Option<&Extent>) -> String {
    match cluster {
        Some(cluster) => format!("those of this launch are {cluster}"),
        None => "this launch has none: name them too".to_owned(),
    }
}

const SMALLER_BLOCKS: &str = "use smaller blocks, and more of them";

impl LaunchConfig {
    /// A launch with nothing but blocks and their threads.
    pub const fn new(grid: Extent, block: Extent) -> Self {
        Self { grid, block, shared_bytes: 0, cluster: None, cooperative: false, attributes: LaunchAttributes::NONE }
    }

    /// Blocks in a row, each with a row of threads.
    pub fn linear(blocks: u32, threads: u32) -> Result<Self, ConfigError> {
        Ok(Self::new(Extent::new("grid", &[blocks])?, Extent::new("block", &[threads])?))
    }

    /// The same with dynamic shared memory for each block.
    #[must_use]
    pub const fn with_shared_bytes(self, shared_bytes: u32) -> Self {
        Self { shared_bytes, ..self }
    }

    /// Whether there is nothing but grid, block and shared memory.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.cluster.is_none() && !self.cooperative && self.attributes.is_empty()
    }

    /// Compares with the limits. A configuration that fits costs a few comparisons.
    #[inline]
    pub fn check(&self, limits: &Limits) -> Result<(), ConfigError> {
        let fits = |extent: Extent, most: &[u32; 3]| extent.0.iter().zip(most).all(|(size, most)| size <= most);
        let threads = self.block.count();
        let shared = u64::from(self.shared_bytes) + u64::from(limits.static_shared_bytes);
        if fits(self.grid, &limits.grid)
            && fits(self.block, &limits.block)
            && threads <= limits.threads_per_block.min(limits.kernel_threads_per_block).into()
            && shared <= limits.shared_bytes.into()
            && self.is_plain()
        {
            return Ok(());
        }
        self.check_closely(limits)
    }

    /// Finds what is exceeded, if anything is.
    #[cold]
    fn check_closely(&self, limits: &Limits) -> Result<(), ConfigError> {
        const GRID: [&str; 3] = ["MAX_GRID_DIM_X", "MAX_GRID_DIM_Y", "MAX_GRID_DIM_Z"];
        const BLOCK: [&str; 3] = ["MAX_BLOCK_DIM_X", "MAX_BLOCK_DIM_Y", "MAX_BLOCK_DIM_Z"];
        let device = limits.device;
        let within = |what: &dyn Fn() -> String, value: u64, limit: u32, limit_name, remedy| {
            let limit = u64::from(limit);
            if value <= limit {
                return Ok(());
            }
            Err(ConfigError::Exceeded { what: what(), value, limit_name, limit, device, remedy })
        };
        let smaller_grid = "let each thread do more, or use another dimension";
        for axis in 0..3 {
            let name = AXES[axis];
            let (grid, block) = (self.grid.0[axis].into(), self.block.0[axis].into());
            within(&|| format!("grid.{name}"), grid, limits.grid[axis], GRID[axis], smaller_grid)?;
            within(&|| format!("block.{name}"), block, limits.block[axis], BLOCK[axis], SMALLER_BLOCKS)?;
        }
        let threads = self.block.count();
        let product = || format!("the number of threads in a block {}", self.block);
        within(&product, threads, limits.threads_per_block, "MAX_THREADS_PER_BLOCK", SMALLER_BLOCKS)?;
        let remedy = "the kernel's registers or its __launch_bounds__ allow no more; use smaller blocks";
        let name = "MAX_THREADS_PER_BLOCK of the kernel";
        within(&product, threads, limits.kernel_threads_per_block, name, remedy)?;
        let shared = u64::from(self.shared_bytes) + u64::from(limits.static_shared_bytes);
        let what = || {
            format!(
                "the shared memory of a block, {} bytes of the kernel and {} of the launch,",
                limits.static_shared_bytes, self.shared_bytes
            )
        };
        let name = "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN";
        within(&what, shared, limits.shared_bytes, name, "keep less in shared memory")?;
        self.check_features(limits)
    }

    fn check_features(&self, limits: &Limits) -> Result<(), ConfigError> {
        let device = limits.device;
        if self.cooperative && !limits.cooperative {
            return Err(ConfigError::Unsupported { device, feature: "cooperative launches" });
        }
        let preferred = self.attributes.preferred_cluster();
        if let Some(preferred) = preferred.filter(|preferred| !preferred.is_made_of(self.cluster)) {
            return Err(ConfigError::PreferredCluster { preferred, cluster: self.cluster });
        }
        let Some(cluster) = self.cluster else { return Ok(()) };
        if !limits.clusters {
            return Err(ConfigError::Unsupported { device, feature: "clusters" });
        }
        for (axis, (grid, cluster)) in self.grid.0.into_iter().zip(cluster.0).enumerate() {
            if grid % cluster != 0 {
                return Err(ConfigError::Cluster { axis: AXES[axis], grid, cluster });
            }
        }
        Ok(())
    }
}
