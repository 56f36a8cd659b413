//! What the rules say of wheels, kept and shown: for `check-wheel`, and for `build-wheel` on what it makes.
//!
//! Not for the rules themselves, which are [`cuwheel_inspect::rules`].

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cuwheel_inspect::rules::{self, Breakdown, ExaminedWheel, Finding, InstalledFiles, Policy, RULES, RuleSelector};
use cuwheel_inspect::wheel::WheelFault;
use serde_json::{Value, json};

use crate::error::{Failure, Result};
use crate::files::{self, human_size};
use crate::findings::{self, Counts};
use crate::settings::CheckSettings;

/// Files and sections that are listed.
const LISTED_SIZES: usize = 5;

/// A wheel, and what is wrong with it.
#[derive(Debug)]
pub struct WheelCheck {
    path: PathBuf,
    sha256: String,
    size_bytes: u64,
    /// What is known only of a wheel that can be read.
    readable: Option<Readable>,
    findings: Vec<Finding>,
}

#[derive(Debug)]
struct Readable {
    tags: Vec<String>,
    glibc_floor: Option<String>,
    cuda_toolkits: Vec<String>,
    breakdown: Breakdown,
}

impl WheelCheck {
    /// Reads the wheel at `path` and checks it, and gives the files that it would install, where it can be read.
    pub fn of_file(path: &Path, policy: &Policy) -> Result<(Self, Option<InstalledFiles>)> {
        match ExaminedWheel::open(path) {
            Ok(examined) => {
                let findings = rules::check(&examined, policy);
                let wheel = examined.wheel();
                let check = Self {
                    path: path.to_path_buf(),
                    sha256: wheel.sha256().to_string(),
                    size_bytes: wheel.size_bytes(),
                    readable: Some(Readable {
                        tags: wheel.name().tags().iter().map(ToString::to_string).collect(),
                        glibc_floor: examined.glibc_floor().map(|version| version.to_string()),
                        cuda_toolkits: examined.cuda_toolkits().iter().map(ToString::to_string).collect(),
                        breakdown: Breakdown::of(&examined),
                    }),
                    findings,
                };
                Ok((check, Some(InstalledFiles::of(&examined))))
            }
            Err(error) => {
                if let WheelFault::Io(_) = error.fault() {
                    return Err(Failure::usage(error.to_string()).remedy("give files that you may read").into());
                }
                let check = Self {
                    path: path.to_path_buf(),
                    sha256: files::sha256_of_file(path)?,
                    size_bytes: fs_err::metadata(path)?.len(),
                    readable: None,
                    findings: rules::unreadable(&error, policy),
                };
                Ok((check, None))
            }
        }
    }

    /// Whether the wheel could be read.
    pub fn is_readable(&self) -> bool {
        self.readable.is_some()
    }

    /// Adds that the wheel could not be imported.
    pub fn add(&mut self, import_failure: Option<String>, policy: &Policy) {
        if let Some(message) = import_failure {
            let others = std::mem::take(&mut self.findings);
            self.findings = rules::with_import_failure(others, message, policy);
        }
    }

