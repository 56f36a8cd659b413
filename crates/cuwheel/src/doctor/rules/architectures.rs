//! GPU architectures that build files ask for (PK-24, PK-26, PK-27, PK-29).
//!
//! Lists that a program computes are not followed; those under a condition on a version are taken to be right.

use super::super::cmake::Command;
use super::super::facts::ProjectFacts;
use super::super::native::Kind;
use super::super::python::PythonFile;
use super::super::{Diagnosis, catalog};
use super::{at, is_versioned};

/// The oldest architecture that CUDA 13 compiles for.
const OLDEST: u32 = 75;
/// Machine code of this architecture and newer ones is for GPUs that are being sold.
const NEWEST_MAJOR: u32 = 12;

/// An architecture that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Declared {
    /// Such as 90.
    pub(in super::super) number: u32,
    /// Such as `90a`.
    pub(in super::super) name: String,
    pub(in super::super) path: String,
    pub(in super::super) line: usize,
    has_sass: bool,
    has_ptx: bool,
    is_conditional: bool,
}

/// Everything that build files ask for by name, without a condition on a version.
pub(in super::super) fn declared(facts: &ProjectFacts) -> Vec<Declared> {
    all(facts).into_iter().filter(|declared| !declared.is_conditional).collect()
}

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    let all = all(facts);
    let mut reported: Vec<(&str, usize)> = Vec::new();
    for declared in all.iter().filter(|declared| !declared.is_conditional && declared.number < OLDEST) {
        if reported.contains(&(declared.path.as_str(), declared.line)) {
            continue;
        }
        reported.push((&declared.path, declared.line));
        let here = all
            .iter()
            .filter(|other| other.path == declared.path && other.line == declared.line && other.number < OLDEST);
        let mut names: Vec<&str> = here.map(|other| other.name.as_str()).collect();
        names.dedup();
        let message =
            format!("{} {} older than sm_{OLDEST}", names.join(", "), if names.len() == 1 { "is" } else { "are" });
        diagnosis.add(at(&catalog::STALE_ARCHITECTURE, &declared.path, declared.line, message));
    }
    without_ptx(facts, &all, diagnosis);
    of_machine(facts, diagnosis);
}

fn without_ptx(facts: &ProjectFacts, all: &[Declared], diagnosis: &mut Diagnosis) {
    if all.iter().any(|declared| declared.has_ptx) || makes_ptx(facts) {
        return;
    }
    let Some(newest) = all.iter().filter(|declared| declared.has_sass).max_by_key(|declared| declared.number) else {
        return;
    };
    let message = if newest.number / 10 >= NEWEST_MAJOR {
        format!("the newest architecture is {}, and there is no PTX", newest.name)
    } else {
        format!(
            "the newest architecture is {}, and there is no PTX: GPUs from {}.0 on run nothing of it",
            newest.name,
            newest.number / 10 + 1
        )
    };
    diagnosis.add(at(&catalog::NO_PTX, &newest.path, newest.line, message));
}

/// Whether a script makes PTX of an architecture that it computes.
fn makes_ptx(facts: &ProjectFacts) -> bool {
    let makes = |text: &str| text.contains("code=compute_") || text.contains("+PTX") || text.contains("-virtual");
    facts.build_scripts().any(|script| script.strings.iter().any(|text| makes(&text.text)))
        || facts
            .cmake
            .iter()
            .flat_map(|file| &file.commands)
            .any(|command| command.arguments.iter().any(|(text, _)| makes(text)))
}

