//! Names, versions, requirements and the other short texts that wheels and people write.

#![no_main]

use cuwheel_inspect::digest::HashAlgorithm;
use cuwheel_inspect::elf::GlibcVersion;
use cuwheel_inspect::fatbin::Architecture;
use cuwheel_inspect::path::check_member_name;
use cuwheel_inspect::rules::{DeclaredArchitecture, RuleSelector};
use cuwheel_inspect::version::Version;
use cuwheel_inspect::wheel::{ExtensionModule, Requirement, Tag, WheelName};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(name) = text.parse::<WheelName>() {
        let again: WheelName = name.to_string().parse().expect("a name that was shown");
        assert_eq!(again.tags(), name.tags());
    }
    if let Ok(version) = text.parse::<Version>() {
        assert_eq!(version.to_string().parse::<Version>().as_ref(), Ok(&version));
    }
    if let Ok(architecture) = text.parse::<Architecture>() {
        assert_eq!(architecture.to_string().parse(), Ok(architecture));
    }
    if let Some(requirement) = Requirement::parse(text) {
        assert!(!requirement.name().is_empty());
        let _ = requirement.major_version();
    }
    drop((text.parse::<GlibcVersion>(), text.parse::<HashAlgorithm>(), text.parse::<RuleSelector>()));
    drop((text.parse::<DeclaredArchitecture>(), Tag::parse_set(text), ExtensionModule::from_path(text)));
    let _ = check_member_name(text);
});
