//! Attributes of a launch beyond its shape: what `cuLaunchKernelEx` takes and a value can say.
//!
//! Clusters and cooperative launches are part of the [shape](super::LaunchConfig). Attributes that hold events, addresses or
//! nodes of graphs are left to those who have these.

use std::ffi::c_void;
use std::fmt;
use std::mem::{align_of, offset_of};

use cudarc::driver::sys;

use super::{Extent, LaunchConfig};

/// One attribute of a launch. The names are those of `CUlaunchAttributeID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LaunchAttribute {
    /// Lower numbers go first, as with streams.
    Priority(i32),
    /// Whether the kernel may begin before the one before it on the stream has ended. It has to wait by itself where it needs
    /// to, by `cudaGridDependencySynchronize`.
    ProgrammaticStreamSerialization(bool),
    /// How clusters are put on multiprocessors.
    ClusterSchedulingPolicyPreference(ClusterSchedulingPolicy),
    /// The logical domain in which the kernel's writes are ordered by fences.
    MemSyncDomain(MemSyncDomain),
    /// The physical domains that the logical ones stand for: of the default one, and of the remote one.
    MemSyncDomainMap(u8, u8),
    /// Larger clusters than the launch asks for, where there is room: multiples along each dimension.
    PreferredClusterDimension(Extent),
    /// The part of a multiprocessor's memory to use as shared memory. Without, it is what the driver thinks best.
    PreferredSharedMemoryCarveout(Percent),
    /// Whether blocks are placed so that traffic between devices is even.
    NvlinkUtilCentricScheduling(bool),
}

/// How clusters are put on multiprocessors. The numbers are those of `CUclusterSchedulingPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ClusterSchedulingPolicy {
    /// As the driver likes.
    Default = 0,
    /// The blocks of a cluster on as many multiprocessors as possible.
    Spread = 1,
    /// As blocks are without clusters.
    LoadBalancing = 2,
}

/// A logical domain of memory synchronisation. The numbers are those of `CUlaunchMemSyncDomain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MemSyncDomain {
    /// That of most kernels.
    Default = 0,
    /// For kernels that write to other devices, whose fences take longer.
    Remote = 1,
}

/// A number from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Percent(u8);

impl Percent {
    /// `None` beyond 100.
    pub const fn new(number: u8) -> Option<Self> {
        if number <= 100 { Some(Self(number)) } else { None }
    }

    /// The number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

const COUNT: usize = 8;

/// Attributes of a launch, each at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LaunchAttributes {
    /// Bits of those that are there; what the others hold is zero.
    set: u8,
    priority: i32,
    serialization: bool,
    policy: u8,
    domain: u8,
    domain_map: [u8; 2],
    cluster: [u32; 3],
    carveout: u8,
    nvlink: bool,
}

impl LaunchAttributes {
    /// No attributes.
    pub const NONE: Self = Self {
        set: 0,
        priority: 0,
        serialization: false,
        policy: 0,
        domain: 0,
        domain_map: [0; 2],
        cluster: [0; 3],
        carveout: 0,
        nvlink: false,
    };

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.set == 0
    }

    /// These and one more, or with another value.
    #[must_use]
    pub fn with(mut self, attribute: LaunchAttribute) -> Self {
        let bit = match attribute {
            LaunchAttribute::Priority(priority) => {
                self.priority = priority;
                0
            }
            LaunchAttribute::ProgrammaticStreamSerialization(allowed) => {
                self.serialization = allowed;
                1
            }
            LaunchAttribute::ClusterSchedulingPolicyPreference(policy) => {
                self.policy = policy as u8;
                2
            }
            LaunchAttribute::MemSyncDomain(domain) => {
                self.domain = domain as u8;
                3
            }
            LaunchAttribute::MemSyncDomainMap(default, remote) => {
                self.domain_map = [default, remote];
                4
            }
            LaunchAttribute::PreferredClusterDimension(extent) => {
                self.cluster = extent.sizes();
                5
            }
            LaunchAttribute::PreferredSharedMemoryCarveout(percent) => {
                self.carveout = percent.0;
                6
            }
            LaunchAttribute::NvlinkUtilCentricScheduling(is_on) => {
                self.nvlink = is_on;
                7
            }
        };
        self.set |= 1 << bit;
        self
    }

    /// The attributes that are there.
    pub fn iter(self) -> impl Iterator<Item = LaunchAttribute> {
        (0..COUNT).filter(move |bit| self.set & 1 << bit != 0).map(move |bit| self.at(bit))
    }

    fn at(self, bit: usize) -> LaunchAttribute {
        use ClusterSchedulingPolicy as Policy;
        match bit {
            0 => LaunchAttribute::Priority(self.priority),
            1 => LaunchAttribute::ProgrammaticStreamSerialization(self.serialization),
            2 => LaunchAttribute::ClusterSchedulingPolicyPreference(match self.policy {
                0 => Policy::Default,
                1 => Policy::Spread,
                _ => Policy::LoadBalancing,
            }),
            3 => LaunchAttribute::MemSyncDomain(match self.domain {
                0 => MemSyncDomain::Default,
                _ => MemSyncDomain::Remote,
            }),
            4 => LaunchAttribute::MemSyncDomainMap(self.domain_map[0], self.domain_map[1]),
            5 => LaunchAttribute::PreferredClusterDimension(Extent::from_sizes(self.cluster)),
            6 => LaunchAttribute::PreferredSharedMemoryCarveout(Percent(self.carveout)),
            _ => LaunchAttribute::NvlinkUtilCentricScheduling(self.nvlink),
        }
    }

    /// The larger clusters that are preferred, if any are.
    pub(super) fn preferred_cluster(self) -> Option<Extent> {
        self.iter().find_map(|attribute| match attribute {
            LaunchAttribute::PreferredClusterDimension(extent) => Some(extent),
            _ => None,
        })
    }
}