fn all(facts: &ProjectFacts) -> Vec<Declared> {
    let mut found = Vec::new();
    for script in facts.build_scripts() {
        for text in &script.strings {
            flags(&text.text, &script.path, text.line, is_versioned(&text.when), &mut found);
        }
        let lists = script.assigns.iter().filter(|assign| {
            assign.target.contains("TORCH_CUDA_ARCH_LIST") || assign.key.as_deref() == Some("TORCH_CUDA_ARCH_LIST")
        });
        for assign in lists {
            for text in &assign.texts {
                torch_list(text, &script.path, assign.line, is_versioned(&assign.when), &mut found);
            }
        }
        let defaults =
            script.calls.iter().filter(|call| call.texts.first().is_some_and(|text| text == "TORCH_CUDA_ARCH_LIST"));
        for call in defaults {
            for text in &call.texts[1..] {
                torch_list(text, &script.path, call.line, is_versioned(&call.when), &mut found);
            }
        }
    }
    for file in &facts.cmake {
        file.commands.iter().for_each(|command| cmake_command(command, &file.path, &mut found));
    }
    for file in &facts.meson {
        file.texts.iter().for_each(|(text, line)| flags(text, &file.path, *line, false, &mut found));
    }
    for file in facts.native.iter().filter(|file| file.kind == Kind::Rust && file.path.ends_with("build.rs")) {
        file.texts.iter().for_each(|(text, line)| flags(text, &file.path, *line, false, &mut found));
    }
    in_pyproject(facts, &mut found);
    found
}

fn in_pyproject(facts: &ProjectFacts, found: &mut Vec<Declared>) {
    let Some(file) = &facts.pyproject else { return };
    for key in ["tool.scikit-build.cmake.define.CMAKE_CUDA_ARCHITECTURES", "tool.cuwheel.check.architectures"] {
        for (text, line) in file.texts_of(key) {
            cmake_list(&text, file.path(), line, false, found);
        }
    }
    for (text, line) in file.texts_of("tool.scikit-build.cmake.args") {
        if let Some(list) = text.strip_prefix("-DCMAKE_CUDA_ARCHITECTURES=") {
            cmake_list(list, file.path(), line, false, found);
        }
    }
}

fn cmake_command(command: &Command, path: &str, found: &mut Vec<Declared>) {
    let is_conditional = is_versioned(&command.when);
    let texts: Vec<&str> = command.arguments.iter().map(|(text, _)| text.as_str()).collect();
    let lists = |at: usize, found: &mut Vec<Declared>| {
        for (text, line) in command.arguments.iter().skip(at) {
            if text.starts_with(|first: char| first.is_ascii_digit()) {
                cmake_list(text, path, *line, is_conditional, found);
            }
        }
    };
    match command.name.as_str() {
        "set"
            if ["CMAKE_CUDA_ARCHITECTURES", "CUDA_ARCHITECTURES", "CUDA_ARCHS"]
                .contains(texts.first().unwrap_or(&"")) =>
        {
            lists(1, found);
        }
        "set" if texts.first() == Some(&"TORCH_CUDA_ARCH_LIST") => {
            for (text, line) in &command.arguments[1..] {
                torch_list(text, path, *line, is_conditional, found);
            }
        }
        "set_target_properties" | "set_property" => {
            if let Some(position) = texts.iter().position(|text| *text == "CUDA_ARCHITECTURES") {
                lists(position + 1, found);
            }
        }
        _ => command.arguments.iter().for_each(|(text, line)| flags(text, path, *line, is_conditional, found)),
    }
}

/// Lists of `CMake`: `80` is machine code and PTX, `80-real` and `80-virtual` one of them. Also `90a` and `90+PTX`.
fn cmake_list(list: &str, path: &str, line: usize, is_conditional: bool, found: &mut Vec<Declared>) {
    for entry in list.split([';', ',', ' ']).filter(|entry| !entry.is_empty()) {
        let (name, kind) = entry.split_once(['-', '+']).unwrap_or((entry, ""));
        let name = name.trim_start_matches("sm_").trim_start_matches("compute_");
        if let Some(number) = number_of(name) {
            let (has_sass, has_ptx) = (kind != "virtual" && !entry.starts_with("compute_"), kind != "real");
            let (name, path) = (name.to_owned(), path.to_owned());
            found.push(Declared { number, name, path, line, has_sass, has_ptx, is_conditional });
        }
    }
}

