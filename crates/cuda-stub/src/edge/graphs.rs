//! Captures and graphs.

use super::Out;
use super::exports::exports;
use crate::capture::Status;
use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::work::HostCall;

/// `CUgraphInstantiate_flags`: the sum of all, and the one by which a stream is named.
const ALL_INSTANTIATE_FLAGS: u64 = 0xf;
const UPLOAD: u64 = 2;

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
struct InstantiateParameters {
    flags: u64,
    upload_stream: u64,
    error_node: u64,
    result: u32,
}

exports! {
    [10010 Normal cuStreamBeginCapture_v2_ptsz] fn cuStreamBeginCapture_v2(stream: u64, mode: u32) |driver| {
        driver.begin_capture(stream, mode)
    }

    [10000 Normal cuStreamEndCapture_ptsz] fn cuStreamEndCapture(stream: u64, graph: Out<u64>) |driver| {
        graph.require()?;
        graph.set(0)?;
        graph.set(driver.end_capture(stream)?)
    }

    [10000 Normal cuStreamIsCapturing_ptsz] fn cuStreamIsCapturing(stream: u64, status: Out<u32>) |driver| {
        status.set(driver.capture_status(stream)?.0 as u32)
    }

    [11030 Normal cuStreamGetCaptureInfo_v2_ptsz] fn cuStreamGetCaptureInfo_v2(
        stream: u64, status: Out<u32>, id: Out<u64>, graph: Out<u64>, dependencies: Out<*const u64>, count: Out<usize>,
    ) |driver| {
        capture_info(driver, stream, &status, &id, &graph, &dependencies, &count)
    }

    [12030 Normal cuStreamGetCaptureInfo_v3_ptsz] fn cuStreamGetCaptureInfo_v3(
        stream: u64, status: Out<u32>, id: Out<u64>, graph: Out<u64>, dependencies: Out<*const u64>,
        edges: Out<usize>, count: Out<usize>,
    ) |driver| {
        edges.set_if_wanted(0);
        capture_info(driver, stream, &status, &id, &graph, &dependencies, &count)
    }

    [10010 Setup] fn cuThreadExchangeStreamCaptureMode(mode: Out<u32>) |driver| {
        let wanted = super::In(mode.0.cast_const()).get()?;
        if wanted > 2 {
            return Err(Code::INVALID_VALUE);
        }
        let before = std::mem::replace(&mut driver.thread().capture_mode, wanted);
        mode.set(before)
    }

    [12000 Normal] fn cuGraphInstantiateWithFlags(exec: Out<u64>, graph: u64, flags: u64) |driver| {
        exec.require()?;
        if flags > ALL_INSTANTIATE_FLAGS {
            return Err(Code::INVALID_VALUE);
        }
        exec.set(driver.instantiate(graph)?)
    }

    [12000 Normal cuGraphInstantiateWithParams_ptsz] fn cuGraphInstantiateWithParams(
        exec: Out<u64>, graph: u64, parameters: Out<InstantiateParameters>,
    ) |driver| {
        exec.require()?;
        let mut wanted = super::In(parameters.0.cast_const()).get()?;
        if wanted.flags > ALL_INSTANTIATE_FLAGS {
            return Err(Code::INVALID_VALUE);
        }
        if wanted.flags & UPLOAD != 0 {
            driver.stream_handle(wanted.upload_stream)?;
        }
        exec.set(driver.instantiate(graph)?)?;
        (wanted.error_node, wanted.result) = (0, 0);
        parameters.set(wanted)
    }

    [10000 Normal cuGraphLaunch_ptsz] fn cuGraphLaunch(exec: u64, stream: u64) |driver| {
        driver.launch_graph(exec, stream)
    }

    // There is nothing to upload; the graph and the stream have to be good.
    [11010 Normal cuGraphUpload_ptsz] fn cuGraphUpload(exec: u64, stream: u64) |driver| {
        driver.stream_handle(stream)?;
        driver.graph_execs.get(exec).map(drop).ok_or(Code::INVALID_VALUE)
    }

    [10000 Normal] fn cuGraphDestroy(graph: u64) |driver| { driver.destroy_graph(graph) }

    [10000 Normal] fn cuGraphExecDestroy(exec: u64) |driver| { driver.destroy_graph_exec(exec) }

    [11030 Normal] fn cuUserObjectCreate(
        object: Out<u64>, argument: usize, destroy: Option<unsafe extern "C" fn(usize)>, references: u32, flags: u32,
    ) |driver| {
        object.require()?;
        // The one flag says that the function may run on any thread, and has to be given.
        let function = destroy.filter(|_| flags == 1).ok_or(Code::INVALID_VALUE)?;
        object.set(driver.create_user_object(HostCall::Function { function, argument }, references)?)
    }

    [11030 Normal] fn cuUserObjectRetain(object: u64, count: u32) |driver| { driver.retain_user_object(object, count) }

    [11030 Normal] fn cuUserObjectRelease(object: u64, count: u32) |driver| { driver.release_user_object(object, count) }

    [11030 Normal] fn cuGraphRetainUserObject(graph: u64, object: u64, count: u32, flags: u32) |driver| {
        driver.graph_retains(graph, object, count, flags)
    }

    [11030 Normal] fn cuGraphReleaseUserObject(graph: u64, object: u64, count: u32) |driver| {
        driver.graph_releases(graph, object, count)
    }

    [10000 Normal] fn cuGraphGetNodes(graph: u64, nodes: Out<u64>, count: Out<usize>) |driver| {
        let known = driver.graphs.get(graph).ok_or(Code::INVALID_VALUE)?;
        let handles: Vec<u64> = known.nodes.iter().map(|node| node.handle).collect();
        if nodes.require().is_err() {
            return count.set(handles.len());
        }
        let room = super::In(count.0.cast_const()).get()?;
        let given = &handles[..room.min(handles.len())];
        // SAFETY: the caller says that `count` handles fit.
        unsafe { nodes.set_all(given) }?;
        count.set(given.len())
    }
}

fn capture_info(
    driver: &mut Driver,
    stream: u64,
    status: &Out<u32>,
    id: &Out<u64>,
    graph: &Out<u64>,
    dependencies: &Out<*const u64>,
    count: &Out<usize>,
) -> Outcome {
    let (state, number) = driver.capture_status(stream)?;
    status.set(state as u32)?;
    if state != Status::Active {
        return Ok(());
    }
    let (handle, before) = driver.capture_dependencies(number, stream)?;
    id.set_if_wanted(number);
    graph.set_if_wanted(handle);
    dependencies.set_if_wanted(before.as_ptr());
    count.set_if_wanted(before.len());
    Ok(())
}
