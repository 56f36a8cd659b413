//! Fatbins of a real compiler, found in files of every kind, and damaged ones.

use cuwheel_inspect::fatbin::{self, Compression, Fatbin, Image, ImageKind, Scanner};
use expect_test::expect;
use proptest::prelude::*;

use crate::gpu_code::{CONCAT, FEATURES, LZ4, PLAIN};

fn shown(fatbins: &[Fatbin]) -> String {
    let image = |image: &Image| {
        let toolkit = image.toolkit.map_or_else(|| "an unknown toolkit".to_owned(), |toolkit| toolkit.to_string());
        let name = image.kind.name(image.architecture);
        format!("  {name}: {} of {} bytes, {:?}, {toolkit}\n", image.stored_bytes, image.size_bytes, image.compression)
    };
    let fatbin = |fatbin: &Fatbin| {
        let images: String = fatbin.images.iter().map(image).collect();
        let fault = fatbin.fault.as_ref().map_or_else(String::new, |fault| format!("  {fault}\n"));
        format!("{} at {}\n{images}{fault}", fatbin.size_bytes, fatbin.offset)
    };
    fatbins.iter().map(fatbin).collect()
}

#[test]
fn images_show_kind_architecture_sizes_and_toolkit() {
    expect![[r#"
        4088 at 0
          sm_75: 3112 of 3112 bytes, None, 13.5
          compute_75: 816 of 816 bytes, None, an unknown toolkit
    "#]]
    .assert_eq(&shown(&fatbin::find(PLAIN)));
    expect![[r#"
        576 at 0
          compute_75: 480 of 814 bytes, Lz4, an unknown toolkit
    "#]]
    .assert_eq(&shown(&fatbin::find(LZ4)));
    expect![[r#"
        6272 at 0
          sm_75: 856 of 3112 bytes, Zstandard, 13.5
          sm_90a: 976 of 3588 bytes, Zstandard, 13.5
          compute_90a: 368 of 815 bytes, Zstandard, an unknown toolkit
          sm_100f: 1328 of 5562 bytes, Zstandard, 13.5
          compute_90: 368 of 814 bytes, Zstandard, an unknown toolkit
          lto_90: 1832 of 2436 bytes, Zstandard, an unknown toolkit
    "#]]
    .assert_eq(&shown(&fatbin::find(FEATURES)));
}

#[test]
fn images_that_are_compressed_together_share_what_they_take() {
    expect![[r#"
        2048 at 0
          compute_90: 368 of 814 bytes, Zstandard, an unknown toolkit
          sm_75: 642 of 3112 bytes, Zstandard, 13.5
          sm_90: 741 of 3592 bytes, Zstandard, 13.5
    "#]]
    .assert_eq(&shown(&fatbin::find(CONCAT)));
    let [fatbin] = &fatbin::find(CONCAT)[..] else { panic!("one container") };
    assert!(fatbin.images.iter().all(|image| image.compression == Compression::Zstandard));
    assert!(fatbin.images.iter().any(|image| image.kind == ImageKind::Ptx));
}

#[test]
fn containers_are_found_wherever_they_lie() {
    let magic = &PLAIN[..4];
    let file =
        [b"code that reads fatbins: ", magic, b" and ", magic, b"\x01\0\x10\0", PLAIN, b"\0\0\0\0", LZ4, b"."].concat();
    let offsets: Vec<u64> = fatbin::find(&file).iter().map(|fatbin| fatbin.offset).collect();
    let first = 25 + 4 + 5 + 8;
    assert_eq!(offsets, [first, first + PLAIN.len() as u64 + 4]);
    assert!(fatbin::find(&file).iter().all(|fatbin| fatbin.fault.is_none()));
    assert_eq!(fatbin::find(b""), []);
}

#[test]
fn a_container_that_is_cut_short_says_so() {
    let faults = |data: &[u8]| -> Vec<String> {
        fatbin::find(data).into_iter().map(|fatbin| fatbin.fault.unwrap_or_default()).collect()
    };
    assert_eq!(faults(&PLAIN[..500]), ["at offset 0x10: the file ends within it"]);
    assert_eq!(faults(&PLAIN[..60]), [""; 0], "no image begins");
    let mut damaged = PLAIN.to_vec();
    damaged[16 + 8..16 + 16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(faults(&damaged), ["at offset 0x10: an image reaches beyond the end of the container"]);
    let second = 16 + 64 + 3112;
    let mut damaged = PLAIN.to_vec();
    damaged[second + 2] = 9;
    assert_eq!(faults(&damaged), ["at offset 0xc78: the header of an image is damaged"]);
    let mut damaged = PLAIN.to_vec();
    damaged[8] += 8;
    damaged.extend([0; 8]);
    assert_eq!(faults(&damaged), ["at offset 0xff8: what is left is too short for an image"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_do_not_matter(sizes in prop::collection::vec(1_usize..2000, 1..40)) {
        let file = [b"\0\0\0", PLAIN, CONCAT, b"\x50\xed\x55", FEATURES].concat();
        let mut scanner = Scanner::new();
        let mut rest = &file[..];
        for size in sizes {
            let (piece, after) = rest.split_at(size.min(rest.len()));
            scanner.push(piece);
            rest = after;
        }
        scanner.push(rest);
        prop_assert_eq!(scanner.finish(), fatbin::find(&file));
    }

    #[test]
    fn damaged_fatbins_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        which in 0_usize..4,
    ) {
        let mut data = [PLAIN, LZ4, FEATURES, CONCAT][which].to_vec();
        for (position, value) in changes {
            let position = position.index(data.len());
            data[position] = value;
        }
        let _ = fatbin::find(&data);
    }
}