/// torch's lists: `7.0;8.0+PTX`, and names of generations, which are left alone.
fn torch_list(list: &str, path: &str, line: usize, is_conditional: bool, found: &mut Vec<Declared>) {
    for entry in list.split([';', ' ']).filter(|entry| entry.contains('.')) {
        let (name, has_ptx) = entry.strip_suffix("+PTX").map_or((entry, false), |name| (name, true));
        let digits = name.replace('.', "");
        if let Some(number) = number_of(&digits) {
            let (name, path) = (name.to_owned(), path.to_owned());
            found.push(Declared { number, name, path, line, has_sass: true, has_ptx, is_conditional });
        }
    }
}

/// nvcc's options: `arch=compute_80,code=sm_80`, `-arch=sm_90a`, `code=[sm_80,compute_80]`.
fn flags(text: &str, path: &str, line: usize, is_conditional: bool, found: &mut Vec<Declared>) {
    let is_option = ["-arch", "-gencode", "arch=", "code=", "--gpu-architecture", "--generate-code"]
        .iter()
        .any(|word| text.contains(word));
    let is_name = |text: &str, prefix: &str| text.strip_prefix(prefix).is_some_and(|rest| number_of(rest).is_some());
    if !is_option && !is_name(text, "sm_") && !is_name(text, "compute_") {
        return;
    }
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '=')) {
        let (option, name) = word.rsplit_once('=').unwrap_or(("", word));
        let (name, is_virtual) = match (name.strip_prefix("sm_"), name.strip_prefix("compute_")) {
            (Some(name), _) => (name, false),
            (_, Some(name)) => (name, true),
            _ => continue,
        };
        // `arch=compute_80` of -gencode says what is compiled from; `code=` says what is kept.
        let is_source = is_virtual && option.ends_with("arch") && text.contains("code=");
        if let Some(number) = number_of(name).filter(|_| !is_source) {
            let (name, path) = (format!("{}{name}", if is_virtual { "compute_" } else { "sm_" }), path.to_owned());
            // `-arch=sm_80` alone is short for machine code and PTX.
            let has_ptx = is_virtual || (option.ends_with("arch") && !text.contains("code="));
            found.push(Declared { number, name, path, line, has_sass: !is_virtual, has_ptx, is_conditional });
        }
    }
}

/// `90a` → 90.
fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(['a', 'f']).unwrap_or(name);
    let number: u32 = digits.parse().ok()?;
    (digits.bytes().all(|byte| byte.is_ascii_digit()) && (20..300).contains(&number)).then_some(number)
}

/// Builds that ask the machine's GPU, where none was named.
fn of_machine(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    for script in facts.build_scripts() {
        if facts.entry_scripts.contains(&script.path) {
            decided_by_machine(script, diagnosis);
        }
        // Whoever asks for `native` wants the machine's own.
        let calls = script.calls.iter().filter(|call| !call.when.iter().any(|condition| condition.contains("native")));
        for call in calls {
            let asks = ["get_device_capability", "get_device_properties", "nvmlInit"]
                .iter()
                .any(|name| call.name.ends_with(name));
            let runs = call.texts.iter().any(|text| text == "nvidia-smi" || text.starts_with("nvidia-smi "));
            if asks && (call.name.contains("cuda") || call.name.contains("nvml")) {
                let message = format!("{} asks the GPU of the machine", call.name);
                diagnosis.add(at(&catalog::ARCHITECTURE_OF_MACHINE, &script.path, call.line, message));
            } else if runs {
                diagnosis.add(at(&catalog::ARCHITECTURE_OF_MACHINE, &script.path, call.line, "nvidia-smi is run"));
            }
        }
        for text in script
            .strings
            .iter()
            .filter(|text| ["-arch=native", "-arch=all-major-native"].contains(&text.text.as_str()))
        {
            diagnosis.add(at(
                &catalog::ARCHITECTURE_OF_MACHINE,
                &script.path,
                text.line,
                format!("{} is the machine's GPU", text.text),
            ));
        }
    }
    for file in &facts.cmake {
        for command in &file.commands {
            let is_list = ["CMAKE_CUDA_ARCHITECTURES", "CUDA_ARCHITECTURES"]
                .iter()
                .any(|name| command.arguments.iter().any(|(text, _)| text == name));
            let native = command.arguments.iter().find(|(text, _)| text == "native");
            if let (true, Some((_, line))) = (is_list && command.name.starts_with("set"), native) {
                diagnosis.add(at(&catalog::ARCHITECTURE_OF_MACHINE, &file.path, *line, "native is the machine's GPU"));
            }
        }
    }
    for file in facts.native.iter().filter(|file| file.kind == Kind::Rust && file.path.ends_with("build.rs")) {
        for (_, line) in file.texts.iter().filter(|(text, _)| text == "nvidia-smi") {
            diagnosis.add(at(&catalog::ARCHITECTURE_OF_MACHINE, &file.path, *line, "nvidia-smi is run"));
        }
    }
}

