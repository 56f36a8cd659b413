//! `cuMemcpy*` and `cuMemset*`.

use super::In;
use super::exports::exports;
use crate::copies::{BoxSide, Fill, Timing};
use crate::error::{Code, Outcome};
use crate::work::Side;
use Side::{Device, Either, Host};
use Timing::{On, Synchronous};

/// `CUmemorytype`.
const MEMORY_HOST: u32 = 1;
const MEMORY_DEVICE: u32 = 2;
const MEMORY_UNIFIED: u32 = 4;

/// One side of `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Side2D {
    x_bytes: usize,
    y: usize,
    memory: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy2D {
    source: Side2D,
    destination: Side2D,
    width_bytes: usize,
    height: usize,
}

/// One side of `CUDA_MEMCPY3D`, and of `CUDA_MEMCPY3D_PEER`, where the reserved word is a context.
#[repr(C)]
#[derive(Clone, Copy)]
struct Side3D {
    x_bytes: usize,
    y: usize,
    z: usize,
    level: usize,
    memory: u32,
    host: u64,
    device: u64,
    array: u64,
    context: u64,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy3D {
    source: Side3D,
    destination: Side3D,
    width_bytes: usize,
    height: usize,
    depth: usize,
}

exports! {
    [4000 Normal cuMemcpy_ptds] fn cuMemcpy(to: u64, from: u64, size: usize) |driver| {
        driver.copy_run((Either, to), (Either, from), size as u64, Synchronous)
    }

    [4000 Normal cuMemcpyAsync_ptsz] fn cuMemcpyAsync(to: u64, from: u64, size: usize, stream: u64) |driver| {
        driver.copy_run((Either, to), (Either, from), size as u64, On(stream))
    }

    [3020 Normal cuMemcpyHtoD_v2_ptds] fn cuMemcpyHtoD_v2(to: u64, from: u64, size: usize) |driver| {
        driver.copy_run((Device, to), (Host, from), size as u64, Synchronous)
    }

    [3020 Normal cuMemcpyHtoDAsync_v2_ptsz] fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, size: usize, stream: u64)
    |driver| {
        driver.copy_run((Device, to), (Host, from), size as u64, On(stream))
    }

    [3020 Normal cuMemcpyDtoH_v2_ptds] fn cuMemcpyDtoH_v2(to: u64, from: u64, size: usize) |driver| {
        driver.copy_run((Host, to), (Device, from), size as u64, Synchronous)
    }

