//! From a project's settings to the files of its CI systems: pure, so that `ci render`, `ci check` and `new` agree.
//!
//! Nothing is written here: see [`crate::commands::ci`].

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::matrix::{self, Matrix};
use super::pins::{ACTIONS, SCCACHE};
use super::settings::{CiSettings, Provider, PullRequests, label};
use crate::cargo_manifest::Abi3;
use crate::cuda::PACKAGED_SINCE;
use crate::error::Result;
use crate::files;
use crate::project::Project;
use crate::settings::TestGpuSettings;
use crate::templates::Template;

/// Whether the native module is built for the limited API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limited {
    /// It is not.
    No,
    /// It is, and can be built without.
    Optional,
    /// It cannot be built without.
    Always,
}

/// What workflows are made from.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The name of the distribution.
    pub name: String,
    /// The oldest Python.
    pub python_floor: Option<(u8, u8)>,
    /// Its limited API.
    pub limited: Limited,
    /// The Rust toolchain to start with, such as `1.95`.
    pub rust: String,
    /// `[tool.cuwheel.ci]`.
    pub settings: CiSettings,
    /// Seconds that a run of the GPU tests may take.
    pub gpu_timeout_s: u64,
    /// The major versions of CUDA that wheels are for, where there are several kinds of wheels.
    pub cuda_majors: Vec<u32>,
}

impl Subject {
    /// Of a project.
    pub fn of(project: &Project) -> Self {
        let limited = match project.abi3 {
            Abi3::No => Limited::No,
            Abi3::ByFeature { .. } => Limited::Optional,
            Abi3::Always { .. } => Limited::Always,
        };
        let TestGpuSettings { total_timeout_s, .. } = project.settings.test_gpu;
        Self {
            name: project.name.clone(),
            python_floor: project.python_floor,
            limited,
            rust: RUST.to_owned(),
            settings: project.settings.ci.clone(),
            gpu_timeout_s: total_timeout_s,
            cuda_majors: project.settings.cuda.majors.clone(),
        }
    }
}

/// The oldest Rust that compiles the toolkit.
pub const RUST: &str = env!("CARGO_PKG_RUST_VERSION");

/// A file of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Relative to the project.
    pub path: &'static str,
    /// What it holds.
    pub content: String,
    /// Whether it is only a start, which its user edits.
    pub is_users: bool,
    /// Whether it is a program.
    pub is_executable: bool,
}

/// What can be rendered: the provider, the template, and where it goes.
const FILES: &[(Option<Provider>, &str, &str)] = &[
    (None, "ci/matrix.yml", matrix::PATH),
    (Some(Provider::GitHub), "ci/github/copy-pr-bot.yaml", ".github/copy-pr-bot.yaml"),
    (Some(Provider::GitHub), "ci/github/actions/setup/action.yml", ".github/actions/setup/action.yml"),
    (Some(Provider::GitHub), "ci/github/build.yml", ".github/workflows/build.yml"),
    (Some(Provider::GitHub), "ci/github/ci.yml", ".github/workflows/ci.yml"),
    (Some(Provider::GitHub), "ci/github/test-gpu.yml", ".github/workflows/test-gpu.yml"),
    (Some(Provider::GitLab), "ci/gitlab-ci.yml", ".gitlab-ci.yml"),
    (Some(Provider::Slurm), "ci/slurm.sh", SLURM),
];

const SLURM: &str = "ci/test-gpu.slurm.sh";

/// Every path that can be rendered to.
pub fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(_, _, path)| *path)
}

/// The files of a project. `matrix` is the text of its `ci/matrix.yml`, where it has one.
pub fn files(subject: &Subject, matrix: Option<&str>) -> Result<Vec<File>> {
    let has_gpu = !subject.settings.gpu_runner.is_empty();
    let matrix = match matrix {
        Some(text) => Matrix::parse(text, has_gpu)?,
        None => Matrix::of(subject),
    };
    let settings = &subject.settings;
    let mut rendered = Vec::new();
    for (provider, template, path) in FILES {
        let is_wanted = provider.is_none_or(|provider| settings.providers.contains(&provider))
            && (has_gpu || !path.contains("test-gpu"))
            && (settings.pull_requests == PullRequests::CopyPrBot || !path.contains("copy-pr-bot"));
        if !is_wanted {
            continue;
        }
        let is_users = *path == matrix::PATH;
        let text = Template::named(template).render(&values(subject, &matrix, *provider)?)?;
        let content = if is_users { text } else { with_digest(&text) };
        rendered.push(File { path, content, is_users, is_executable: *path == SLURM });
    }
    Ok(rendered)
}