/// A script that leaves the CUDA part out where `torch.cuda.is_available()` says that there is no GPU.
fn decided_by_machine(script: &PythonFile, diagnosis: &mut Diagnosis) {
    const QUESTION: &str = "cuda.is_available()";
    let decides = |when: &[String]| {
        when.iter().any(|condition| condition.contains(QUESTION))
            && !when.iter().any(|condition| condition.contains("native"))
    };
    // A flag that only says what the machine can do decides nothing.
    let is_of_build = |name: &str| {
        const PARTS: &[&str] = &["arch", "capabilit", "cpu", "cuda", "ext", "gpu", "macro", "source", "suffix"];
        let name = name.to_lowercase();
        !name.starts_with("torch.cuda") && PARTS.iter().any(|part| name.contains(part))
    };
    let asks = |calls: &[String]| calls.iter().any(|name| name.ends_with("cuda.is_available"));
    let is_decided = script
        .assigns
        .iter()
        .any(|assign| (decides(&assign.when) || asks(&assign.calls)) && is_of_build(&assign.target))
        || script.calls.iter().any(|call| decides(&call.when) && is_of_build(&call.name));
    let asked = script.calls.iter().find(|call| call.name.ends_with("cuda.is_available"));
    if let Some(call) = asked.filter(|_| is_decided) {
        let message = format!("{}() decides what is built: without a GPU, the CUDA part may be left out", call.name);
        diagnosis.add(at(&catalog::ARCHITECTURE_OF_MACHINE, &script.path, call.line, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(parse: impl Fn(&mut Vec<Declared>)) -> Vec<(u32, bool, bool)> {
        let mut found = Vec::new();
        parse(&mut found);
        found.into_iter().map(|declared| (declared.number, declared.has_sass, declared.has_ptx)).collect()
    }

    #[test]
    fn options_of_nvcc_name_machine_code_and_ptx() {
        let of = |text: &str| shown(|found| flags(text, "p", 1, false, found));
        assert_eq!(of("-gencode=arch=compute_80,code=sm_80"), [(80, true, false)]);
        assert_eq!(of("arch=compute_90,code=compute_90"), [(90, false, true)]);
        assert_eq!(of("-gencode arch=compute_80,code=[sm_80,compute_80]"), [(80, true, false), (80, false, true)]);
        assert_eq!(of("-arch=sm_90a"), [(90, true, true)]);
        assert_eq!(of("see sm_90 for more"), []);
        assert_eq!(of("arch=compute_{},code=sm_{}"), []);
    }

    #[test]
    fn lists_of_cmake_and_torch_name_machine_code_and_ptx() {
        assert_eq!(
            shown(|found| cmake_list("70-real;80;90-virtual;native", "p", 1, false, found)),
            [(70, true, false), (80, true, true), (90, false, true)]
        );
        assert_eq!(
            shown(|found| torch_list("7.0 8.6;9.0a+PTX;Ampere", "p", 1, false, found)),
            [(70, true, false), (86, true, false), (90, true, true)]
        );
        assert_eq!(
            shown(|found| cmake_list("90a,compute_90", "p", 1, false, found)),
            [(90, true, true), (90, false, true)]
        );
    }
}
