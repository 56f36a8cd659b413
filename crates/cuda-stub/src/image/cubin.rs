//! Cubins: ELF files with a section `.text.NAME` for each kernel, and one `.nv.info.NAME` that lists its parameters.

use std::sync::Arc;

use object::read::elf::{ElfFile64, FileHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

use super::{Image, Kernel, Parameter, Refusal, Target};
use crate::device::SHARED_BYTES_RESERVED_PER_BLOCK;
use crate::error::Code;

pub(super) const MAGIC: &[u8] = b"\x7fELF";
pub(super) const HEADER_BYTES: usize = 64;
/// `EM_CUDA`.
const MACHINE: object::elf::Machine = object::elf::Machine(190);
/// Since this version of the ABI, the architecture is in the second byte of the flags.
const ABI_WITH_WIDE_FLAGS: u8 = 8;

/// Attributes of `.nv.info`: one parameter, and registers of a function.
const KPARAM_INFO: u8 = 0x17;
const REGCOUNT: u8 = 0x2f;
/// The format of attributes that have a payload of their own.
const WITH_PAYLOAD: u8 = 4;

/// The length of the file, by its header: the tables of headers are what ptxas and nvlink write last.
pub(super) fn length(header: &[u8]) -> Option<usize> {
    let word = |at: usize| Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u64::from(u16::from_le_bytes(header.get(at..at + 2)?.try_into().ok()?)));
    let programs = word(32)?.checked_add(half(54)? * half(56)?)?;
    let sections = word(40)?.checked_add(half(58)? * half(60)?)?;
    usize::try_from(programs.max(sections).max(HEADER_BYTES as u64)).ok()
}

pub(super) fn parse(bytes: &[u8], target: Target) -> Result<Image, Refusal> {
    let broken = |error: object::Error| Refusal::new(Code::INVALID_IMAGE, format!("the cubin cannot be read: {error}"));
    let file = ElfFile64::<Endianness>::parse(bytes).map_err(broken)?;
    let header = file.elf_header();
    let endian = file.endian();
    if header.e_machine.get(endian) != MACHINE {
        return Err(Refusal::new(Code::INVALID_IMAGE, "the file is an ELF file, but not for a GPU"));
    }
    let flags = header.e_flags(endian).0;
    let wide = header.e_ident().abi_version >= ABI_WITH_WIDE_FLAGS;
    let architecture = if wide { flags >> 8 } else { flags } & 0xff;
    if !target.runs(architecture) {
        let reason = format!("the cubin is for sm_{architecture}, and the device is sm_{}", target.compute);
        return Err(Refusal::new(Code::NO_BINARY_FOR_GPU, reason));
    }
    let mut image = Image::default();
    for section in file.sections() {
        if let Some(name) = section.name().map_err(broken)?.strip_prefix(".text.") {
            let parameters = file
                .section_by_name(&format!(".nv.info.{name}"))
                .and_then(|info| Some(parameters(info.data().ok()?)))
                .unwrap_or_default();
            let mut kernel = Kernel::new(name, Some(parameters));
            if let Some(shared) = file.section_by_name(&format!(".nv.shared.{name}")) {
                let size = u32::try_from(shared.size()).unwrap_or(u32::MAX);
                let reserved = if architecture >= 90 { SHARED_BYTES_RESERVED_PER_BLOCK } else { 0 };
                kernel.shared_bytes = size.saturating_sub(reserved);
            }
            image.add(kernel);
        }
    }
    read_registers(&file, &mut image);
    let variables = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.is_definition());
    image.variables.extend(variables.filter_map(|symbol| Some((symbol.name().ok()?.to_owned(), symbol.size()))));
    Ok(image)
}

/// Attributes with a payload, in their order.
fn attributes(mut info: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        loop {
            let (head, rest) = info.split_first_chunk::<4>()?;
            let size = if head[0] == WITH_PAYLOAD { usize::from(u16::from_le_bytes([head[2], head[3]])) } else { 0 };
            let payload = rest.get(..size)?;
            info = &rest[size..];
            if size > 0 {
                return Some((head[1], payload));
            }
        }
    })
}

fn parameters(info: &[u8]) -> Vec<Parameter> {
    let mut found: Vec<Parameter> = attributes(info)
        .filter(|(attribute, payload)| *attribute == KPARAM_INFO && payload.len() == 12)
        .map(|(_, payload)| {
            // Index of the symbol, ordinal, offset, and a word whose upper 14 bits are the size.
            let offset = u16::from_le_bytes([payload[6], payload[7]]);
            let size = u32::from_le_bytes([payload[8], payload[9], payload[10], payload[11]]) >> 18;
            Parameter { offset: offset.into(), size: size as usize }
        })
        .collect();
    found.sort_by_key(|parameter| parameter.offset);
    found
}

