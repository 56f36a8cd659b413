//! Reads members whole, block by block, and compares size and checksum with what the archive declares.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::mpsc;
use std::thread;

use flate2::Crc;

use super::inflate::{Contents, block_bytes};
use super::{ArchiveError, BLOCK_BYTES, Member, Source};

/// How far inflating may be ahead of what sees the contents. It is the slower of the two, and ahead for a while only.
const BLOCKS_AHEAD: usize = 4;

/// Hands the contents of `member` to `sink`, piece by piece; every piece but the last has the same size.
///
/// At most the declared size is handed out; `Ok` means that size and checksum are as declared.
pub(crate) fn read_member(source: &Source, member: &Member, mut sink: impl FnMut(&[u8])) -> Result<(), ArchiveError> {
    let mut checksum = Crc::new();
    read(source, member, &mut |block| {
        checksum.update(&block);
        sink(&block);
        block
    })?;
    compare_checksum(member, &checksum)
}

/// As [`read_member`], with `sink` on a thread of its own, which pays where it looks at every byte of a large member.
pub(crate) fn read_member_beside(
    source: &Source,
    member: &Member,
    mut sink: impl FnMut(&[u8]) + Send,
) -> Result<(), ArchiveError> {
    let mut checksum = Crc::new();
    let mut see = |block: &[u8]| {
        checksum.update(block);
        sink(block);
    };
    let (filled, to_see) = mpsc::sync_channel::<Vec<u8>>(BLOCKS_AHEAD);
    let (seen, to_fill) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            for block in to_see {
                see(&block);
                // At the end nobody wants it any more.
                let _ = seen.send(block);
            }
        });
        // It ends the thread by being dropped, before the thread is waited for.
        let mut hand_over = move |block| {
            // Only a panic ends the thread before, and it goes on here when the thread is waited for.
            let _ = filled.send(block);
            to_fill.try_recv().unwrap_or_default()
        };
        read(source, member, &mut hand_over)
    })?;
    compare_checksum(member, &checksum)
}

fn compare_checksum(member: &Member, checksum: &Crc) -> Result<(), ArchiveError> {
    if checksum.sum() != member.crc32 {
        return Err(ArchiveError::WrongChecksum { name: member.name.clone(), offset: member.data_offset });
    }
    Ok(())
}

/// Fills those parts of `image` with the contents of a member that was read before. `ranges` are in order and do not
/// overlap; what comes after the last is not inflated.
pub(crate) fn fill_ranges(
    source: &Source,
    member: &Member,
    ranges: &[Range<usize>],
    image: &mut [u8],
) -> io::Result<()> {
    let mut contents = Contents::of(source, member);
    let mut position = 0;
    for range in ranges {
        contents.skip((range.start - position) as u64)?;
        contents.read_exact(&mut image[range.clone()])?;
        position = range.end;
    }
    Ok(())
}

/// Hands everything that `reader` gives to `sink`, block by block.
pub(crate) fn for_each_block(reader: &mut dyn Read, mut sink: impl FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; BLOCK_BYTES];
    loop {
        match fill(reader, &mut buffer)? {
            0 => return Ok(()),
            count => sink(&buffer[..count]),
        }
    }
}

/// Blocks and sizes are as [`read_member`] says; the checksum is the caller's. `next` takes each block and gives the
/// memory for the one after it.
fn read(source: &Source, member: &Member, next: &mut dyn FnMut(Vec<u8>) -> Vec<u8>) -> Result<(), ArchiveError> {
    let inflate_error =
        |source| ArchiveError::Inflate { name: member.name.clone(), offset: member.data_offset, source };
    let wrong_size =
        |longer| ArchiveError::WrongSize { name: member.name.clone(), size_bytes: member.size_bytes, longer };
    let mut contents = Contents::of(source, member);
    let mut block = Vec::new();
    let mut remaining_bytes = member.size_bytes;
    // One byte is room enough to see that there is more than declared.
    let block_bytes = block_bytes(member.size_bytes).max(1);
    loop {
        block.resize(block_bytes, 0);
        let count = fill(&mut contents, &mut block).map_err(inflate_error)?;
        if count == 0 {
            break;
        }
        remaining_bytes = remaining_bytes.checked_sub(count as u64).ok_or_else(|| wrong_size(true))?;
        block.truncate(count);
        block = next(block);
    }
    if remaining_bytes > 0 { Err(wrong_size(false)) } else { Ok(()) }
}