    /// The file name.
    pub fn file(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the file.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Where its bytes are, if it can be read.
    pub fn breakdown(&self) -> Option<&Breakdown> {
        self.readable.as_ref().map(|readable| &readable.breakdown)
    }

    /// The SHA-256 of the file.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// What is wrong, the worst first.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The table that a person reads; everything in it with `verbose`.
    pub fn render(&self, verbose: bool) -> String {
        let mut text = format!("wheel        {}\n", self.file());
        match &self.readable {
            Some(readable @ Readable { tags, glibc_floor, breakdown, .. }) => {
                let _ = writeln!(text, "tags         {}", tags.join(", "));
                let installed = human_size(breakdown.installed_bytes);
                let _ = writeln!(text, "size         {}, {installed} installed", human_size(self.size_bytes));
                let _ = writeln!(text, "glibc floor  {}", glibc_floor.as_deref().unwrap_or("none"));
                text += &readable.render_gpu_code();
                if verbose {
                    text += &render_breakdown(breakdown);
                }
            }
            None => {
                let _ = writeln!(text, "size         {}", human_size(self.size_bytes));
            }
        }
        let _ = writeln!(text, "findings     {}", Counts::of(&self.findings).describe());
        text + &findings::render(&self.findings, verbose)
    }

    /// The object for machines.
    pub fn to_json(&self) -> Value {
        let readable = self.readable.as_ref();
        json!({
            "file": self.file(),
            "path": self.path,
            "sha256": self.sha256,
            "size_bytes": self.size_bytes,
            "tags": readable.map_or(&[][..], |readable| &readable.tags),
            "glibc_floor": readable.and_then(|readable| readable.glibc_floor.as_deref()),
            "cuda_toolkits": readable.map_or(&[][..], |readable| &readable.cuda_toolkits),
            "sizes": readable.map(|readable| breakdown_to_json(&readable.breakdown)),
            "findings": findings::to_json(&self.findings),
        })
    }
}

impl Readable {
    /// A line for wheels with GPU code.
    fn render_gpu_code(&self) -> String {
        if self.breakdown.architectures.is_empty() {
            return String::new();
        }
        let names: Vec<&str> = self.breakdown.architectures.iter().map(|code| code.name.as_str()).collect();
        let toolkits = match &self.cuda_toolkits[..] {
            [] => String::new(),
            toolkits => format!(", by CUDA {}", toolkits.join(", ")),
        };
        format!("GPU code     {}{toolkits}\n", names.join(", "))
    }
}

fn render_breakdown(breakdown: &Breakdown) -> String {
    let mut text = String::new();
    for file in breakdown.files.iter().take(LISTED_SIZES) {
        let sizes = format!("{} of {}", human_size(file.compressed_size_bytes), human_size(file.size_bytes));
        let _ = writeln!(text, "  file       {sizes}  {}", findings::printable(&file.path));
    }
    for section in breakdown.sections.iter().take(LISTED_SIZES) {
        let _ =
            writeln!(text, "  section    {}  {}", human_size(section.size_bytes), findings::printable(&section.name));
    }
    for code in &breakdown.architectures {
        let images = if code.images == 1 { "image" } else { "images" };
        let _ =
            writeln!(text, "  GPU code   {}  {} in {} {images}", human_size(code.size_bytes), code.name, code.images);
    }
    if breakdown.strippable_bytes > 0 {
        let _ = writeln!(text, "  strip      takes out {}", human_size(breakdown.strippable_bytes));
    }
    text
}

fn breakdown_to_json(breakdown: &Breakdown) -> Value {
    let files = breakdown.files.iter().map(|file| {
        json!({
            "path": file.path,
            "size_bytes": file.size_bytes,
            "compressed_size_bytes": file.compressed_size_bytes,
        })
    });
    let sections =
        breakdown.sections.iter().map(|section| json!({ "name": section.name, "size_bytes": section.size_bytes }));
    let architectures = breakdown
        .architectures
        .iter()
        .map(|code| json!({ "name": code.name, "images": code.images, "size_bytes": code.size_bytes }));
    json!({
        "installed_bytes": breakdown.installed_bytes,
        "strippable_bytes": breakdown.strippable_bytes,
        "linking_code_bytes": breakdown.linking_code_bytes,
        "architectures": architectures.collect::<Vec<_>>(),
        "files": files.collect::<Vec<_>>(),
        "sections": sections.collect::<Vec<_>>(),
    })
}

/// The policy of `[tool.cuwheel.check]`.
pub fn policy(settings: &CheckSettings) -> Policy {
    Policy::default().with(settings.deny.clone(), settings.allow.clone()).with_budget(settings.budget_bytes)
}

/// Reads the name of a rule or of a group of rules; the error suggests the nearest.
pub fn parse_selector(text: &str) -> Result<RuleSelector, String> {
    findings::parse_selector(RULES, "docs/check-wheel.md", text)
}

/// The table of rules, as Markdown.
pub fn markdown() -> String {
    findings::table(RULES, "rules")
}