fn read_registers(file: &ElfFile64<'_, Endianness>, image: &mut Image) {
    let Some(info) = file.section_by_name(".nv.info").and_then(|section| section.data().ok()) else { return };
    for (attribute, payload) in attributes(info) {
        let Some((symbol, count)) = payload.split_first_chunk::<4>() else { continue };
        let Some(count) = count.first_chunk::<4>().filter(|_| attribute == REGCOUNT) else { continue };
        let symbol = object::SymbolIndex(u32::from_le_bytes(*symbol) as usize);
        let name = file.symbol_by_index(symbol).ok().and_then(|symbol| Some(Arc::<str>::from(symbol.name().ok()?)));
        if let Some(kernel) = name.and_then(|name| image.kernels.get_mut(&name)) {
            kernel.registers = u32::from_le_bytes(*count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `ptxas` 13.5 writes for `(float*, float, int, struct of 24 bytes)`, shortened.
    const INFO: &[u8] = &[
        0x04, 0x66, 0x04, 0x00, 0x03, 0x00, 0x00, 0x00, // something else with a payload
        0x04, 0x17, 0x0c, 0x00, 0, 0, 0, 0, 3, 0, 0x10, 0, 0x00, 0xf0, 0x61, 0x00, //
        0x04, 0x17, 0x0c, 0x00, 0, 0, 0, 0, 2, 0, 0x0c, 0, 0x00, 0xf0, 0x11, 0x00, //
        0x03, 0x50, 0x00, 0x00, // something without
        0x04, 0x17, 0x0c, 0x00, 0, 0, 0, 0, 1, 0, 0x08, 0, 0x00, 0xf0, 0x11, 0x00, //
        0x04, 0x17, 0x0c, 0x00, 0, 0, 0, 0, 0, 0, 0x00, 0, 0x00, 0xf0, 0x21, 0x00,
    ];

    #[test]
    fn parameters_are_listed_by_offset() {
        let found: Vec<_> = parameters(INFO).iter().map(|parameter| (parameter.offset, parameter.size)).collect();
        assert_eq!(found, [(0, 8), (8, 4), (12, 4), (16, 24)]);
        assert_eq!(parameters(&INFO[..20]), []);
    }

    /// An ELF file of sections that the test names: type, `sh_info` and bytes of each.
    fn cubin(flags: u32, abi: u8, sections: &[(&str, u32, &[u8])]) -> Vec<u8> {
        let names: Vec<u8> = sections.iter().flat_map(|(name, ..)| [name.as_bytes(), &[0]].concat()).collect();
        let names = [b"\0.shstrtab\0".to_vec(), names].concat();
        let mut file = vec![0; HEADER_BYTES];
        let mut table = vec![0; 64];
        let mut name = 11;
        let header = |name: u32, kind: u32, offset: usize, size: usize| {
            let mut header = vec![0; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(offset as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
            header
        };
        for (text, kind, bytes) in sections {
            table.extend(header(name, *kind, file.len(), bytes.len()));
            file.extend_from_slice(bytes);
            name += u32::try_from(text.len()).unwrap() + 1;
        }
        table.extend(header(1, 3, file.len(), names.len()));
        file.extend(names);
        file[..16].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0x41, abi, 0, 0, 0, 0, 0, 0, 0]);
        let count = u16::try_from(sections.len() + 2).unwrap();
        let start = file.len() as u64;
        for (at, bytes) in [
            (16, &2_u16.to_le_bytes()[..]),
            (18, &190_u16.to_le_bytes()),
            (20, &1_u32.to_le_bytes()),
            (40, &start.to_le_bytes()),
            (48, &flags.to_le_bytes()),
            (52, &64_u16.to_le_bytes()),
            (58, &64_u16.to_le_bytes()),
            (60, &count.to_le_bytes()),
            (62, &(count - 1).to_le_bytes()),
        ] {
            file[at..at + bytes.len()].copy_from_slice(bytes);
        }
        [file, table].concat()
    }

    #[test]
    fn kernels_are_the_sections_of_code() {
        let target = Target { compute: 90, driver_version: 13_000 };
        let shared = [0; 1536];
        let sections: [(&str, u32, &[u8]); 4] = [
            (".text.scale", 1, &[0; 8]),
            (".nv.info.scale", 1, INFO),
            (".text.plain", 1, &[0; 8]),
            (".nv.shared.plain", 1, &shared),
        ];
        for (flags, abi) in [(0x0600_5a04, 8), (0x0050_055a, 7)] {
            let file = cubin(flags, abi, &sections);
            assert_eq!(length(&file[..HEADER_BYTES]), Some(file.len()));
            let image = parse(&file, target).unwrap();
            let scale = image.kernel("scale").unwrap();
            assert_eq!((scale.parameters.unwrap().len(), scale.shared_bytes), (4, 0));
            let plain = image.kernel("plain").unwrap();
            assert_eq!((plain.parameters.unwrap().len(), plain.shared_bytes), (0, 512));
        }
        let refusal = parse(&cubin(0x0600_5004, 8, &sections), target).unwrap_err();
        assert_eq!(refusal.reason, "the cubin is for sm_80, and the device is sm_90");
    }

    #[test]
    fn an_elf_file_of_a_host_is_no_cubin() {
        let host = std::fs::read("/proc/self/exe").unwrap();
        let target = Target { compute: 90, driver_version: 13_000 };
        assert_eq!(parse(&host, target).unwrap_err().code, Code::INVALID_IMAGE);
        assert!(length(&host[..HEADER_BYTES]).unwrap() <= host.len());
        assert_eq!(parse(&host[..70], target).unwrap_err().code, Code::INVALID_IMAGE);
    }
}
