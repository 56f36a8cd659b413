//! Images of device code: cubin, fat binary or PTX, told apart by content, and what is inside.
//!
//! Nothing is compiled, and the driver is not asked. It reads an image as far as its own headers say: that this is not
//! beyond its end is checked here.

use std::fmt;
use std::sync::Arc;

use object::Endianness;
use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _, SectionHeader as _};
use thiserror::Error;

/// What an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// Machine code of one architecture, an ELF file.
    Cubin,
    /// Several cubins and PTX texts, of which the driver takes the one that suits the device.
    Fatbin,
    /// Text, which the driver compiles for the device.
    Ptx,
}

impl ImageKind {
    /// The name in messages: `cubin`, `fatbin` or `PTX`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubin => "cubin",
            Self::Fatbin => "fatbin",
            Self::Ptx => "PTX",
        }
    }
}

/// Code in an image, by what it is for: an architecture such as 90, or `90a`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// Machine code, for devices of this major version and no older minor version.
    Binary(String),
    /// PTX, for devices of this compute capability and newer.
    Ptx(String),
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binary(architecture) => write!(formatter, "sm_{architecture}"),
            Self::Ptx(architecture) => write!(formatter, "compute_{architecture} (PTX)"),
        }
    }
}

/// Why bytes are no image.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// They are something else.
    #[error("this is no cubin, fatbin or PTX: it looks like {looks_like}; {remedy}")]
    Other {
        /// What they look like.
        looks_like: String,
        /// Where an image is to be had from.
        remedy: &'static str,
    },
    /// They begin like an image, and are not a whole one.
    #[error("the {} cannot be read: {reason}; make it again, or look at it with cuobjdump", kind.name())]
    Broken {
        /// What they begin like.
        kind: ImageKind,
        /// What is wrong.
        reason: String,
    },
}

const FATBIN_MAGIC: [u8; 4] = 0xBA55_ED50_u32.to_le_bytes();
const FATBIN_WRAPPER_MAGIC: [u8; 4] = 0x4662_43B1_u32.to_le_bytes();
const ELF_MAGIC: [u8; 4] = *b"\x7fELF";
/// `EM_CUDA`.
const MACHINE: u16 = 190;
/// Since this version of the ABI, the architecture is in the second byte of the flags.
const ABI_WITH_WIDE_FLAGS: u8 = 8;
const COMPILE: &str = "compile with `nvcc -cubin`, `-fatbin` or `-ptx`";

/// An image of device code.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Image {
    /// PTX ends in a zero, which the driver needs.
    bytes: Arc<[u8]>,
    kind: ImageKind,
}

impl Image {
    /// Takes the bytes of a file of one of the three kinds.
    pub fn new(bytes: &[u8]) -> Result<Self, ImageError> {
        let kind = if bytes.starts_with(&ELF_MAGIC) {
            check_cubin(bytes)?;
            ImageKind::Cubin
        } else if bytes.starts_with(&FATBIN_MAGIC) {
            check_fatbin(bytes)?;
            ImageKind::Fatbin
        } else if ptx_text(bytes).is_some_and(|text| directive(&without_comments(text), ".version").is_some()) {
            let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            return Ok(Self { bytes: [bytes, &[0]].concat().into(), kind: ImageKind::Ptx });
        } else {
            return Err(other(bytes));
        };
        Ok(Self { bytes: bytes.into(), kind })
    }

    /// What the image is.
    pub fn kind(&self) -> ImageKind {
        self.kind
    }

    /// The bytes; of PTX without the zero behind it.
    pub fn bytes(&self) -> &[u8] {
        match self.kind {
            ImageKind::Ptx => &self.bytes[..self.bytes.len() - 1],
            _ => &self.bytes,
        }
    }

    /// The bytes as the driver takes them.
    pub(super) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// The code inside, in its order, as far as the headers tell.
    pub fn codes(&self) -> Vec<Code> {
        match self.kind {
            ImageKind::Cubin => cubin_architecture(&self.bytes).into_iter().map(Code::Binary).collect(),
            ImageKind::Fatbin => {
                fatbin_entries(&self.bytes).unwrap_or_default().into_iter().map(|(code, _)| code).collect()
            }
            ImageKind::Ptx => ptx_text(&self.bytes)
                .and_then(|text| Some(directive(&without_comments(text), ".target")?.split(',').next()?.to_owned()))
                .and_then(|target| Some(Code::Ptx(target.strip_prefix("sm_")?.to_owned())))
                .into_iter()
                .collect(),
        }
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Image({}, {} bytes)", self.kind.name(), self.bytes.len())
    }
}

