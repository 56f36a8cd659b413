//! Processes without a driver, with one that is too old, and forked ones. Each is a run of this executable of its own.

use std::process::{Command, ExitStatus};

use cuda::control::Stub;
use cuwheel_device_array::{Allocation, Array, DType, Device, Driver, MemoryKind, Order, Stream};
use expect_test::expect;

use crate::refusals;

/// Tells the run of its own that it is one.
const ROLE: &str = "CUWHEEL_DEVICE_ARRAY_TEST_ROLE";

/// Runs the test of this name again in a process of its own, with further variables; `None` in that process.
fn in_own_process(test: &str, variables: &[(&str, &str)]) -> Option<ExitStatus> {
    if std::env::var_os(ROLE).is_some() {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(ROLE, "1").envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Some(output.status)
}

#[test]
fn without_a_driver_everything_works_that_needs_none() {
    let directory = tempfile::tempdir().unwrap();
    // Files that are no libraries come before any driver that the machine may have.
    for name in ["libcuda.so.1", "libcuda.so"] {
        std::fs::write(directory.path().join(name), "no library").unwrap();
    }
    let path = directory.path().to_str().unwrap();
    let test = "driver::without_a_driver_everything_works_that_needs_none";
    if in_own_process(test, &[("LD_LIBRARY_PATH", path)]).is_some() {
        return;
    }
    let place = std::env::var("LD_LIBRARY_PATH").unwrap();
    let array =
        |shape: &[i64], kind| Array::empty(shape, DType::Float32, kind, Device::new(0), &Stream::LEGACY, Order::C);
    let host = array(&[3], MemoryKind::Host).unwrap();
    host.fill_zeros(&Stream::LEGACY).unwrap();
    host.contiguous_copy(MemoryKind::Host, Device::new(0), &Stream::LEGACY).unwrap();
    array(&[0], MemoryKind::Device).unwrap();
    let error = array(&[3], MemoryKind::Device).unwrap_err();
    assert_eq!(Driver::get().unwrap_err().to_string(), error.to_string());
    expect!["no CUDA driver was found (DIRECTORY/libcuda.so.1: file too short; DIRECTORY/libcuda.so: file too short); install NVIDIA's driver, or pass the GPU into the container, for example with `--gpus all`"].assert_eq(&error.to_string().replace(&place, "DIRECTORY"));
}

#[test]
fn an_old_driver_is_refused_by_its_version() {
    if in_own_process("driver::an_old_driver_is_refused_by_its_version", &[("CUDA_STUB", "driver=12010")]).is_some() {
        return;
    }
    Stub::load().unwrap();
    refusals(
        &expect![[r#"
        Driver: the driver is for CUDA 12.1, and 12.2 or newer is needed; update NVIDIA's driver
    "#]],
        [Driver::get().unwrap_err().into()],
    );
}

#[test]
fn a_machine_without_devices_is_refused_by_what_the_driver_says() {
    let test = "driver::a_machine_without_devices_is_refused_by_what_the_driver_says";
    if in_own_process(test, &[("CUDA_STUB", "no_device")]).is_some() {
        return;
    }
    Stub::load().unwrap();
    refusals(
        &expect![[r#"
        Driver: cuInit failed with CUDA_ERROR_NO_DEVICE (100): no device; see that `nvidia-smi` lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it
    "#]],
        [Driver::get().unwrap_err().into()],
    );
}

#[test]
fn the_oldest_driver_that_is_supported_has_all_that_is_needed() {
    let test = "driver::the_oldest_driver_that_is_supported_has_all_that_is_needed";
    if in_own_process(test, &[("CUDA_STUB", "driver=12020;at_exit=fail")]).is_some() {
        return;
    }
    Stub::load().unwrap();
    let stream = Stream::create(Device::new(0)).unwrap();
    let array = Array::empty(&[7], DType::Float64, MemoryKind::Device, Device::new(0), &stream, Order::C).unwrap();
    array.fill_bytes(&1.5_f64.to_le_bytes(), &stream).unwrap();
    array.contiguous_copy(MemoryKind::Managed, Device::new(0), &stream).unwrap();
}

#[test]
fn a_forked_child_is_told_so_and_frees_nothing() {
    if in_own_process("driver::a_forked_child_is_told_so_and_frees_nothing", &[("CUDA_STUB", "at_exit=fail")]).is_some()
    {
        return;
    }
    let stub = Stub::load().unwrap();
    let stream = Stream::create(Device::new(0)).unwrap();
    let allocate = |kind| Allocation::new(kind, 64, Device::new(0), &stream);
    let memory = allocate(MemoryKind::Device).unwrap();
    // SAFETY: the child uses no other thread's locks, and ends without running what the parent has left to do.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let calls = || stub.report()["calls"].to_string();
        let before = calls();
        drop(memory);
        drop(stream.clone());
        let is_told = allocate(MemoryKind::Device).unwrap_err().to_string();
        let works_without = allocate(MemoryKind::Host).is_ok();
        let is_quiet = calls() == before && cuwheel_device_array::take_deferred_error().is_none();
        let passed = is_told.contains("forked") && works_without && is_quiet;
        // SAFETY: ends the child at once.
        unsafe { libc::_exit((!passed).into()) }
    }
    let mut status = 0;
    // SAFETY: the pointer is to a local variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    drop(memory);
    refusals(
        &expect![[r#"
        Driver: CUDA was started before this process was forked, and cannot be used in the child; start processes with the method "spawn" or "forkserver", or use CUDA only after the fork
    "#]],
        [cuwheel_device_array::DriverError::Forked.into()],
    );
}
