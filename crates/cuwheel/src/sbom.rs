//! The bill of materials (PEP 770, CycloneDX 1.5) of the C, C++ and CUDA sources that are compiled into a wheel.
//!
//! Not for crates: maturin lists those.

use serde_json::json;

use crate::error::Result;
use crate::files;
use crate::project::Project;
use crate::sources;
use crate::wheel_writer::serial_number;

/// The document, or nothing for a project without such sources. It holds no time and no path of this machine.
pub fn native_sources(project: &Project) -> Result<Option<Vec<u8>>> {
    let mut components = Vec::new();
    for file in sources::native_sources(project)? {
        if sources::is_build_script(&file) {
            continue;
        }
        let name = match file.strip_prefix(&project.root) {
            Ok(inside) => inside.display().to_string(),
            // A crate outside of the project: its directory's name has to do.
            Err(_) => file
                .components()
                .rev()
                .take(3)
                .map(|part| part.as_os_str().to_string_lossy().into_owned())
                .collect::<Vec<_>>()
                .into_iter()
                .rev()
                .collect::<Vec<_>>()
                .join("/"),
        };
        components.push(json!({
            "type": "file",
            "bom-ref": format!("file:{name}"),
            "name": name,
            "hashes": [{ "alg": "SHA-256", "content": files::sha256_of_file(&file)? }],
        }));
    }
    if components.is_empty() {
        return Ok(None);
    }
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": { "type": "library", "bom-ref": "project", "name": project.name, "version": project.version },
            "tools": [{ "vendor": "cuwheel", "name": "cuwheel", "version": env!("CARGO_PKG_VERSION") }],
        },
        "components": components,
    });
    let serial = serial_number(document.to_string().as_bytes());
    document["serialNumber"] = json!(serial);
    Ok(Some(format!("{document:#}\n").into_bytes()))
}