/// What the templates name.
fn values(subject: &Subject, matrix: &Matrix, provider: Option<Provider>) -> Result<Value> {
    let settings = &subject.settings;
    let gpu_minutes = subject.gpu_timeout_s.div_ceil(60) + 15;
    // GitHub reads the rows when it runs; what else is made, is made of them.
    let sources = match provider {
        Some(_) => format!(" and from {}", matrix::PATH),
        None => String::new(),
    };
    let mut values = json!({
        "command": settings.command,
        "name": subject.name,
        "branch": settings.branch,
        "is_copied": settings.pull_requests == PullRequests::CopyPrBot,
        "checks": settings.checks,
        "has_gpu": !settings.gpu_runner.is_empty(),
        "gpu_runner": settings.gpu_runner,
        "gpu_label": label(&settings.gpu_runner, |field| format!("${{{{ matrix.{field} }}}}")),
        "gpu_minutes": gpu_minutes,
        "gpu_timeout_s": subject.gpu_timeout_s,
        "gpu_count": matrix.gpu.iter().map(|row| row.count).max().unwrap_or(1),
        "container": settings.container,
        "container_options": settings.container_options,
        "publish": settings.publish,
        "environment": settings.environment,
        "slurm_path": SLURM,
        "sources": sources,
        "old_majors": subject.cuda_majors.iter().filter(|major| **major < PACKAGED_SINCE).collect::<Vec<_>>(),
        "sccache": SCCACHE,
        "actions": ACTIONS.iter().map(|pin| (pin.key.to_owned(), json!(pin.uses()))).collect::<serde_json::Map<_, _>>(),
        "matrix": rows(settings, matrix)?,
    });
    for (key, template) in
        [("head", "ci/head.txt"), ("junit", "ci/snippets/junit.sh"), ("toolkits", "ci/snippets/toolkits.sh")]
    {
        values[key] = json!(Template::named(template).render(&values)?.trim_end());
    }
    Ok(values)
}

/// The rows, with what systems that do not read the file have to be told of each.
fn rows(settings: &CiSettings, matrix: &Matrix) -> Result<Value> {
    let mut rows = serde_json::to_value(matrix)?;
    for (row, build) in rows["build"].as_array_mut().into_iter().flatten().zip(&matrix.build) {
        row["bundles"] = json!(matrix.bundles(build).join(" "));
    }
    for (row, test) in rows["test"].as_array_mut().into_iter().flatten().zip(&matrix.test) {
        row["wheel"] = json!(matrix.wheel_for(&test.arch, &test.python));
    }
    for row in rows["gpu"].as_array_mut().into_iter().flatten() {
        let field = |name: &str| row[name].as_str().map_or_else(|| row[name].to_string(), str::to_owned);
        row["label"] = json!(label(&settings.gpu_runner, field));
    }
    Ok(rows)
}

const DIGEST: &str = "# Digest: ";

/// The text with a line that says what the rest of it hashes to, after the remark at its top.
fn with_digest(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let head = lines.iter().take_while(|line| line.starts_with('#')).count();
    let digest = format!("{DIGEST}{}", digest(text));
    lines.insert(head, &digest);
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "{line}");
        text
    })
}

fn digest(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(DIGEST)).collect();
    files::key(lines.join("\n").as_bytes())[..16].to_owned()
}

/// Whether a text is as some version of the toolkit rendered it, so that nothing of a person is in it.
pub fn is_as_rendered(text: &str) -> bool {
    text.lines().find_map(|line| line.strip_prefix(DIGEST)).is_some_and(|noted| noted.trim() == digest(text))
}