fn check_cubin(bytes: &[u8]) -> Result<(), ImageError> {
    let broken = |reason: String| ImageError::Broken { kind: ImageKind::Cubin, reason };
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(|error| broken(error.to_string()))?;
    let machine = file.elf_header().e_machine(file.endian());
    if machine.0 != MACHINE {
        let looks_like = format!("an ELF file for processors (machine {})", machine.0);
        let remedy = "take the device code out of it with `cuobjdump -xelf all`, or compile with `nvcc -cubin`";
        return Err(ImageError::Other { looks_like, remedy });
    }
    for section in file.elf_section_table().iter() {
        section.data(file.endian(), bytes).map_err(|error| broken(error.to_string()))?;
    }
    for segment in file.elf_program_headers() {
        let outside = |()| broken("a segment lies outside of the file".to_owned());
        segment.data(file.endian(), bytes).map_err(outside)?;
    }
    Ok(())
}

/// The entries fit into the image, and the cubins that are not compressed into their entries.
fn check_fatbin(bytes: &[u8]) -> Result<(), ImageError> {
    let broken = |reason: String| ImageError::Broken { kind: ImageKind::Fatbin, reason };
    let entries = fatbin_entries(bytes).ok_or_else(|| broken("it ends before it should".to_owned()))?;
    for (code, body) in entries.iter().filter(|(_, body)| body.starts_with(&ELF_MAGIC)) {
        check_cubin(body).map_err(|error| broken(format!("its code for {code}: {error}")))?;
    }
    Ok(())
}

fn cubin_architecture(bytes: &[u8]) -> Option<String> {
    let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
    let header = file.elf_header();
    let flags = header.e_flags(file.endian()).0;
    let is_wide = header.e_ident().abi_version >= ABI_WITH_WIDE_FLAGS;
    Some((if is_wide { flags >> 8 } else { flags } & 0xff).to_string())
}

/// What the entries are for, and what they hold; `None` when one of them does not fit.
fn fatbin_entries(bytes: &[u8]) -> Option<Vec<(Code, &[u8])>> {
    const PTX: u16 = 1;
    const CUBIN: u16 = 2;
    let half = |bytes: &[u8], at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let word = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long =
        |bytes: &[u8], at: usize| usize::try_from(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?)).ok();
    let own = usize::from(half(bytes, 6)?);
    let mut rest = bytes.get(own..own.checked_add(long(bytes, 8)?)?)?;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let header = usize::try_from(word(rest, 4)?).ok()?;
        let architecture = word(rest, 28)?.to_string();
        // An entry without a length would never end.
        let length = header.checked_add(long(rest, 8)?).filter(|length| *length > 0)?;
        let body = rest.get(header..length)?;
        match half(rest, 0)? {
            PTX => found.push((Code::Ptx(architecture), body)),
            CUBIN => found.push((Code::Binary(architecture), body)),
            // Other kinds, such as code for link time, cannot be loaded.
            _ => {}
        }
        rest = rest.get(length..)?;
    }
    Some(found)
}

/// The text before the first zero.
fn ptx_text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes.split(|byte| *byte == 0).next()?).ok()
}

fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        plain.push_str(&rest[..start]);
        plain.push(' ');
        let (end, skipped) = if rest[start..].starts_with("//") { ("\n", 0) } else { ("*/", 2) };
        let Some(length) = rest[start + 2..].find(end) else { return plain };
        rest = &rest[start + 2 + length + skipped..];
    }
    plain.push_str(rest);
    plain
}

/// The word after a directive.
fn directive<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut words = text.split_whitespace().skip_while(|word| *word != name);
    words.next()?;
    words.next()
}

/// What bytes look like that are no image.
fn other(bytes: &[u8]) -> ImageError {
    const SIGNATURES: [(&[u8], &str, &str); 7] = [
        (&FATBIN_WRAPPER_MAGIC, "the descriptor of a fatbin that is elsewhere in memory", COMPILE),
        (b"BC\xc0\xde", "LLVM bitcode", COMPILE),
        (b"\xed\x43\x4e\x7f", "code for optimisation at link time (LTO IR)", "link it with nvJitLink first"),
        (b"!<arch>\n", "an archive of objects", "take the device code out of it with `cuobjdump -xelf all`"),
        (b"PK\x03\x04", "a ZIP archive", "unpack it first"),
        (b"\x1f\x8b", "a gzip file", "unpack it first"),
        (b"MZ", "a Windows executable", COMPILE),
    ];
    if let Some((_, looks_like, remedy)) = SIGNATURES.iter().find(|(magic, ..)| bytes.starts_with(magic)) {
        return ImageError::Other { looks_like: (*looks_like).to_owned(), remedy };
    }
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let (looks_like, remedy) = if bytes.is_empty() {
        ("nothing: there are no bytes".to_owned(), COMPILE)
    } else if text.contains("__global__") || text.contains("#include") {
        ("CUDA C++ source".to_owned(), COMPILE)
    } else if text.contains("target triple") {
        ("LLVM assembly".to_owned(), COMPILE)
    } else if !text.is_empty() {
        ("text without the directive .version".to_owned(), COMPILE)
    } else {
        let first: Vec<String> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        (format!("data that begins with {}", first.join(" ")), COMPILE)
    };
    ImageError::Other { looks_like, remedy }
}
