//! Copies and fills: every byte is where a walk over the elements puts it, and no other byte has changed.

use std::sync::Arc;

use cuwheel_device_array::{
    Array, ArrayParts, ArrayView, DType, Device, HostRegion, HostRegionMut, Layout, MemoryKind, Order, Stream,
};
use expect_test::expect;
use proptest::prelude::*;

use crate::model::positions;
use crate::refusals;
use crate::stub::{FIRST, KINDS, SECOND, Session, empty};

/// How the dimensions of an array lie in memory: the order of each, whether it runs backwards, and the elements left
/// out after it.
type Arrangement = Vec<(u8, bool, i64)>;

fn arrangements() -> impl Strategy<Value = Arrangement> {
    proptest::collection::vec((any::<u8>(), any::<bool>(), prop_oneof![3 => Just(0_i64), 1 => 1_i64..3]), 4)
}

fn shapes() -> impl Strategy<Value = Vec<i64>> {
    proptest::collection::vec(prop_oneof![1 => Just(0_i64), 2 => Just(1), 6 => 2_i64..6], 0..5)
}

fn dtypes() -> impl Strategy<Value = DType> {
    let odd = [3, 20, 100].map(|size| DType::opaque(size).unwrap());
    prop::sample::select(
        [&[DType::UInt8, DType::Int16, DType::Float32, DType::Float64, DType::Complex128][..], &odd].concat(),
    )
}

/// Memory of some bytes, and an array in it.
struct Model {
    bytes: Vec<u8>,
    layout: Layout,
    dtype: DType,
    /// The first element, in bytes from the beginning.
    first: i64,
}

impl Model {
    /// Bytes that differ from those of another `seed`.
    fn new(shape: &[i64], arrangement: &Arrangement, dtype: DType, seed: u8) -> Self {
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        axes.sort_by_key(|&axis| arrangement[axis].0);
        let mut strides = vec![0; shape.len()];
        let mut stride = 1;
        for axis in axes {
            let (_, is_backwards, gap) = arrangement[axis];
            strides[axis] = if is_backwards { -stride } else { stride };
            stride = (stride * shape[axis].max(1)) + gap;
        }
        let layout = Layout::from_elements(shape, &strides).unwrap();
        let extents = layout.extents_bytes(dtype).unwrap();
        // Some bytes before and after, which must stay.
        let size = usize::try_from(extents.end - extents.start).unwrap() + 32;
        let bytes = (0..size).map(|index| u8::try_from(index * 7 % 251).unwrap() ^ seed).collect();
        Self { bytes, layout, dtype, first: 16 - extents.start }
    }

    /// The bytes of each element, in the order of C.
    fn elements(&self) -> Vec<std::ops::Range<usize>> {
        let size = self.dtype.size_bytes().unwrap();
        let start = |bits: i64| usize::try_from(bits / 8 + self.first).unwrap();
        positions(&self.layout, self.dtype).into_iter().map(start).map(|start| start..start + size).collect()
    }

    /// Copies all elements of `source` to here, one by one.
    fn assign(&mut self, source: &Self) {
        for (to, from) in self.elements().into_iter().zip(source.elements()) {
            self.bytes[to].copy_from_slice(&source.bytes[from]);
        }
    }

    fn address(&self) -> usize {
        self.bytes.as_ptr().expose_provenance().strict_add_signed(isize::try_from(self.first).unwrap())
    }

    fn region(&self) -> HostRegion<'_> {
        // SAFETY: all elements of the layout are in `bytes`, which is borrowed as long.
        unsafe { HostRegion::new(self.address(), &self.layout, self.dtype) }
    }

    fn region_mut(&mut self) -> HostRegionMut<'_> {
        let address = self.bytes.as_mut_ptr().expose_provenance();
        let address = address.strict_add_signed(isize::try_from(self.first).unwrap());
        // SAFETY: all elements of the layout are in `bytes`, which is borrowed exclusively as long.
        unsafe { HostRegionMut::new(address, &self.layout, self.dtype) }
    }

    /// The array in memory of another kind with the same bytes, and the memory itself as an array of bytes.
    fn placed(&self, kind: MemoryKind, device: Device, stream: &Stream) -> (Array, Array) {
        let count = i64::try_from(self.bytes.len()).unwrap();
        let memory = Array::empty(&[count], DType::UInt8, kind, device, stream, Order::C).unwrap();
        memory.copy_from_host(bytes_region(&self.bytes, memory.layout()), stream).unwrap();
        let parts = ArrayParts {
            pointer: memory.pointer().wrapping_add_signed(self.first),
            layout: self.layout.clone(),
            dtype: self.dtype,
            kind,
            device,
            stream: stream.clone(),
            read_only: false,
        };
        // SAFETY: the memory has a byte for each of the model's, so also all elements, and is kept.
        let array = unsafe { Array::borrowed(ArrayView::new(parts).unwrap(), Arc::new(memory.clone())) };
        (array, memory)
    }
}