impl LaunchAttribute {
    /// The name, as `CUlaunchAttributeID` has it after its prefix, in small letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Priority(_) => "priority",
            Self::ProgrammaticStreamSerialization(_) => "programmatic_stream_serialization",
            Self::ClusterSchedulingPolicyPreference(_) => "cluster_scheduling_policy_preference",
            Self::MemSyncDomain(_) => "mem_sync_domain",
            Self::MemSyncDomainMap(..) => "mem_sync_domain_map",
            Self::PreferredClusterDimension(_) => "preferred_cluster_dimension",
            Self::PreferredSharedMemoryCarveout(_) => "preferred_shared_memory_carveout",
            Self::NvlinkUtilCentricScheduling(_) => "nvlink_util_centric_scheduling",
        }
    }
}

impl ClusterSchedulingPolicy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Default, Self::Spread, Self::LoadBalancing];

    /// The name: `default`, `spread` or `load_balancing`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Spread => "spread",
            Self::LoadBalancing => "load_balancing",
        }
    }
}

impl MemSyncDomain {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Default, Self::Remote];

    /// The name: `default` or `remote`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Remote => "remote",
        }
    }
}

impl fmt::Display for LaunchAttribute {
    /// The name, and the value.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ", self.name())?;
        match self {
            Self::Priority(priority) => write!(formatter, "{priority}"),
            Self::ProgrammaticStreamSerialization(is_on) | Self::NvlinkUtilCentricScheduling(is_on) => {
                formatter.write_str(if *is_on { "on" } else { "off" })
            }
            Self::ClusterSchedulingPolicyPreference(policy) => formatter.write_str(policy.name()),
            Self::MemSyncDomain(domain) => formatter.write_str(domain.name()),
            Self::MemSyncDomainMap(default, remote) => write!(formatter, "({default}, {remote})"),
            Self::PreferredClusterDimension(extent) => write!(formatter, "{extent}"),
            Self::PreferredSharedMemoryCarveout(percent) => write!(formatter, "{}%", percent.0),
        }
    }
}

/// `CUlaunchAttribute`, with numbers for attributes that cudarc's enumeration, which is of the oldest driver, does not list.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct RawAttribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

const _: () = {
    assert!(size_of::<RawAttribute>() == size_of::<sys::CUlaunchAttribute>());
    assert!(align_of::<RawAttribute>() == align_of::<sys::CUlaunchAttribute>());
    assert!(offset_of!(RawAttribute, value) == offset_of!(sys::CUlaunchAttribute, value));
};

/// The attributes of a launch as the driver takes them.
pub(super) struct RawAttributes {
    attributes: [RawAttribute; COUNT + 2],
    count: u32,
}

