//! User objects: what graphs keep alive for a program, and the function that is called when nothing refers to it any more.

use crate::driver::Driver;
use crate::error::{Code, Outcome};
use crate::work::HostCall;

/// `CU_GRAPH_USER_OBJECT_MOVE`: the graph takes over references of the caller.
const MOVE: u32 = 1;

/// One object, known by its references.
pub(crate) struct UserObject {
    references: u64,
    destroy: HostCall,
}

impl Driver {
    /// `cuUserObjectCreate`.
    pub(crate) fn create_user_object(&mut self, destroy: HostCall, references: u32) -> Outcome<u64> {
        if references == 0 {
            return Err(Code::INVALID_VALUE);
        }
        Ok(self.user_objects.insert(UserObject { references: references.into(), destroy }))
    }

    /// `cuUserObjectRetain`.
    pub(crate) fn retain_user_object(&mut self, handle: u64, count: u32) -> Outcome {
        let object = self.user_objects.get_mut(handle).filter(|_| count > 0).ok_or(Code::INVALID_VALUE)?;
        object.references += u64::from(count);
        Ok(())
    }

    /// `cuUserObjectRelease`. The last reference calls the function of the program.
    pub(crate) fn release_user_object(&mut self, handle: u64, count: u32) -> Outcome {
        let object = self.user_objects.get_mut(handle).filter(|_| count > 0).ok_or(Code::INVALID_VALUE)?;
        let Some(left) = object.references.checked_sub(count.into()) else {
            self.violation(format_args!("the user object {handle:#x} is released more often than it was retained"));
            return Err(Code::INVALID_VALUE);
        };
        object.references = left;
        if left == 0
            && let Some(object) = self.user_objects.remove(handle)
        {
            self.host_calls.push(object.destroy);
        }
        Ok(())
    }

    /// `cuGraphRetainUserObject`.
    pub(crate) fn graph_retains(&mut self, graph: u64, object: u64, count: u32, flags: u32) -> Outcome {
        if flags & !MOVE != 0 || self.graphs.get(graph).is_none() || self.user_objects.get(object).is_none() {
            return Err(Code::INVALID_VALUE);
        }
        if flags & MOVE == 0 {
            self.retain_user_object(object, count)?;
        }
        let graph = self.graphs.get_mut(graph).ok_or(Code::INVALID_VALUE)?;
        graph.user_objects.extend(std::iter::repeat_n(object, count as usize));
        Ok(())
    }

    /// `cuGraphReleaseUserObject`.
    pub(crate) fn graph_releases(&mut self, graph: u64, object: u64, count: u32) -> Outcome {
        let known = self.graphs.get_mut(graph).ok_or(Code::INVALID_VALUE)?;
        for _ in 0..count {
            let place = known.user_objects.iter().position(|held| *held == object).ok_or(Code::INVALID_VALUE)?;
            known.user_objects.swap_remove(place);
        }
        self.release_user_object(object, count)
    }
}
