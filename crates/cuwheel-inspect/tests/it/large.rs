//! Members of which only a part is kept: libraries larger than that, with their tables in every place.

use cuwheel_inspect::digest::Sha256Digest;
use cuwheel_inspect::elf::{ElfFile, ElfLayout};
use cuwheel_inspect::testing::WheelBuilder;
use cuwheel_inspect::wheel::{NativeCode, Wheel};

use crate::gpu_code;
use crate::native;

const NAME: &str = "demo-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl";
const SECTIONS_OFFSET: usize = 0x28;
const ROW_BYTES: usize = 64;
const SHT_STRTAB: u32 = 3;

/// Repeats itself enough to be deflated.
fn repetitive(size_bytes: usize) -> Vec<u8> {
    let word = |number: usize| (number as u64 / 1024).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..size_bytes / 8).flat_map(word).collect()
}

fn described(data: &[u8]) -> String {
    format!("{:?}\n{:?}", ElfFile::parse(data), ElfLayout::parse(data))
}

/// That the library in a wheel is described as the bytes are, and hashed as they are.
#[track_caller]
fn check_same(library: &[u8]) {
    let bytes = WheelBuilder::new(NAME).file("demo/large.so", library).build();
    let (wheel, found) = Wheel::from_bytes_with(NAME, bytes.clone(), |native| match native.code() {
        NativeCode::Elf(Ok(data)) => (described(data), native.fatbins().to_vec()),
        code => panic!("{code:?}"),
    })
    .unwrap();
    let [(_, (description, fatbins))] = &found[..] else { panic!("one library") };
    assert_eq!(*description, described(library));
    assert!(description.starts_with("Ok(") && !description.contains("Err("), "{description}");
    assert_eq!(*fatbins, cuwheel_inspect::fatbin::find(library));
    assert_eq!(wheel.entry("demo/large.so").unwrap().sha256(), Sha256Digest::of(library));
    assert_eq!(wheel.sha256(), Sha256Digest::of(&bytes));
    assert_eq!(wheel.verify_record(), []);
}

fn get(library: &[u8], position: usize) -> usize {
    usize::try_from(u64::from_le_bytes(library[position..position + 8].try_into().unwrap())).unwrap()
}

fn put(library: &mut [u8], position: usize, value: usize) {
    library[position..position + 8].copy_from_slice(&(value as u64).to_le_bytes());
}

/// Moves what the field at `field` leads to, `size_bytes` of it, to `target`.
fn move_to(library: &mut [u8], field: usize, size_bytes: usize, target: usize) {
    let from = get(library, field);
    library.copy_within(from..from + size_bytes, target);
    library[from..from + size_bytes].fill(0xee);
    put(library, field, target);
}

/// The rows of the sections with strings: the names of symbols, and those of sections.
fn rows_of_strings(library: &[u8]) -> Vec<usize> {
    let table = get(library, SECTIONS_OFFSET);
    let count = usize::from(u16::from_le_bytes([library[0x3c], library[0x3d]]));
    let rows = (0..count).map(|row| table + row * ROW_BYTES);
    rows.filter(|row| library[row + 4..row + 8] == SHT_STRTAB.to_le_bytes()).collect()
}

/// In the middle of a large library nothing is kept: what is there has to be read once more.
#[test]
fn tables_in_the_middle_of_a_large_library_are_read() {
    let library = native::library_with_contents(&repetitive(24 << 20));
    let middle = library.len() / 2;

    let mut names_moved = library.clone();
    for (number, row) in rows_of_strings(&library).into_iter().enumerate() {
        let size_bytes = get(&library, row + 32);
        move_to(&mut names_moved, row + 24, size_bytes, middle + (number << 20));
    }
    check_same(&names_moved);

    let mut all_moved = names_moved;
    let count = usize::from(u16::from_le_bytes([library[0x3c], library[0x3d]]));
    move_to(&mut all_moved, SECTIONS_OFFSET, count * ROW_BYTES, middle - (1 << 20));
    check_same(&all_moved);
}

/// As patchelf leaves libraries: what it moved is at the end, behind the table of sections.
#[test]
fn tables_at_the_end_of_a_large_library_are_read() {
    let mut library = native::library_with_contents(&repetitive(12 << 20));
    for row in rows_of_strings(&library) {
        let (size_bytes, end) = (get(&library, row + 32), library.len());
        library.resize(end + size_bytes, 0);
        move_to(&mut library, row + 24, size_bytes, end);
    }
    check_same(&library);
}

/// What deflating gains nothing on, with containers of GPU code between and across the pieces that it is read in.
#[test]
fn gpu_code_is_found_in_large_libraries() {
    let mut number = 1_u64;
    let mut next = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        number.to_be_bytes()[0]
    };
    let mut contents: Vec<u8> = std::iter::repeat_with(&mut next).take(12 << 20).collect();
    for number in 0..100 {
        let position = number * 110_000;
        let fatbin = [gpu_code::FEATURES, gpu_code::PLAIN, gpu_code::CONCAT][number % 3];
        contents[position..position + fatbin.len()].copy_from_slice(fatbin);
    }
    check_same(&native::library_with_contents(&contents));
}

#[test]
fn every_algorithm_of_record_hashes_a_large_member() {
    let contents = repetitive(9 << 20);
    for (algorithm, hash) in [
        ("sha384", "abTfduKic4ha7Iaw2ueTJlV0qNVuM6fMuFm-E1H8QbXz90b_zUJBXQEJ2DyyNkCZ"),
        ("sha512", "xFcGEA_HLv9IKEvJpZwZjf5XBLhzxYe5gmlziYZY3i0WBaWOySuMOvuyFNfSG8cIZSV93s2lfw2f312nvgmoGw"),
    ] {
        let row = format!("{algorithm}={hash},{}", contents.len());
        let bytes = WheelBuilder::new(NAME).file("demo/data", &contents).row("demo/data", &row).build();
        assert_eq!(Wheel::from_bytes(NAME, bytes).unwrap().verify_record(), []);
    }
}