fn bytes_region<'a>(bytes: &'a [u8], layout: &'a Layout) -> HostRegion<'a> {
    // SAFETY: the layout is one of as many bytes, which are borrowed as long.
    unsafe { HostRegion::new(bytes.as_ptr().expose_provenance(), layout, DType::UInt8) }
}

/// All bytes of an array of bytes.
fn read(memory: &Array) -> Vec<u8> {
    let mut bytes = vec![0_u8; memory.size()];
    // SAFETY: there are as many bytes, which are borrowed for the call.
    let region = unsafe { HostRegionMut::new(bytes.as_mut_ptr().expose_provenance(), memory.layout(), DType::UInt8) };
    memory.copy_to_host(region, memory.stream()).unwrap();
    bytes
}

fn kinds() -> impl Strategy<Value = MemoryKind> {
    prop::sample::select(&KINDS)
}

proptest! {
    #[test]
    fn a_copy_from_the_host_puts_every_element_where_it_belongs(
        shape in shapes(), dtype in dtypes(), here in arrangements(), there in arrangements(), kind in kinds(),
    ) {
        let _session = Session::start();
        let mut expected = Model::new(&shape, &here, dtype, 0);
        let source = Model::new(&shape, &there, dtype, 0x5a);
        let (array, memory) = expected.placed(kind, FIRST, &Stream::LEGACY);
        array.copy_from_host(source.region(), &Stream::LEGACY).unwrap();
        expected.assign(&source);
        prop_assert_eq!(read(&memory), expected.bytes);
    }

    #[test]
    fn a_copy_to_the_host_puts_every_element_where_it_belongs(
        shape in shapes(), dtype in dtypes(), here in arrangements(), there in arrangements(), kind in kinds(),
    ) {
        let _session = Session::start();
        let source = Model::new(&shape, &here, dtype, 0x5a);
        let (mut found, mut expected) = (Model::new(&shape, &there, dtype, 0), Model::new(&shape, &there, dtype, 0));
        let (array, _memory) = source.placed(kind, FIRST, &Stream::LEGACY);
        array.copy_to_host(found.region_mut(), &Stream::LEGACY).unwrap();
        expected.assign(&source);
        prop_assert_eq!(found.bytes, expected.bytes);
    }

    #[test]
    fn a_copy_between_arrays_puts_every_element_where_it_belongs_in_the_order_of_all_streams(
        shape in shapes(), dtype in dtypes(), arrangement in (arrangements(), arrangements()),
        kind in (kinds(), kinds()), devices in (0_u32..2, 0_u32..2),
    ) {
        let _session = Session::start();
        let source = Model::new(&shape, &arrangement.0, dtype, 0x5a);
        let mut expected = Model::new(&shape, &arrangement.1, dtype, 0);
        let device = |kind, ordinal| Device::new(if kind == MemoryKind::Device { ordinal } else { 0 });
        let devices = (device(kind.0, devices.0), device(kind.1, devices.1));
        let streams = (Stream::create(devices.0).unwrap(), Stream::create(devices.1).unwrap());
        let (from, _memory) = source.placed(kind.0, devices.0, &streams.0);
        let (to, memory) = expected.placed(kind.1, devices.1, &streams.1);
        // A third stream, so that nothing is in order by itself.
        let working = if kind.0 == MemoryKind::Device && kind.1 != MemoryKind::Device { devices.0 } else { devices.1 };
        from.copy_to(&to, &Stream::create(working).unwrap()).unwrap();
        expected.assign(&source);
        prop_assert_eq!(read(&memory), expected.bytes);
    }

    #[test]
    fn a_fill_changes_all_elements_and_nothing_else(
        shape in shapes(), dtype in dtypes(), here in arrangements(), kind in kinds(), uniform: bool,
    ) {
        let _session = Session::start();
        let mut expected = Model::new(&shape, &here, dtype, 0);
        let (array, memory) = expected.placed(kind, FIRST, &Stream::LEGACY);
        let element: Vec<u8> = (1..).map(|byte| if uniform { 9 } else { byte }).take(dtype.size_bytes().unwrap()).collect();
        array.fill_bytes(&element, &Stream::LEGACY).unwrap();
        expected.elements().into_iter().for_each(|range| expected.bytes[range].copy_from_slice(&element));
        prop_assert_eq!(read(&memory), expected.bytes.clone());
        array.fill_zeros(&Stream::LEGACY).unwrap();
        expected.elements().into_iter().for_each(|range| expected.bytes[range].fill(0));
        prop_assert_eq!(read(&memory), expected.bytes);
    }
}

