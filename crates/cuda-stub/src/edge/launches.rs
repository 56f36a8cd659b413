//! `cuLaunch*` and `cuOccupancy*`.

use super::exports::exports;
use super::{In, Out};
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::image::{Kernel, Parameter};
use crate::launch::{Configuration, most_blocks_per_cluster};
use crate::occupancy::{best_block, blocks_per_multiprocessor, shared_bytes_for};

/// `CU_LAUNCH_PARAM_*`: how parameters are given in one block.
const END: usize = 0;
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;

/// `CUlaunchAttributeID`.
const COOPERATIVE: u32 = 2;
const CLUSTER_DIMENSION: u32 = 4;

/// `CUlaunchAttribute`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: u64,
    attributes: *const Attribute,
    attribute_count: u32,
}

/// The parameters of a launch: an array of pointers to them, or a list that ends in zero and tells where a block of them is.
struct Parameters {
    each: In<*const u8>,
    extra: In<usize>,
}

impl Parameters {
    /// The block of parameters.
    fn read(&self, layout: &[Parameter]) -> Outcome<Box<[u8]>> {
        let size = layout.last().map_or(0, |parameter| parameter.offset + parameter.size);
        let mut bytes = vec![0; size].into_boxed_slice();
        match (self.each.0.is_null(), self.extra.0.is_null()) {
            (false, false) => return Err(Code::INVALID_VALUE),
            (true, true) if size > 0 => return Err(Code::INVALID_VALUE),
            (true, true) => {}
            (false, true) => self.read_each(layout, &mut bytes)?,
            (true, false) => self.read_block(&mut bytes)?,
        }
        Ok(bytes)
    }

    fn read_each(&self, layout: &[Parameter], bytes: &mut [u8]) -> Outcome {
        for (index, parameter) in layout.iter().enumerate() {
            // SAFETY: the caller says that there is a pointer for each parameter of the kernel.
            let place = unsafe { self.each.item(index) }?;
            if place.is_null() {
                return Err(Code::INVALID_VALUE);
            }
            // SAFETY: the caller says that each pointer is to a value of the parameter's size.
            let value = unsafe { std::slice::from_raw_parts(place, parameter.size) };
            bytes[parameter.offset..parameter.offset + parameter.size].copy_from_slice(value);
        }
        Ok(())
    }

    fn read_block(&self, bytes: &mut [u8]) -> Outcome {
        let (mut block, mut size) = (None, None);
        // The two keys with their values, and the end.
        for index in [0, 2, 4] {
            // SAFETY: the caller says that the list goes on until it ends, and it has not.
            let key = unsafe { self.extra.item(index) }?;
            if key == END {
                break;
            }
            // SAFETY: a key is followed by its value.
            let value = unsafe { self.extra.item(index + 1) }?;
            match key {
                BUFFER_POINTER => block = Some(std::ptr::with_exposed_provenance::<u8>(value)),
                BUFFER_SIZE => size = Some(In(std::ptr::with_exposed_provenance::<usize>(value)).get()?),
                _ => return Err(Code::INVALID_VALUE),
            }
        }
        let block = block.filter(|block| !block.is_null()).ok_or(Code::INVALID_VALUE)?;
        if size.is_none_or(|size| size < bytes.len()) {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller says that the block has the size that it gave, which is enough.
        bytes.copy_from_slice(unsafe { std::slice::from_raw_parts(block, bytes.len()) });
        Ok(())
    }
}

fn launch(driver: &mut Driver, function: u64, configuration: Configuration, parameters: &Parameters) -> Outcome {
    let (function, layout) = driver.launch_layout(function)?;
    let bytes = parameters.read(&layout)?;
    driver.launch(function, configuration, layout, bytes)
}

impl LaunchConfig {
    fn configuration(&self) -> Outcome<Configuration> {
        let mut configuration = Configuration {
            grid: self.grid,
            block: self.block,
            cluster: [1; 3],
            shared_bytes: self.shared_bytes,
            stream: self.stream,
            cooperative: false,
            attributes: Vec::new(),
        };
        for index in 0..self.attribute_count as usize {
            // SAFETY: the caller says that so many attributes are there.
            let attribute = unsafe { In(self.attributes).item(index) }?;
            match attribute.id {
                COOPERATIVE => configuration.cooperative = attribute.value[0] != 0,
                CLUSTER_DIMENSION => {
                    configuration.cluster = [attribute.value[0], attribute.value[1], attribute.value[2]];
                }
                other => configuration.attributes.push(other),
            }
        }
        Ok(configuration)
    }
}

exports! {
    [4000 Normal cuLaunchKernel_ptsz] fn cuLaunchKernel(
        function: u64, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32, stream: u64, each: In<*const u8>, extra: In<usize>,
    ) |driver| {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let (cluster, cooperative, attributes) = ([1; 3], false, Vec::new());
        let configuration = Configuration { grid, block, cluster, shared_bytes, stream, cooperative, attributes };
        launch(driver, function, configuration, &Parameters { each, extra })
    }

    [11060 Normal cuLaunchKernelEx_ptsz] fn cuLaunchKernelEx(
        config: In<LaunchConfig>, function: u64, each: In<*const u8>, extra: In<usize>,
    ) |driver| {
        let configuration = config.get()?.configuration()?;
        launch(driver, function, configuration, &Parameters { each, extra })
    }

    [9000 Normal cuLaunchCooperativeKernel_ptsz] fn cuLaunchCooperativeKernel(
        function: u64, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32, stream: u64, each: In<*const u8>,
    ) |driver| {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        let (cluster, cooperative, attributes) = ([1; 3], true, Vec::new());
        let configuration = Configuration { grid, block, cluster, shared_bytes, stream, cooperative, attributes };
        launch(driver, function, configuration, &Parameters { each, extra: In(std::ptr::null()) })
    }

    [6050 Normal] fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        count: Out<i32>, function: u64, threads: i32, shared_bytes: usize,
    ) |driver| {
        let kernel = kernel(driver, function)?;
        count.set(active_blocks(&kernel, threads, shared_bytes)?)
    }

