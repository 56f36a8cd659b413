//! The report: what is alive and what was recorded, as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::access::stream_name;
use crate::driver::Driver;
use crate::launch::Launch;
use crate::memory::{Allocation, MemoryKind};
use crate::stream::Role;

impl Driver {
    /// The whole report.
    pub(crate) fn report(&self) -> String {
        let mut allocations: Vec<&Allocation> =
            self.memory.iter().filter(|known| known.kind != MemoryKind::Variable).collect();
        allocations.sort_by_key(|allocation| allocation.id);
        let allocations: Vec<Value> = allocations.into_iter().map(|allocation| self.allocation(allocation)).collect();
        let alive = json!({
            "allocations": allocations,
            "streams": self.created_streams(),
            "events": self.events.iter().count(),
            "modules": self.images.alive(),
            "graphs": self.graphs.iter().count() + self.graph_execs.iter().count(),
            "pools": self.pools.iter().filter(|(_, pool)| !pool.is_default).count(),
            "contexts": self.contexts.iter().filter(|(_, context)| context.active).count(),
            "contexts_pushed": self.threads.values().map(|thread| thread.stack.len()).sum::<usize>(),
        });
        let report = json!({
            "alive": alive,
            "calls": self.journal.calls,
            "violations": self.journal.violations,
            "launches": self.journal.launches.iter().map(|launch| launch_entry(launch)).collect::<Vec<_>>(),
            "launch_count": self.journal.launch_count,
            "copies": self.journal.copies,
            "copy_count": self.journal.copy_count,
        });
        report.to_string()
    }

    fn allocation(&self, allocation: &Allocation) -> Value {
        let stream = allocation
            .owner
            .stream
            .map(|handle| self.streams.get(handle).map_or(handle, |stream| stream.shown(handle)));
        json!({
            "address": allocation.address,
            "size": allocation.size,
            "kind": allocation.kind.name(),
            "device": allocation.owner.device,
            "context": allocation.owner.context,
            "stream": stream,
            "origin": allocation.origin,
        })
    }

    fn created_streams(&self) -> usize {
        self.streams.iter().filter(|(_, stream)| stream.role == Role::Created).count()
    }

    /// What a process that ends well does not leave behind, a line each.
    pub(crate) fn faults_at_exit(&self) -> Vec<String> {
        let mut faults: Vec<String> =
            self.journal.violations.iter().map(|violation| format!("violation: {violation}")).collect();
        faults.extend(self.memory.iter().filter(|known| known.kind != MemoryKind::Variable).map(|allocation| {
            let stream = allocation.owner.stream.map(|handle| {
                let shown = self.streams.get(handle).map_or(handle, |stream| stream.shown(handle));
                format!(" on stream {}", stream_name(shown))
            });
            format!(
                "leak: {} bytes of {} memory at {:#x} from {}{}",
                allocation.size,
                allocation.kind.name(),
                allocation.address,
                allocation.origin,
                stream.unwrap_or_default()
            )
        }));
        let counted = [
            (self.created_streams(), "streams"),
            (self.events.iter().count(), "events"),
            (self.images.alive(), "modules and libraries"),
            (self.graphs.iter().count() + self.graph_execs.iter().count(), "graphs"),
        ];
        faults.extend(
            counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("leak: {count} {what}")),
        );
        faults
    }
}

fn launch_entry(launch: &Launch) -> Value {
    let hexadecimal = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            // Writing into a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    let configuration = &launch.configuration;
    json!({
        "function": &*launch.function,
        "grid": configuration.grid,
        "block": configuration.block,
        "cluster": configuration.cluster,
        "shared_bytes": configuration.shared_bytes,
        "cooperative": configuration.cooperative,
        "stream": configuration.stream,
        "attributes": configuration.attributes,
        "parameters": launch.parameters().map(hexadecimal).collect::<Vec<_>>(),
        "context": launch.context,
        "device": launch.device,
        "holds_gil": launch.holds_gil,
    })
}
