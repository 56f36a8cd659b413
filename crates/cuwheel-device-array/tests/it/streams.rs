//! Streams and events: their order, their life, and the current one.

use std::thread;

use cuwheel_device_array::stream::{self, CaptureStatus};
use cuwheel_device_array::{Classified, DType, Device, ErrorKind, Event, MemoryKind, Stream};

use crate::stub::{FIRST, SECOND, Session, empty};

#[test]
fn a_stream_is_destroyed_with_the_last_that_knows_it() {
    let session = Session::start();
    let stream = Stream::create(SECOND).unwrap();
    assert!(stream.handle() > 2);
    assert_eq!(stream.capture_status(SECOND), Ok(CaptureStatus::None));
    let clone = stream.clone();
    drop(stream);
    assert_eq!(session.calls("cuStreamDestroy"), 0);
    thread::spawn(move || drop(clone)).join().unwrap();
    assert_eq!(session.calls("cuStreamDestroy"), 1);
}

#[test]
fn the_legacy_stream_has_two_names_and_is_not_the_per_thread_stream() {
    // SAFETY: these numbers stand for the default streams.
    let [zero, one, two] = [0, 1, 2].map(|handle| unsafe { Stream::borrowed(handle, None) });
    assert_eq!((&zero, &one, &two), (&Stream::LEGACY, &Stream::LEGACY, &Stream::PER_THREAD));
    assert_ne!(zero, two);
}

#[test]
fn the_current_stream_belongs_to_the_thread_and_the_device() {
    let device = Device::new(u32::MAX);
    assert_eq!(stream::current(device), Stream::LEGACY);
    assert_eq!(stream::set_current(device, Stream::PER_THREAD), Stream::LEGACY);
    assert_eq!(stream::current(device), Stream::PER_THREAD);
    assert_eq!(stream::current(FIRST), Stream::LEGACY);
    thread::spawn(move || assert_eq!(stream::current(device), Stream::LEGACY)).join().unwrap();
    assert_eq!(stream::set_current(device, Stream::LEGACY), Stream::PER_THREAD);
}

#[test]
fn work_on_one_stream_comes_behind_work_on_another_when_told_so() {
    let session = Session::start();
    let [producer, consumer] = [0, 1].map(|_| Stream::create(FIRST).unwrap());
    let array = empty(&[64], DType::Float32, MemoryKind::Device, &producer);
    array.fill_zeros(&producer).unwrap();
    consumer.order_after(FIRST, &producer, FIRST).unwrap();
    let on_consumer = array.clone().with_stream(consumer.clone());
    on_consumer.fill_bytes(&1.0_f32.to_le_bytes(), &consumer).unwrap();
    // The memory goes back in the order of the stream that it came from.
    producer.order_after(FIRST, &consumer, FIRST).unwrap();
    assert_eq!(session.calls("cuEventRecord"), 2);
    producer.order_after(FIRST, &producer.clone(), FIRST).unwrap();
    assert_eq!(session.calls("cuEventRecord"), 2);
}

#[test]
fn the_stand_in_would_notice_a_missing_order() {
    let session = Session::start();
    let [producer, consumer] = [0, 1].map(|_| Stream::create(FIRST).unwrap());
    let array = empty(&[64], DType::Float32, MemoryKind::Device, &producer);
    array.clone().with_stream(consumer.clone()).fill_zeros(&consumer).unwrap();
    assert_ne!(session.stub.report()["violations"].as_array().unwrap().len(), 0);
    producer.order_after(FIRST, &consumer, FIRST).unwrap();
    session.stub.reset();
}

#[test]
fn events_order_streams_of_different_devices_and_measure_time() {
    let _session = Session::start();
    let (stream, other) = (Stream::create(FIRST).unwrap(), Stream::create(SECOND).unwrap());
    other.order_after(SECOND, &stream, FIRST).unwrap();
    let [start, end] = [0, 1].map(|_| Event::timing(SECOND).unwrap());
    start.record(&other).unwrap();
    end.record(&other).unwrap();
    end.synchronize().unwrap();
    assert!(end.elapsed_since(&start).unwrap().as_secs() < 60);
    other.synchronize(SECOND).unwrap();
    let untimed = Event::new(SECOND).unwrap();
    untimed.record(&other).unwrap();
    assert_eq!(untimed.elapsed_since(&start).unwrap_err().kind(), ErrorKind::Driver);
}

#[test]
fn contexts_nest_and_the_one_before_comes_back() {
    let session = Session::start();
    let outer = FIRST.enter().unwrap();
    let pushed = || session.stub.report()["alive"]["contexts_pushed"].as_u64().unwrap();
    assert_eq!((pushed(), Device::current()), (1, Ok(FIRST)));
    {
        let _same = FIRST.enter().unwrap();
        assert_eq!(pushed(), 1);
        let _other = SECOND.enter().unwrap();
        assert_eq!((pushed(), Device::current()), (2, Ok(SECOND)));
    }
    drop(outer);
    assert_eq!((pushed(), Device::current()), (0, Ok(FIRST)));
}

#[test]
fn a_device_describes_itself() {
    let _session = Session::start();
    assert_eq!(Device::count(), Ok(2));
    assert_ne!(FIRST.name().unwrap(), "");
    assert_eq!(FIRST.compute_capability(), Ok((9, 0)));
    let (free, total) = SECOND.memory().unwrap();
    assert!(0 < free && free <= total);
    assert_eq!(Device::new(2).name().unwrap_err().kind(), ErrorKind::Value);
}