    [7000 Normal] fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        count: Out<i32>, function: u64, threads: i32, shared_bytes: usize, _flags: u32,
    ) |driver| {
        let kernel = kernel(driver, function)?;
        count.set(active_blocks(&kernel, threads, shared_bytes)?)
    }

    [6050 Normal] fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<i32>, block: Out<i32>, function: u64, shared: Option<SharedFor>, shared_bytes: usize, limit: i32,
    ) |driver| {
        let kernel = kernel(driver, function)?;
        potential_block(&kernel, &grid, &block, shared, shared_bytes, limit)
    }

    [7000 Normal] fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<i32>, block: Out<i32>, function: u64, shared: Option<SharedFor>, shared_bytes: usize, limit: i32,
        _flags: u32,
    ) |driver| {
        let kernel = kernel(driver, function)?;
        potential_block(&kernel, &grid, &block, shared, shared_bytes, limit)
    }

    [11000 Normal] fn cuOccupancyAvailableDynamicSMemPerBlock(
        size: Out<usize>, function: u64, blocks: i32, _threads: i32,
    ) |driver| {
        let kernel = kernel(driver, function)?;
        let blocks = u32::try_from(blocks).map_err(|_| Code::INVALID_VALUE)?;
        size.set(shared_bytes_for(&kernel, blocks) as usize)
    }

    [11080 Normal] fn cuOccupancyMaxPotentialClusterSize(size: Out<i32>, function: u64, config: In<LaunchConfig>)
    |driver| {
        let function = driver.function(function)?;
        config.get()?.configuration()?;
        let non_portable = driver.images.functions.get(function).is_some_and(|known| known.settings.non_portable_cluster);
        size.set(most_blocks_per_cluster(non_portable).cast_signed())
    }

    [11080 Normal] fn cuOccupancyMaxActiveClusters(count: Out<i32>, function: u64, config: In<LaunchConfig>) |driver| {
        let kernel = kernel(driver, function)?;
        let configuration = config.get()?.configuration()?;
        let threads: u32 = configuration.block.iter().product();
        let blocks = blocks_per_multiprocessor(&kernel, threads, configuration.shared_bytes);
        let cluster: u32 = configuration.cluster.iter().product();
        let clusters = (blocks * crate::device::MULTIPROCESSORS).checked_div(cluster).ok_or(Code::INVALID_VALUE)?;
        count.set(clusters.cast_signed())
    }
}

/// `CUoccupancyB2DSize`.
type SharedFor = extern "C" fn(i32) -> usize;

fn kernel(driver: &mut Driver, function: u64) -> Outcome<Kernel> {
    let function = driver.function(function)?;
    driver.images.functions.get(function).map(|known| known.kernel.clone()).ok_or(Code::INVALID_HANDLE)
}

fn active_blocks(kernel: &Kernel, threads: i32, shared_bytes: usize) -> Outcome<i32> {
    let threads = u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or(Code::INVALID_VALUE)?;
    let shared = u32::try_from(shared_bytes).unwrap_or(u32::MAX);
    Ok(blocks_per_multiprocessor(kernel, threads, shared).cast_signed())
}

fn potential_block(
    kernel: &Kernel,
    grid: &Out<i32>,
    block: &Out<i32>,
    shared: Option<SharedFor>,
    shared_bytes: usize,
    limit: i32,
) -> Outcome {
    let limit = u32::try_from(limit).map_err(|_| Code::INVALID_VALUE)?;
    let shared = |threads: u32| {
        let size = shared.map_or(shared_bytes, |shared| shared(threads.cast_signed()));
        u32::try_from(size).unwrap_or(u32::MAX)
    };
    let (blocks, threads) = best_block(kernel, shared, limit);
    grid.set(blocks.cast_signed())?;
    block.set(threads.cast_signed())
}