/// Numbers from zero on the first device.
fn counted(shape: &[i64], kind: MemoryKind) -> Array {
    let array = empty(shape, DType::Int32, kind, &Stream::LEGACY);
    let numbers: Vec<u8> = (0_i32..).take(array.size()).flat_map(i32::to_le_bytes).collect();
    let bytes = array.ravel().unwrap().view(DType::UInt8).unwrap();
    bytes.copy_from_host(bytes_region(&numbers, bytes.layout()), &Stream::LEGACY).unwrap();
    array
}

fn numbers(array: &Array) -> Vec<i32> {
    let contiguous = array.contiguous_copy(MemoryKind::Host, FIRST, &Stream::LEGACY).unwrap();
    let bytes = read(&contiguous.ravel().unwrap().view(DType::UInt8).unwrap());
    bytes.chunks(4).map(|bytes| i32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn elements(start: impl Into<Option<i64>>, stop: impl Into<Option<i64>>) -> cuwheel_device_array::Index {
    cuwheel_device_array::Index::Slice { start: start.into(), stop: stop.into(), step: None }
}

#[test]
fn an_array_can_be_copied_to_itself_with_overlap() {
    for kind in KINDS {
        let _session = Session::start();
        let array = counted(&[6], kind);
        let (from, to) = (array.index(&[elements(None, -2)]).unwrap(), array.index(&[elements(2, None)]).unwrap());
        from.copy_to(&to, &Stream::LEGACY).unwrap();
        assert_eq!(numbers(&array), [0, 1, 0, 1, 2, 3], "{kind}");
        let square = counted(&[3, 3], kind);
        square.transpose(None).unwrap().copy_to(&square, &Stream::LEGACY).unwrap();
        assert_eq!(numbers(&square), [0, 3, 6, 1, 4, 7, 2, 5, 8], "{kind}");
    }
}

#[test]
fn a_broadcast_array_is_copied_as_often_as_it_is_repeated() {
    for kind in KINDS {
        let session = Session::start();
        let row = counted(&[1, 3], kind);
        let repeated = row.broadcast_to(&[400, 3]).unwrap();
        let before = session.stub.report()["copy_count"].as_u64().unwrap();
        assert_eq!(numbers(&repeated), [0, 1, 2].repeat(400), "{kind}");
        let copies = session.stub.report()["copy_count"].as_u64().unwrap() - before;
        assert!(copies <= 1, "{kind}: {copies}");
        let target = empty(&[400, 3], DType::Int32, kind, &Stream::LEGACY);
        repeated.copy_to(&target, &Stream::LEGACY).unwrap();
        assert_eq!(numbers(&target), [0, 1, 2].repeat(400), "{kind}");
    }
}

#[test]
fn copies_take_few_steps() {
    let session = Session::start();
    let copies = |from: &Array, to: &Array| {
        let before = session.stub.report()["copy_count"].as_u64().unwrap();
        from.copy_to(to, &Stream::LEGACY).unwrap();
        session.stub.report()["copy_count"].as_u64().unwrap() - before
    };
    let array = |shape: &[i64]| empty(shape, DType::Float32, MemoryKind::Device, &Stream::LEGACY);
    let host = |shape: &[i64]| empty(shape, DType::Float32, MemoryKind::Host, &Stream::LEGACY);
    let columns = |array: &Array| array.index(&[elements(None, None), elements(None, 5)]).unwrap();
    let layered = |array: &Array| array.index(&[elements(None, None), elements(None, 3), elements(None, 5)]).unwrap();
    assert_eq!(copies(&array(&[4, 6]), &array(&[4, 6])), 1);
    assert_eq!(copies(&columns(&array(&[4, 6])), &array(&[4, 5])), 1);
    assert_eq!(copies(&layered(&array(&[2, 4, 6])), &array(&[2, 3, 5])), 2);
    assert_eq!(copies(&array(&[4, 6]).transpose(None).unwrap(), &host(&[6, 4])), 1);
    assert_eq!(copies(&host(&[6, 4]), &array(&[4, 6]).transpose(None).unwrap()), 1);
    // As many rows of one element as there are columns would be; the processor rearranges them.
    assert_eq!(copies(&array(&[999, 300]).transpose(None).unwrap(), &array(&[300, 999])), 2);
}

#[test]
fn a_stream_in_a_capture_records_copies_between_arrays_of_the_driver() {
    let session = Session::start();
    let (from, to) = (counted(&[4, 6], MemoryKind::Device), counted(&[6, 4], MemoryKind::Pinned));
    let stream = Stream::create(FIRST).unwrap();
    let recorded = crate::memory::while_capturing(&session, &stream, || {
        from.transpose(None).unwrap().copy_to(&to, &stream).unwrap();
        from.fill_bytes(&[1, 2, 3, 4], &stream).unwrap();
        from.fill_zeros(&stream).unwrap();
    });
    stream.synchronize(FIRST).unwrap();
    assert_eq!(recorded, 4 + 2);
    assert_eq!(numbers(&to), (0..24).map(|index| index % 4 * 6 + index / 4).collect::<Vec<_>>());
}

#[test]
fn packed_elements_are_copied_as_bytes_when_they_lie_alike() {
    let _session = Session::start();
    let [from, to] = [0, 1].map(|_| empty(&[3, 4], DType::Float4E2M1Fn, MemoryKind::Device, &Stream::LEGACY));
    from.fill_zeros(&Stream::LEGACY).unwrap();
    from.copy_to(&to, &Stream::LEGACY).unwrap();
    let host = to.contiguous_copy(MemoryKind::Host, FIRST, &Stream::LEGACY).unwrap();
    assert_eq!(read(&host.view(DType::UInt8).unwrap().ravel().unwrap()), [0; 6]);
    let transposed = from.transpose(None).unwrap();
    let row = from.reshape(&[4, 3]).unwrap();
    refusals(
        &expect![[r#"
            Buffer: elements of type float4_e2m1fn share bytes, so that the step from one to the next is no number of bytes; view the array as uint8 first
            Buffer: elements of type float4_e2m1fn share bytes, so that the step from one to the next is no number of bytes; view the array as uint8 first
        "#]],
        [transposed.copy_to(&row, &Stream::LEGACY).unwrap_err(), from.fill_bytes(&[1], &Stream::LEGACY).unwrap_err()],
    );
}

#[test]
fn impossible_copies_are_refused_with_a_reason() {
    let _session = Session::start();
    let array = |shape: &[i64], dtype| empty(shape, dtype, MemoryKind::Device, &Stream::LEGACY);
    let target = array(&[2, 3], DType::Float32);
    let copy = |from: &Array| from.copy_to(&target, &Stream::LEGACY).unwrap_err();
    refusals(
        &expect![[r#"
            Value: arrays of shapes (2, 3) and (3, 2) cannot be copied to one another; broadcast or reshape one of them first
            Type: elements of type int32 cannot be copied to or from elements of type float32; convert them first
            Value: the array is read-only; write to a copy of it
            Value: the array is read-only; write to a copy of it
            Value: 8 bytes were given for an element of type float32; give the bytes of one element
        "#]],
        [
            copy(&array(&[3, 2], DType::Float32)),
            copy(&array(&[2, 3], DType::Int32)),
            target.copy_to(&target.clone().read_only(), &Stream::LEGACY).unwrap_err(),
            target.clone().read_only().fill_zeros(&Stream::LEGACY).unwrap_err(),
            target.fill_bytes(&[0; 8], &Stream::LEGACY).unwrap_err(),
        ],
    );
}

#[test]
fn an_error_in_the_middle_of_a_copy_is_returned_and_nothing_is_lost() {
    let session = Session::start();
    let device = counted(&[4, 6], MemoryKind::Device);
    let host = counted(&[6, 4], MemoryKind::Host);
    for function in ["cuMemcpyAsync", "cuStreamSynchronize", "cuMemcpy2DAsync"] {
        session.stub.configure(&format!("fail={function}:1:INVALID_VALUE")).unwrap();
        let strided = host.transpose(None).unwrap();
        let first = strided.copy_to(&device, &Stream::LEGACY);
        let rows = device.index(&[elements(None, None), elements(None, 2)]).unwrap();
        let second = rows.contiguous_copy(MemoryKind::Device, SECOND, &Stream::LEGACY);
        assert_eq!(usize::from(first.is_err()) + usize::from(second.is_err()), 1, "{function}");
    }
}