/// Reads until `buffer` is full or the reader ends.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match reader.read(&mut buffer[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::super::{Archive, Method};
    use super::*;
    use crate::testing::WheelBuilder;

    const NAME: &str = "demo-0.1.0-py3-none-any.whl";

    type Change = fn(&mut Member);

    /// Two and a half blocks that can be deflated.
    fn contents() -> Vec<u8> {
        (0..=250).cycle().take(BLOCK_BYTES * 5 / 2).collect()
    }

    /// Both ways to read the first member, after `change`: its pieces, or the error.
    #[track_caller]
    fn read_both(contents: Vec<u8>, change: impl Fn(&mut Member)) -> Result<Vec<Vec<u8>>, String> {
        let source = Source::Memory(WheelBuilder::new(NAME).file("data", contents).build());
        let mut member = Archive::read(&source).unwrap().members.swap_remove(0);
        change(&mut member);
        let (mut pieces, mut pieces_beside) = (Vec::new(), Vec::new());
        let result = read_member(&source, &member, |piece| pieces.push(piece.to_vec()));
        let beside = read_member_beside(&source, &member, |piece| pieces_beside.push(piece.to_vec()));
        let (result, beside) = (result.map_err(|error| error.to_string()), beside.map_err(|error| error.to_string()));
        assert_eq!(result, beside);
        assert_eq!(pieces, pieces_beside);
        result.map(|()| pieces)
    }

    #[test]
    fn a_thread_of_its_own_sees_the_same_pieces() {
        let pieces = read_both(contents(), |_| {}).unwrap();
        let lengths: Vec<usize> = pieces.iter().map(Vec::len).collect();
        assert_eq!(lengths, [BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES / 2]);
        assert_eq!(pieces.concat(), contents());
        assert_eq!(read_both(Vec::new(), |_| {}).unwrap(), [[0; 0]; 0]);
    }

    #[test]
    fn what_is_wrong_with_a_member_is_the_same_on_both_ways() {
        let changes: [(&str, Change); 6] = [
            ("\"data\" declares 327679 bytes and holds more", |member| member.size_bytes -= 1),
            ("\"data\" declares 0 bytes and holds more", |member| member.size_bytes = 0),
            ("\"data\" declares 327681 bytes and holds fewer", |member| member.size_bytes += 1),
            ("\"data\" declares 327680 bytes and holds fewer", |member| member.compressed_size_bytes /= 2),
            ("the contents of \"data\" at offset 34 do not match their checksum", |member| member.crc32 ^= 1),
            ("the contents of \"data\" at offset 37 cannot be inflated: corrupt deflate stream", |member| {
                member.data_offset += 3;
            }),
        ];
        for (expected, change) in changes {
            let error = read_both(contents(), change).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn ranges_are_filled_and_nothing_else() {
        let stored: Vec<u8> =
            (0_u32..70_000).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for (method, contents) in [(Method::Deflated, contents()), (Method::Stored, stored)] {
            let source = Source::Memory(WheelBuilder::new(NAME).file("data", &contents).build());
            let member = Archive::read(&source).unwrap().members.swap_remove(0);
            assert_eq!(member.method, method);
            let ranges = [3..5, BLOCK_BYTES - 1..BLOCK_BYTES + 1, 2 * BLOCK_BYTES + 5..2 * BLOCK_BYTES + 10];
            let mut image = vec![0; contents.len()];
            fill_ranges(&source, &member, &ranges, &mut image).unwrap();
            let mut expected = vec![0; contents.len()];
            for range in ranges {
                expected[range.clone()].copy_from_slice(&contents[range]);
            }
            assert!(image == expected);
        }
    }
}
