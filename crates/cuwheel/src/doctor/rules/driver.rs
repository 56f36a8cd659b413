//! How native code comes by the driver: linked, or loaded under the wrong name (PK-09, PK-13, PK-14).

use super::super::facts::ProjectFacts;
use super::super::native::Kind;
use super::super::python::Purpose;
use super::super::{Diagnosis, catalog};
use super::at;

pub(super) fn check(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    loads(facts, diagnosis);
    links_in_scripts(facts, diagnosis);
    links_in_cmake(facts, diagnosis);
    links_elsewhere(facts, diagnosis);
}

/// Whether a text is a file name of the driver's library without a number.
fn is_bare(text: &str) -> bool {
    text == "libcuda.so" || (text.ends_with("/libcuda.so") && !text.contains(' '))
}

fn loads(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    let python = facts.python.iter().filter(|file| file.is_for(Purpose::Loader)).map(|file| {
        let texts: Vec<(&str, usize)> = file.strings.iter().map(|text| (text.text.as_str(), text.line)).collect();
        (file.path.as_str(), texts)
    });
    let native = facts.native.iter().map(|file| {
        let texts: Vec<(&str, usize)> = file.libraries.iter().map(|(text, line)| (text.as_str(), *line)).collect();
        (file.path.as_str(), texts)
    });
    for (path, texts) in python.chain(native) {
        for (position, (text, line)) in texts.iter().enumerate() {
            if !is_bare(text) {
                continue;
            }
            // As a fallback, after the name with the number, it does no harm.
            let numbered = texts.iter().position(|(text, _)| text.ends_with("libcuda.so.1"));
            if numbered.is_some_and(|numbered| numbered < position) {
                continue;
            }
            let message = match numbered {
                Some(_) => format!("{text} is tried before libcuda.so.1"),
                None => format!("{text} is loaded, and libcuda.so.1 is not tried"),
            };
            diagnosis.add(at(&catalog::BARE_LIBCUDA, path, *line, message));
        }
    }
}

/// Whether a condition leaves Linux out.
fn is_elsewhere(when: &[String]) -> bool {
    when.iter().any(|condition| {
        let condition = condition.to_lowercase();
        ["win32", "windows", "darwin", "apple", "msvc"].iter().any(|word| condition.contains(word))
            && !["!=", "not ", "else"].iter().any(|word| condition.contains(word))
    })
}

fn is_flag(text: &str) -> bool {
    text.split_whitespace().any(|word| word == "-lcuda" || word == "-l:libcuda.so" || word == "-Wl,-lcuda")
}

fn links_in_scripts(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    for script in facts.build_scripts() {
        let mut lines: Vec<usize> = Vec::new();
        let flags = script.strings.iter().filter(|text| is_flag(&text.text) && !is_elsewhere(&text.when));
        lines.extend(flags.map(|text| text.line));
        for call in script.calls.iter().filter(|call| !is_elsewhere(&call.when)) {
            let by_name = call.keywords.get("libraries").is_some_and(|texts| texts.iter().any(|text| text == "cuda"));
            let receiver = call.name.rsplit_once('.').map_or("", |(receiver, _)| receiver);
            let is_list = ["libraries", "libs"].iter().any(|word| receiver.to_lowercase().ends_with(word));
            let is_added = is_list && call.texts.iter().any(|text| text == "cuda");
            if by_name || is_added {
                lines.push(call.line);
            }
        }
        for assign in script.assigns.iter().filter(|assign| !is_elsewhere(&assign.when)) {
            let is_list = ["libraries", "libs"].iter().any(|word| assign.target.to_lowercase().ends_with(word))
                || assign.key.as_deref() == Some("libraries");
            if is_list && assign.texts.iter().any(|text| text == "cuda") {
                lines.push(assign.line);
            }
        }
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            diagnosis.add(at(&catalog::LINKS_DRIVER, &script.path, line, "the extension is linked to libcuda"));
        }
    }
}

fn links_in_cmake(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    const NAMES: &[&str] =
        &["cuda", "CUDA::cuda_driver", "${CUDA_DRIVER_LIBRARY}", "${CUDA_CUDA_LIBRARY}", "-lcuda", "libcuda.so"];
    for file in &facts.cmake {
        let is_link = |name: &str| ["target_link_libraries", "link_libraries"].contains(&name);
        for command in file.commands.iter().filter(|command| is_link(&command.name) && !is_elsewhere(&command.when)) {
            let first = usize::from(command.name == "target_link_libraries");
            // A target of the project may be called cuda.
            let is_target = facts.cmake.iter().flat_map(|file| &file.commands).any(|other| {
                ["add_library", "add_custom_target"].contains(&other.name.as_str())
                    && other.arguments.first().is_some_and(|(name, _)| name == "cuda")
            });
            for (name, line) in command.arguments.iter().skip(first) {
                if NAMES.contains(&name.as_str()) && !(name == "cuda" && is_target) {
                    diagnosis.add(at(
                        &catalog::LINKS_DRIVER,
                        &file.path,
                        *line,
                        format!("{name} is the driver's library"),
                    ));
                }
            }
        }
    }
}

fn links_elsewhere(facts: &ProjectFacts, diagnosis: &mut Diagnosis) {
    for file in &facts.meson {
        for call in &file.calls {
            let texts: Vec<&str> = call.texts.iter().map(|(text, _)| text.as_str()).collect();
            let is_library = call.name == "find_library" && texts.first() == Some(&"cuda");
            // The first text is the dependency's own name, the others are its modules.
            let is_module = call.name == "dependency" && texts.first() == Some(&"cuda") && texts[1..].contains(&"cuda");
            let is_argument = call.name == "extension_module" && texts.iter().any(|text| is_flag(text));
            if is_library || is_module || is_argument {
                diagnosis.add(at(&catalog::LINKS_DRIVER, &file.path, call.line, "the driver's library is linked"));
            }
        }
    }
    for file in facts.native.iter().filter(|file| file.kind == Kind::Rust) {
        for (text, line) in &file.texts {
            let library = text.split_once("rustc-link-lib=").map(|(_, library)| library);
            if library.is_some_and(|library| ["cuda", "dylib=cuda"].contains(&library.trim())) {
                diagnosis.add(at(&catalog::LINKS_DRIVER, &file.path, *line, "the crate is linked to libcuda"));
            }
        }
        for (name, line) in file.links.iter().filter(|(name, _)| name == "cuda") {
            diagnosis.add(at(&catalog::LINKS_DRIVER, &file.path, *line, format!("#[link] names {name}")));
        }
    }
}
