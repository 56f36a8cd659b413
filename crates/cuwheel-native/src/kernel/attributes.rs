//! Attributes of a launch out of a dictionary, and back.

use cuwheel_dispatcher::launch::{ClusterSchedulingPolicy, LaunchAttribute, LaunchAttributes, MemSyncDomain, Percent};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

use super::configure;
use crate::exception;

/// The names, as messages list them.
const NAMES: [&str; 8] = [
    "priority",
    "programmatic_stream_serialization",
    "cluster_scheduling_policy_preference",
    "mem_sync_domain",
    "mem_sync_domain_map",
    "preferred_cluster_dimension",
    "preferred_shared_memory_carveout",
    "nvlink_util_centric_scheduling",
];

/// A dictionary of attributes by their names.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Attributes(pub(super) LaunchAttributes);

impl<'py> FromPyObject<'_, 'py> for Attributes {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        let Ok(dictionary) = object.cast::<PyDict>() else {
            let message = format!("attributes is {}, and a dictionary is needed", exception::type_name(&object));
            return Err(exception::new::<PyTypeError>(py, message));
        };
        let mut attributes = LaunchAttributes::NONE;
        for (name, value) in dictionary.iter() {
            let Ok(text) = name.cast::<PyString>() else {
                let message = format!("a name of an attribute is a string, not {}", exception::type_name(&name));
                return Err(exception::new::<PyTypeError>(py, message));
            };
            attributes = attributes.with(attribute(&text.to_string_lossy(), &value)?);
        }
        Ok(Self(attributes))
    }
}

fn attribute(name: &str, value: &Bound<'_, PyAny>) -> PyResult<LaunchAttribute> {
    Ok(match name {
        "priority" => {
            let range = i64::from(i32::MIN)..=i64::from(i32::MAX);
            let priority = integer(name, value, range)?;
            LaunchAttribute::Priority(i32::try_from(priority).unwrap_or(0))
        }
        "programmatic_stream_serialization" => LaunchAttribute::ProgrammaticStreamSerialization(truth(name, value)?),
        "nvlink_util_centric_scheduling" => LaunchAttribute::NvlinkUtilCentricScheduling(truth(name, value)?),
        "cluster_scheduling_policy_preference" => {
            let names = ClusterSchedulingPolicy::ALL.map(|policy| (policy.name(), policy));
            LaunchAttribute::ClusterSchedulingPolicyPreference(choice(name, value, &names)?)
        }
        "mem_sync_domain" => {
            let names = MemSyncDomain::ALL.map(|domain| (domain.name(), domain));
            LaunchAttribute::MemSyncDomain(choice(name, value, &names)?)
        }
        "mem_sync_domain_map" => {
            let Ok((default, remote)) = value.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() else {
                return Err(refused(name, value, "a pair of integers (default, remote)"));
            };
            let byte = |value| Ok::<_, PyErr>(u8::try_from(integer(name, value, 0..=255)?).unwrap_or(0));
            LaunchAttribute::MemSyncDomainMap(byte(&default)?, byte(&remote)?)
        }
        "preferred_cluster_dimension" => {
            LaunchAttribute::PreferredClusterDimension(configure::extent("preferred_cluster_dimension", value)?)
        }
        "preferred_shared_memory_carveout" => {
            let percent = u8::try_from(integer(name, value, 0..=100)?).ok().and_then(Percent::new);
            LaunchAttribute::PreferredSharedMemoryCarveout(percent.ok_or_else(|| refused(name, value, "a percentage"))?)
        }
        "cooperative" => return Err(elsewhere(value.py(), name, "cooperative=True")),
        "cluster_dimension" => return Err(elsewhere(value.py(), name, "cluster=")),
        _ => {
            let message = format!("there is no launch attribute {name:?}; there are {}", NAMES.join(", "));
            return Err(exception::new::<PyValueError>(value.py(), message));
        }
    })
}

fn elsewhere(py: Python<'_>, name: &str, option: &str) -> PyErr {
    exception::new::<PyValueError>(py, format!("the attribute {name:?} has an option of its own: {option}"))
}

fn refused(name: &str, value: &Bound<'_, PyAny>, needed: &str) -> PyErr {
    let message = format!("attributes[{name:?}] is {}, and {needed} is needed", exception::type_name(value));
    exception::new::<PyTypeError>(value.py(), message)
}

fn truth(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.cast::<PyBool>().map(PyBoolMethods::is_true).map_err(|_| refused(name, value, "a bool"))
}

fn integer(name: &str, value: &Bound<'_, PyAny>, range: std::ops::RangeInclusive<i64>) -> PyResult<i64> {
    if value.is_instance_of::<PyBool>() {
        return Err(refused(name, value, "an integer"));
    }
    match value.extract::<i64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        Err(error) if error.is_instance_of::<PyTypeError>(value.py()) => Err(refused(name, value, "an integer")),
        _ => {
            let shown = value.str()?;
            let (shown, least, most) = (shown.to_string_lossy(), range.start(), range.end());
            let message = format!("attributes[{name:?}] is {shown}; it must be from {least} to {most}");
            Err(exception::new::<PyValueError>(value.py(), message))
        }
    }
}

fn choice<T: Copy>(name: &str, value: &Bound<'_, PyAny>, names: &[(&str, T)]) -> PyResult<T> {
    let Ok(text) = value.cast::<PyString>() else { return Err(refused(name, value, "a string")) };
    let text = text.to_string_lossy();
    if let Some((_, found)) = names.iter().find(|(known, _)| *known == text) {
        return Ok(*found);
    }
    let known: Vec<String> = names.iter().map(|(known, _)| format!("{known:?}")).collect();
    let message = format!("attributes[{name:?}] is {text:?}; it must be one of {}", known.join(", "));
    Err(exception::new::<PyValueError>(value.py(), message))
}

/// The dictionary again.
pub(super) fn dictionary<'py>(py: Python<'py>, attributes: &LaunchAttributes) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    for attribute in attributes.iter() {
        let name = attribute.name();
        match attribute {
            LaunchAttribute::Priority(priority) => result.set_item(name, priority)?,
            LaunchAttribute::ProgrammaticStreamSerialization(is_on)
            | LaunchAttribute::NvlinkUtilCentricScheduling(is_on) => result.set_item(name, is_on)?,
            LaunchAttribute::ClusterSchedulingPolicyPreference(policy) => result.set_item(name, policy.name())?,
            LaunchAttribute::MemSyncDomain(domain) => result.set_item(name, domain.name())?,
            LaunchAttribute::MemSyncDomainMap(default, remote) => result.set_item(name, (default, remote))?,
            LaunchAttribute::PreferredClusterDimension(extent) => {
                let (x, y, z) = extent.sizes().into();
                result.set_item(name, (x, y, z))?;
            }
            LaunchAttribute::PreferredSharedMemoryCarveout(percent) => {
                result.set_item(name, percent.number())?;
            }
            // Every attribute that can be made here is named above.
            _ => {}
        }
    }
    Ok(result)
}