impl RawAttributes {
    /// Those of a configuration, clusters and cooperative launches among them.
    pub(super) fn new(config: &LaunchConfig) -> Self {
        let none = RawAttribute { id: 0, padding: 0, value: [0; 16] };
        let mut list = Self { attributes: [none; COUNT + 2], count: 0 };
        if let Some(cluster) = config.cluster {
            list.push(4, &cluster.sizes());
        }
        if config.cooperative {
            list.push(2, &[1]);
        }
        for attribute in config.attributes.iter() {
            match attribute {
                LaunchAttribute::Priority(priority) => list.push(8, &[priority.cast_unsigned()]),
                LaunchAttribute::ProgrammaticStreamSerialization(allowed) => list.push(6, &[allowed.into()]),
                LaunchAttribute::ClusterSchedulingPolicyPreference(policy) => list.push(5, &[policy as u32]),
                LaunchAttribute::MemSyncDomain(domain) => list.push(10, &[domain as u32]),
                // Two bytes.
                LaunchAttribute::MemSyncDomainMap(default, remote) => {
                    list.push(9, &[u32::from_ne_bytes([default, remote, 0, 0])]);
                }
                LaunchAttribute::PreferredClusterDimension(extent) => list.push(11, &extent.sizes()),
                LaunchAttribute::PreferredSharedMemoryCarveout(percent) => {
                    list.push(14, &[percent.0.into()]);
                }
                LaunchAttribute::NvlinkUtilCentricScheduling(is_on) => list.push(16, &[is_on.into()]),
            }
        }
        list
    }

    fn push(&mut self, id: u32, value: &[u32]) {
        let attribute = &mut self.attributes[self.count as usize];
        attribute.id = id;
        attribute.value[..value.len()].copy_from_slice(value);
        self.count += 1;
    }

    /// The number of attributes, and where they are.
    pub(super) fn as_raw(&mut self) -> (u32, *mut sys::CUlaunchAttribute) {
        (self.count, (&raw mut self.attributes).cast::<c_void>().cast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [LaunchAttribute; COUNT] {
        [
            LaunchAttribute::Priority(-3),
            LaunchAttribute::ProgrammaticStreamSerialization(true),
            LaunchAttribute::ClusterSchedulingPolicyPreference(ClusterSchedulingPolicy::LoadBalancing),
            LaunchAttribute::MemSyncDomain(MemSyncDomain::Remote),
            LaunchAttribute::MemSyncDomainMap(1, 3),
            LaunchAttribute::PreferredClusterDimension(Extent::new("cluster", &[4, 2]).unwrap()),
            LaunchAttribute::PreferredSharedMemoryCarveout(Percent(100)),
            LaunchAttribute::NvlinkUtilCentricScheduling(true),
        ]
    }

    #[test]
    fn attributes_come_back_as_they_went_in_and_in_one_order() {
        let forward = all().into_iter().fold(LaunchAttributes::NONE, LaunchAttributes::with);
        let backward = all().into_iter().rev().fold(LaunchAttributes::NONE, LaunchAttributes::with);
        assert_eq!(forward, backward);
        assert_eq!(forward.iter().collect::<Vec<_>>(), all());
        assert!(LaunchAttributes::NONE.is_empty() && LaunchAttributes::default().iter().next().is_none());
        for attribute in all() {
            let one = LaunchAttributes::NONE.with(attribute);
            assert_eq!(one.iter().collect::<Vec<_>>(), [attribute]);
            assert_ne!(one, LaunchAttributes::NONE);
        }
    }

    #[test]
    fn the_driver_gets_numbers_of_cuda_h() {
        let attributes = all().into_iter().fold(LaunchAttributes::NONE, LaunchAttributes::with);
        let cluster = Some(Extent::new("cluster", &[2]).unwrap());
        let config = LaunchConfig {
            grid: Extent::ONE,
            block: Extent::ONE,
            shared_bytes: 0,
            cluster,
            cooperative: true,
            attributes,
        };
        let list = RawAttributes::new(&config);
        let found: Vec<(u32, [u32; 3])> = list.attributes[..list.count as usize]
            .iter()
            .map(|attribute| (attribute.id, [attribute.value[0], attribute.value[1], attribute.value[2]]))
            .collect();
        let one = |value| [value, 0, 0];
        let expected = [
            (4, [2, 1, 1]),
            (2, one(1)),
            (8, one(u32::MAX - 2)),
            (6, one(1)),
            (5, one(2)),
            (10, one(1)),
            (9, one(0x301)),
            (11, [4, 2, 1]),
            (14, one(100)),
            (16, one(1)),
        ];
        assert_eq!(found, expected);
    }
}
