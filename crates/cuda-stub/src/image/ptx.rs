//! PTX texts: version, target, and the parameters of each `.entry`.

use super::{Image, Kernel, Parameter, Refusal, Target};
use crate::error::Code;

/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`.
const UNSUPPORTED_VERSION: Code = Code(222);

/// Whether a text has what every PTX text begins with.
pub(super) fn looks_like(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| directive(&without_comments(text), ".version").is_some())
}

pub(super) fn parse(bytes: &[u8], target: Target) -> Result<Image, Refusal> {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let broken = |reason: &str| Refusal::new(Code::INVALID_PTX, format!("the image is no valid PTX: {reason}"));
    let text = std::str::from_utf8(text).map_err(|_| Refusal::new(Code::INVALID_IMAGE, "the image is no text"))?;
    let text = without_comments(text);
    let Some(version) = directive(&text, ".version") else {
        return Err(Refusal::new(Code::INVALID_IMAGE, "the image is neither a cubin nor a fat binary nor PTX"));
    };
    let architecture = directive(&text, ".target")
        .and_then(|name| name.split(',').next()?.trim_end_matches(['a', 'f']).strip_prefix("sm_")?.parse::<u32>().ok())
        .ok_or_else(|| broken("it names no .target sm_NN"))?;
    let (major, minor) = version
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse::<i32>().ok()?, minor.parse::<i32>().ok()?)))
        .ok_or_else(|| broken("its .version is no MAJOR.MINOR"))?;
    if (major, minor) > newest_version(target.driver_version) {
        let reason = format!("PTX {version} is newer than the driver, version {}", target.driver_version);
        return Err(Refusal::new(UNSUPPORTED_VERSION, reason));
    }
    if architecture > target.compute {
        let reason = format!("the PTX is for sm_{architecture} or newer, and the device is sm_{}", target.compute);
        return Err(Refusal::new(Code::NO_BINARY_FOR_GPU, reason));
    }
    let mut image = Image::default();
    for after in text.split(".entry").skip(1) {
        image.add(kernel(after).ok_or_else(|| broken("an .entry has no readable list of parameters"))?);
    }
    image.variables.extend(text.lines().filter_map(variable));
    Ok(image)
}

/// The PTX of each driver: CUDA 11.x has 7.x, of 12.x 8.x with two exceptions, 13.x has 9.x.
fn newest_version(driver: i32) -> (i32, i32) {
    let (major, minor) = (driver / 1000, driver % 1000 / 10);
    let behind = match (major, minor) {
        (12, 6..) => 1,
        _ => 0,
    };
    (major - 4, minor - behind)
}

fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        plain.push_str(&rest[..start]);
        let end = if rest[start..].starts_with("//") { "\n" } else { "*/" };
        let Some(length) = rest[start + 2..].find(end) else { return plain };
        // What ends a line still ends it; what ends a block does not stand for anything.
        let kept = if end == "\n" { 0 } else { 2 };
        rest = &rest[start + 2 + length + kept..];
    }
    plain.push_str(rest);
    plain
}

/// The word after a directive.
fn directive<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split_once(name)?.1.split_whitespace().next()
}

/// The kernel whose name and parameters come first in `text`.
fn kernel(text: &str) -> Option<Kernel> {
    let body = text.find('{').unwrap_or(text.len());
    let head = &text[..body];
    let name = head.split(|letter: char| letter == '(' || letter.is_whitespace()).find(|word| !word.is_empty())?;
    let mut parameters = Vec::new();
    if let Some((_, list)) = head.split_once('(') {
        let list = list.split(')').next()?;
        let mut offset = 0;
        for declaration in list.split(',').filter(|declaration| !declaration.trim().is_empty()) {
            let (size, alignment) = extent(declaration)?;
            let start = usize::next_multiple_of(offset, alignment);
            parameters.push(Parameter { offset: start, size });
            offset = start + size;
        }
    }
    Some(Kernel::new(name, Some(parameters)))
}

/// Size and alignment of a declaration such as `.param .align 8 .b8 name[24]`, in bytes.
fn extent(declaration: &str) -> Option<(usize, usize)> {
    let words: Vec<&str> = declaration.split_whitespace().collect();
    // The alignment that follows `.ptr` is of what is pointed to.
    let own = words.iter().position(|word| *word == ".ptr").unwrap_or(words.len());
    let element = words.iter().find_map(|word| {
        let bits = word.strip_prefix(['.']).and_then(|word| word.strip_prefix(['u', 's', 'b', 'f']))?;
        bits.parse::<usize>().ok().filter(|bits| bits.is_power_of_two() && *bits >= 8).map(|bits| bits / 8)
    })?;
    let count = declaration.split_once('[').and_then(|(_, rest)| rest.split(']').next()?.trim().parse().ok());
    let alignment = words[..own].iter().position(|word| *word == ".align");
    let alignment = alignment.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(element);
    Some((element * count.unwrap_or(1), alignment))
}

/// A variable of the module, with its size.
fn variable(line: &str) -> Option<(String, u64)> {
    let declared = line.trim().split(['=', ';']).next()?;
    let words: Vec<&str> = declared.split_whitespace().collect();
    if !words.iter().any(|word| *word == ".global" || *word == ".const")
        || line.contains(".extern")
        || line.contains(".param")
    {
        return None;
    }
    let name = words.last()?.split('[').next()?.to_owned();
    let (size, _) = extent(declared)?;
    Some((name, size as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target { compute: 90, driver_version: 13_010 };
    const TEXT: &str = "// made by hand
.version 9.1 /* the newest
*/ .target sm_90a, debug
.address_size 64
.global .align 4 .u32 counter = 5;
.const .align 8 .b8 table[64];
.visible .entry scale(
    .param .u64 .ptr .global .align 16 scale_0, // an array
    .param .f32 scale_1, .param .align 8 .b8 scale_2[24],
    .param .u8 scale_3
) .maxntid 128, 1, 1
{ ret; }
.entry nothing() { ret; }
.entry bare { ret; }
";

    #[test]
    fn entries_have_the_layout_that_their_parameters_declare() {
        let image = parse(TEXT.as_bytes(), TARGET).unwrap();
        let layout = |name: &str| {
            let parameters = image.kernel(name).unwrap().parameters.unwrap();
            parameters.iter().map(|parameter| (parameter.offset, parameter.size)).collect::<Vec<_>>()
        };
        assert_eq!(layout("scale"), [(0, 8), (8, 4), (16, 24), (40, 1)]);
        assert_eq!(layout("nothing"), []);
        assert_eq!(layout("bare"), []);
        assert_eq!(image.variables.into_iter().collect::<Vec<_>>(), [("counter".into(), 4), ("table".into(), 64)]);
    }

    #[test]
    fn what_does_not_suit_is_refused_with_the_reason() {
        let with = |from: &str, to: &str| parse(TEXT.replace(from, to).as_bytes(), TARGET).unwrap_err();
        let cases = [
            (with("9.1", "9.2"), 222, "PTX 9.2 is newer than the driver, version 13010"),
            (with("sm_90a", "sm_100"), 209, "the PTX is for sm_100 or newer, and the device is sm_90"),
            (with("sm_90a", "turing"), 218, "the image is no valid PTX: it names no .target sm_NN"),
            (with(".version", ".edition"), 200, "the image is neither a cubin nor a fat binary nor PTX"),
            (
                with(".param .u8", ".param .v"),
                218,
                "the image is no valid PTX: an .entry has no readable list of parameters",
            ),
        ];
        for (refusal, code, reason) in cases {
            assert_eq!((refusal.code.0, refusal.reason.as_str()), (code, reason));
        }
        for (driver, version) in
            [(12_020, (8, 2)), (12_050, (8, 5)), (12_060, (8, 5)), (12_090, (8, 8)), (13_000, (9, 0))]
        {
            assert_eq!(newest_version(driver), version);
        }
    }
}
