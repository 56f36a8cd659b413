//! The wheel for one major version of CUDA: the version in its name, and what it requires in its metadata.
//!
//! Not for what is in the wheel: only the names and METADATA change.

use cuwheel_inspect::rules::ExaminedWheel;

use crate::error::Result;
use crate::inspection;
use crate::wheel_headers::Head;
use crate::wheel_writer::{self, Writer};

/// The wheel `archive`, which is `examined`, as `NAME-cuMAJOR`, with more requirements. Its new file name comes first.
pub fn label(
    (examined, archive): (&ExaminedWheel, &[u8]),
    major: u32,
    requirements: &[String],
) -> Result<(String, Vec<u8>)> {
    let wheel = examined.wheel();
    let suffix = format!("cu{major}");
    let distribution = format!("{}_{suffix}", wheel.name().distribution());
    let old = wheel.dist_info();
    let new = format!("{distribution}-{}.dist-info", wheel.name().version());
    let mut source = wheel_writer::open(archive)?;
    let mut writer = Writer::default();
    let record = format!("{old}/RECORD");
    for entry in wheel.entries().iter().filter(|entry| entry.path() != record) {
        let Some(file) = entry.path().strip_prefix(old).and_then(|rest| rest.strip_prefix('/')) else {
            writer.copy_named(&mut source, entry.path())?;
            continue;
        };
        let mut content = wheel.read_entry(entry).map_err(inspection::unreadable)?;
        if file == "METADATA" {
            let text = String::from_utf8(content)?;
            let mut head = Head::of(&text)?;
            head.set("Name", &format!("{}-{suffix}", wheel.metadata().name()));
            for requirement in requirements {
                head.add("Requires-Dist", requirement);
            }
            content = head.finish().into_bytes();
        }
        writer.add(&format!("{new}/{file}"), &content, entry.unix_mode())?;
    }
    let (_, rest) = wheel.file_name().split_once('-').unwrap_or_default();
    Ok((format!("{distribution}-{rest}"), writer.finish(&format!("{new}/RECORD"))?))
}

#[cfg(test)]
mod tests {
    use cuwheel_inspect::rules::{self, Policy};
    use cuwheel_inspect::testing::WheelBuilder;

    use super::*;

    #[test]
    fn names_and_requirements_change_and_nothing_else() {
        let file = "my_ext-1.0-py3-none-any.whl";
        let metadata = "Metadata-Version: 2.4\nName: My-Ext\nVersion: 1.0\nRequires-Dist: numpy\n\nName: of the text\n";
        let bytes = WheelBuilder::new(file).metadata(metadata).file("my_ext/__init__.py", b"x = 1").build();
        let examined = ExaminedWheel::from_bytes(file, bytes.clone()).unwrap();
        let requirements = ["nvidia-cuda-runtime-cu12".to_owned()];
        let (name, bytes) = label((&examined, &bytes), 12, &requirements).unwrap();
        assert_eq!(name, "my_ext_cu12-1.0-py3-none-any.whl");
        let labelled = ExaminedWheel::from_bytes(&name, bytes).unwrap();
        let wheel = labelled.wheel();
        assert_eq!(wheel.metadata().name(), "My-Ext-cu12");
        assert_eq!(wheel.metadata().requires_dist().collect::<Vec<_>>(), ["numpy", "nvidia-cuda-runtime-cu12"]);
        assert_eq!(wheel.dist_info(), "my_ext_cu12-1.0.dist-info");
        assert_eq!(wheel.read("my_ext/__init__.py").unwrap(), b"x = 1");
        assert!(wheel.verify_record().is_empty());
        let findings: Vec<String> =
            rules::check(&labelled, &Policy::default()).iter().map(ToString::to_string).collect();
        assert_eq!(findings, Vec::<String>::new());
    }
}
