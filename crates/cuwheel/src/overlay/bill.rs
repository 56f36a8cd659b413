//! The bill of materials of an overlay (PEP 770, CycloneDX 1.5): the released wheel, and what was put into it.
//!
//! Not for the crates and C sources of the native library: its own bills come along with it.

use cuwheel_inspect::wheel::normalize_distribution;
use serde_json::{Value, json};

use crate::wheel_writer::serial_number;

/// A wheel that files come from.
#[derive(Clone, Debug)]
pub struct Origin<'a> {
    /// The distribution, as it calls itself.
    pub distribution: &'a str,
    /// The version.
    pub version: &'a str,
    /// The file name of the wheel.
    pub file: &'a str,
    /// The SHA-256 of the wheel.
    pub sha256: String,
}

impl Origin<'_> {
    fn reference(&self) -> String {
        let name = normalize_distribution(self.distribution);
        format!("pkg:pypi/{name}@{}?file_name={}", escaped(self.version), escaped(self.file))
    }

    fn component(&self) -> Value {
        json!({
            "type": "library",
            "bom-ref": self.reference(),
            "name": self.distribution,
            "version": self.version,
            "purl": self.reference(),
            "hashes": [{ "alg": "SHA-256", "content": self.sha256 }],
        })
    }
}

/// The plus sign of a local version, as package URLs write it.
fn escaped(text: &str) -> String {
    text.replace('+', "%2B")
}

/// The document. It holds no time and no path of this machine: the same wheels give the same bytes.
pub fn document(version: &str, upstream: &Origin<'_>, native: &Origin<'_>) -> Vec<u8> {
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": "overlay",
                "name": upstream.distribution,
                "version": version,
                "pedigree": {
                    "ancestors": [upstream.component()],
                    "notes": format!(
                        "{} with its native modules replaced by those of {} {}; overlay.json lists the files",
                        upstream.file, native.distribution, native.version
                    ),
                },
            },
            "tools": [{ "vendor": "cuwheel", "name": "cuwheel", "version": env!("CARGO_PKG_VERSION") }],
        },
        "components": [native.component()],
        "dependencies": [{ "ref": "overlay", "dependsOn": [native.reference()] }],
    });
    let serial = serial_number(document.to_string().as_bytes());
    document["serialNumber"] = json!(serial);
    format!("{document:#}\n").into_bytes()
}
