//! The architecture of machine code that is a file of its own: an ELF file for the machine `EM_CUDA`.

use super::Architecture;

const MACHINE: [u8; 2] = [190, 0];
/// The operating system in the header of what CUDA 13 and newer write; before, the flags were laid out differently.
const NEWER_OS_ABI: u8 = 0x41;
/// The options of `ptxas`, which a note records, say more than the flags: they have the letter.
const OPTION: &[u8] = b"-arch sm_";

/// What the file is compiled for; `None` when it is no machine code for a GPU.
pub(crate) fn architecture(data: &[u8]) -> Option<Architecture> {
    if data.get(..5)? != b"\x7fELF\x02" || data.get(18..20)? != MACHINE {
        return None;
    }
    let option = memchr::memmem::find(data, OPTION).map(|start| &data[start + OPTION.len()..]);
    let named = option.and_then(|rest| {
        let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric())?;
        std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
    });
    let flags = u32::from_le_bytes(data.get(48..52)?.try_into().ok()?);
    let number = if data[7] == NEWER_OS_ABI { flags >> 8 & 0xff } else { flags & 0xff };
    Some(named.unwrap_or(Architecture::base(number)))
}