    [3020 Normal cuMemcpyDtoHAsync_v2_ptsz] fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, size: usize, stream: u64)
    |driver| {
        driver.copy_run((Host, to), (Device, from), size as u64, On(stream))
    }

    [3020 Normal cuMemcpyDtoD_v2_ptds] fn cuMemcpyDtoD_v2(to: u64, from: u64, size: usize) |driver| {
        driver.copy_run((Device, to), (Device, from), size as u64, Synchronous)
    }

    [3020 Normal cuMemcpyDtoDAsync_v2_ptsz] fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, size: usize, stream: u64)
    |driver| {
        driver.copy_run((Device, to), (Device, from), size as u64, On(stream))
    }

    [4000 Normal cuMemcpyPeer_ptds] fn cuMemcpyPeer(to: u64, to_context: u64, from: u64, from_context: u64, size: usize)
    |driver| {
        driver.context_or_current(to_context)?;
        driver.context_or_current(from_context)?;
        driver.copy_run((Device, to), (Device, from), size as u64, Synchronous)
    }

    [4000 Normal cuMemcpyPeerAsync_ptsz] fn cuMemcpyPeerAsync(
        to: u64, to_context: u64, from: u64, from_context: u64, size: usize, stream: u64,
    ) |driver| {
        driver.context_or_current(to_context)?;
        driver.context_or_current(from_context)?;
        driver.copy_run((Device, to), (Device, from), size as u64, On(stream))
    }

    [3020 Normal cuMemcpy2D_v2_ptds] fn cuMemcpy2D_v2(copy: In<Copy2D>) |driver| {
        let (to, from, extent) = copy.get()?.sides()?;
        driver.copy_box(to, from, extent, Synchronous)
    }

    [3020 Normal cuMemcpy2DUnaligned_v2_ptds] fn cuMemcpy2DUnaligned_v2(copy: In<Copy2D>) |driver| {
        let (to, from, extent) = copy.get()?.sides()?;
        driver.copy_box(to, from, extent, Synchronous)
    }

    [3020 Normal cuMemcpy2DAsync_v2_ptsz] fn cuMemcpy2DAsync_v2(copy: In<Copy2D>, stream: u64) |driver| {
        let (to, from, extent) = copy.get()?.sides()?;
        driver.copy_box(to, from, extent, On(stream))
    }

    [3020 Normal cuMemcpy3D_v2_ptds] fn cuMemcpy3D_v2(copy: In<Copy3D>) |driver| {
        let (to, from, extent) = copy.get()?.sides()?;
        driver.copy_box(to, from, extent, Synchronous)
    }

    [3020 Normal cuMemcpy3DAsync_v2_ptsz] fn cuMemcpy3DAsync_v2(copy: In<Copy3D>, stream: u64) |driver| {
        let (to, from, extent) = copy.get()?.sides()?;
        driver.copy_box(to, from, extent, On(stream))
    }

    [4000 Normal cuMemcpy3DPeer_ptds] fn cuMemcpy3DPeer(copy: In<Copy3D>) |driver| {
        let (to, from, extent) = copy.get()?.sides()?;
        driver.copy_box(to, from, extent, Synchronous)
    }

    [4000 Normal cuMemcpy3DPeerAsync_ptsz] fn cuMemcpy3DPeerAsync(copy: In<Copy3D>, stream: u64) |driver| {
        let (to, from, extent) = copy.get()?.sides()?;
        driver.copy_box(to, from, extent, On(stream))
    }

    [3020 Normal cuMemsetD8_v2_ptds] fn cuMemsetD8_v2(address: u64, value: u8, count: usize) |driver| {
        driver.fill_rows(run(address, value.into(), 1, count), Synchronous)
    }

    [3020 Normal cuMemsetD16_v2_ptds] fn cuMemsetD16_v2(address: u64, value: u16, count: usize) |driver| {
        driver.fill_rows(run(address, value.into(), 2, count), Synchronous)
    }

    [3020 Normal cuMemsetD32_v2_ptds] fn cuMemsetD32_v2(address: u64, value: u32, count: usize) |driver| {
        driver.fill_rows(run(address, value, 4, count), Synchronous)
    }

    [3020 Normal cuMemsetD8Async_ptsz] fn cuMemsetD8Async(address: u64, value: u8, count: usize, stream: u64) |driver| {
        driver.fill_rows(run(address, value.into(), 1, count), On(stream))
    }

    [3020 Normal cuMemsetD16Async_ptsz] fn cuMemsetD16Async(address: u64, value: u16, count: usize, stream: u64)
    |driver| {
        driver.fill_rows(run(address, value.into(), 2, count), On(stream))
    }

    [3020 Normal cuMemsetD32Async_ptsz] fn cuMemsetD32Async(address: u64, value: u32, count: usize, stream: u64)
    |driver| {
        driver.fill_rows(run(address, value, 4, count), On(stream))
    }

    [3020 Normal cuMemsetD2D8_v2_ptds] fn cuMemsetD2D8_v2(
        address: u64, pitch: usize, value: u8, width: usize, height: usize,
    ) |driver| {
        driver.fill_rows(rows(address, pitch, value.into(), 1, [width, height]), Synchronous)
    }

    [3020 Normal cuMemsetD2D16_v2_ptds] fn cuMemsetD2D16_v2(
        address: u64, pitch: usize, value: u16, width: usize, height: usize,
    ) |driver| {
        driver.fill_rows(rows(address, pitch, value.into(), 2, [width, height]), Synchronous)
    }

    [3020 Normal cuMemsetD2D32_v2_ptds] fn cuMemsetD2D32_v2(
        address: u64, pitch: usize, value: u32, width: usize, height: usize,
    ) |driver| {
        driver.fill_rows(rows(address, pitch, value, 4, [width, height]), Synchronous)
    }

    [3020 Normal cuMemsetD2D8Async_ptsz] fn cuMemsetD2D8Async(
        address: u64, pitch: usize, value: u8, width: usize, height: usize, stream: u64,
    ) |driver| {
        driver.fill_rows(rows(address, pitch, value.into(), 1, [width, height]), On(stream))
    }

    [3020 Normal cuMemsetD2D16Async_ptsz] fn cuMemsetD2D16Async(
        address: u64, pitch: usize, value: u16, width: usize, height: usize, stream: u64,
    ) |driver| {
        driver.fill_rows(rows(address, pitch, value.into(), 2, [width, height]), On(stream))
    }

    [3020 Normal cuMemsetD2D32Async_ptsz] fn cuMemsetD2D32Async(
        address: u64, pitch: usize, value: u32, width: usize, height: usize, stream: u64,
    ) |driver| {
        driver.fill_rows(rows(address, pitch, value, 4, [width, height]), On(stream))
    }
}

fn run(address: u64, value: u32, element: u64, count: usize) -> Fill {
    Fill { address, pitch: 0, value, element, width: count as u64, height: 1 }
}

fn rows(address: u64, pitch: usize, value: u32, element: u64, [width, height]: [usize; 2]) -> Fill {
    Fill { address, pitch: pitch as u64, value, element, width: width as u64, height: height as u64 }
}

/// Which address counts, and what it has to be. CUDA arrays are not modelled.
fn side(memory: u32, host: u64, device: u64) -> Outcome<(Side, u64)> {
    match memory {
        MEMORY_HOST => Ok((Host, host)),
        MEMORY_DEVICE => Ok((Device, device)),
        MEMORY_UNIFIED => Ok((Either, device)),
        _ => Err(Code::NOT_SUPPORTED),
    }
}

/// Destination, source and extent of a copy.
type Sides = (BoxSide, BoxSide, [u64; 3]);

impl Copy2D {
    fn sides(&self) -> Outcome<Sides> {
        let extent = [self.width_bytes as u64, self.height as u64, 1];
        Ok((self.destination.side()?, self.source.side()?, extent))
    }
}

impl Side2D {
    fn side(&self) -> Outcome<BoxSide> {
        let (side, address) = side(self.memory, self.host, self.device)?;
        let offset = [self.x_bytes as u64, self.y as u64, 0];
        Ok(BoxSide { side, address, offset, pitch: self.pitch as u64, slice_rows: 0 })
    }
}

impl Copy3D {
    fn sides(&self) -> Outcome<Sides> {
        let extent = [self.width_bytes as u64, self.height as u64, self.depth as u64];
        Ok((self.destination.side()?, self.source.side()?, extent))
    }
}

impl Side3D {
    fn side(&self) -> Outcome<BoxSide> {
        let (side, address) = side(self.memory, self.host, self.device)?;
        let offset = [self.x_bytes as u64, self.y as u64, self.z as u64];
        Ok(BoxSide { side, address, offset, pitch: self.pitch as u64, slice_rows: self.height as u64 })
    }
}
