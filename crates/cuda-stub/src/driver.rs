//! The model of a driver: plain Rust, one value, no globals. The C border locks one and translates for it.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::OpenOptions;

use crate::capture::{Capture, Graph};
use crate::clock::Clock;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Code, Outcome};
use crate::event::Event;
use crate::handle::{Kind, NumberMap, Table};
use crate::journal::Journal;
use crate::memory::Memory;
use crate::module::Images;
use crate::pool::Pool;
use crate::settings::{Settings, SettingsError};
use crate::stream::Stream;
use crate::user_object::UserObject;
use crate::work::HostCall;

/// What a call may need before it can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// Works before `cuInit`, and whatever happened.
    Always,
    /// Needs `cuInit`; works when the context is unusable, because it is how to get away from it.
    Setup,
    /// Needs a usable context, if there is one at all.
    Normal,
    /// Also refused, and fatal to the capture, while this thread captures a stream.
    Unsafe,
}

/// The call that is being made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calling {
    pub(crate) thread: u64,
    pub(crate) function: &'static str,
    /// How many calls were made, this one included.
    pub(crate) call: u64,
    /// Whether stream 0 means the thread's own default stream.
    pub(crate) per_thread_default: bool,
}

/// What the driver keeps of each thread.
#[derive(Default)]
pub(crate) struct Thread {
    pub(crate) stack: Vec<u64>,
    /// `CUstreamCaptureMode`, as exchanged by the thread; 0 is global.
    pub(crate) capture_mode: u32,
}

/// The whole state.
pub(crate) struct Driver {
    pub(crate) settings: Settings,
    pub(crate) journal: Journal,
    pub(crate) initialised: bool,
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: Table<Context>,
    pub(crate) memory: Memory,
    pub(crate) pools: Table<Pool>,
    pub(crate) streams: Table<Stream>,
    pub(crate) events: Table<Event>,
    pub(crate) captures: NumberMap<Capture>,
    pub(crate) graphs: Table<Graph>,
    pub(crate) graph_execs: Table<Graph>,
    pub(crate) user_objects: Table<UserObject>,
    pub(crate) images: Images,
    pub(crate) threads: NumberMap<Thread>,
    pub(crate) calling: Calling,
    /// What the host knows to be over.
    pub(crate) host: Clock,
    /// Grows whenever the host learns something.
    pub(crate) host_version: u64,
    /// Functions of the host that are to be called once the driver is unlocked.
    pub(crate) host_calls: Vec<HostCall>,
    /// Names that were given out as C strings.
    pub(crate) texts: HashMap<String, CString>,
    calls: u64,
    next_id: u64,
}

impl Driver {
    /// A driver that nobody initialised. None when the process may not reserve the addresses.
    pub(crate) fn new(settings: Settings) -> Option<Self> {
        let calling = Calling { thread: 0, function: "", call: 0, per_thread_default: false };
        let mut driver = Self {
            memory: Memory::new(settings.devices)?,
            settings,
            journal: Journal::default(),
            initialised: false,
            devices: Vec::new(),
            contexts: Table::new(Kind::Context),
            pools: Table::new(Kind::Pool),
            streams: Table::new(Kind::Stream),
            events: Table::new(Kind::Event),
            captures: NumberMap::default(),
            graphs: Table::new(Kind::Graph),
            graph_execs: Table::new(Kind::GraphExec),
            user_objects: Table::new(Kind::UserObject),
            images: Images::default(),
            threads: NumberMap::default(),
            calling,
            host: Clock::default(),
            host_version: 1,
            host_calls: Vec::new(),
            texts: HashMap::new(),
            calls: 0,
            next_id: 1,
        };
        driver.open_log();
        Some(driver)
    }

    /// Changes settings. The number of devices can only be changed before `cuInit`.
    pub(crate) fn configure(&mut self, text: &str) -> Result<(), ConfigureError> {
        let mut settings = self.settings.clone();
        settings.apply(text)?;
        if settings.devices != self.settings.devices {
            if self.initialised {
                return Err(ConfigureError::AlreadyInitialised);
            }
            self.memory = Memory::new(settings.devices).ok_or(ConfigureError::NoAddresses)?;
        }
        let log_changed = settings.log != self.settings.log;
        self.settings = settings;
        if log_changed {
            self.open_log();
        }
        Ok(())
    }

    /// Forgets the record, disarms faults and revives contexts. What is alive stays alive.
    pub(crate) fn reset(&mut self) {
        self.journal.clear();
        self.settings.faults.clear();
        self.settings.missing.clear();
        for context in self.contexts.values_mut() {
            context.dead = None;
        }
    }

    fn open_log(&mut self) {
        let file = self.settings.log.as_ref().and_then(|path| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .inspect_err(|error| eprintln!("cuda-stub: the log {} cannot be written: {error}", path.display()))
                .ok()
        });
        self.journal.log_to(file);
    }

    /// Begins a call: counts it, and gives the error that it fails with before it is looked at.
    pub(crate) fn enter(
        &mut self,
        thread: u64,
        function: &'static str,
        class: Class,
        per_thread_default: bool,
    ) -> Outcome {
        self.calls += 1;
        self.calling = Calling { thread, function, call: self.calls, per_thread_default };
        *self.journal.calls.entry(function).or_default() += 1;
        if self.settings.missing.contains(function) {
            return Err(Code::NOT_FOUND);
        }
        if !self.initialised && class != Class::Always && function != "cuInit" {
            return Err(Code::NOT_INITIALIZED);
        }
        if matches!(class, Class::Normal | Class::Unsafe)
            && let Some(dead) = self.current_or_none().and_then(|context| self.contexts.get(context)?.dead)
        {
            return Err(dead);
        }
        self.strike(function)?;
        if class == Class::Unsafe { self.refuse_during_capture() } else { Ok(()) }
    }

    /// The armed faults of a function.
    fn strike(&mut self, function: &str) -> Outcome {
        let Some(index) = self.settings.faults.iter().position(|fault| fault.function == function) else {
            return Ok(());
        };
        let mut failure = None;
        for fault in self.settings.faults[index..].iter_mut().filter(|fault| fault.function == function) {
            fault.countdown = fault.countdown.saturating_sub(1);
            if fault.countdown == 0 && failure.is_none() {
                failure = Some(fault.clone());
            }
        }
        self.settings.faults.retain(|fault| fault.countdown > 0 || fault.lasting);
        let Some(fault) = failure else { return Ok(()) };
        if fault.sticky {
            match self.current_or_none().and_then(|context| self.contexts.get_mut(context)) {
                Some(context) => context.dead = Some(fault.code),
                None => self.contexts.values_mut().for_each(|context| context.dead = Some(fault.code)),
            }
        }
        Err(fault.code)
    }

    /// `cuInit`.
    pub(crate) fn initialise(&mut self, flags: u32) -> Outcome {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        if self.settings.devices == 0 {
            return Err(Code::NO_DEVICE);
        }
        if !self.initialised {
            for ordinal in 0..self.settings.devices {
                let context = self.contexts.insert(Context::primary(ordinal));
                let pool = self.pools.insert(Pool::new(ordinal, true));
                self.devices.push(Device { ordinal, primary: context, default_pool: pool, pool, retained: 0 });
            }
            self.initialised = true;
        }
        Ok(())
    }

    /// A number that was not given out before.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Records a violation by the call that is being made.
    pub(crate) fn violation(&mut self, text: impl std::fmt::Display) {
        let place = self.place_text();
        self.journal.violation(format!("{place}: {text}"));
    }

    /// The call that is being made, for messages.
    pub(crate) fn place_text(&self) -> String {
        format!("{} (call {})", self.calling.function, self.calling.call)
    }

    pub(crate) fn thread(&mut self) -> &mut Thread {
        self.threads.entry(self.calling.thread).or_default()
    }

    /// An error for a handle that is not live; a violation when it once was.
    pub(crate) fn stale<T>(&mut self, what: &str, handle: u64, was: bool) -> Outcome<T> {
        if was {
            self.violation(format_args!("the {what} {handle:#x} was destroyed before"));
        }
        Err(Code::INVALID_HANDLE)
    }
}

/// Why settings were not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigureError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("cuda-stub: the number of devices is settled by cuInit; set it before, or in the variable CUDA_STUB")]
    AlreadyInitialised,
    #[error("cuda-stub: the process may not reserve the addresses of so many devices; lift its limit (ulimit -v)")]
    NoAddresses,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver with these settings, initialised, and the primary context of device 0 current.
    fn driver(settings: &str) -> Driver {
        let mut all = Settings::default();
        all.apply(settings).unwrap();
        let mut driver = Driver::new(all).unwrap();
        driver.initialise(0).unwrap();
        let context = driver.retain_primary(0).unwrap();
        driver.set_current(context).unwrap();
        driver
    }

    /// One call of a function by thread 0.
    fn call(driver: &mut Driver, function: &'static str, class: Class) -> Result<(), &'static str> {
        driver.enter(0, function, class, false).map_err(Code::name)
    }

    #[test]
    fn nothing_but_a_few_functions_works_before_initialisation() {
        let mut driver = Driver::new(Settings::default()).unwrap();
        assert_eq!(call(&mut driver, "cuDriverGetVersion", Class::Always), Ok(()));
        assert_eq!(call(&mut driver, "cuDeviceGet", Class::Setup), Err("CUDA_ERROR_NOT_INITIALIZED"));
        assert_eq!(call(&mut driver, "cuInit", Class::Always), Ok(()));
        driver.configure("devices=3").unwrap();
        driver.initialise(0).unwrap();
        assert_eq!(call(&mut driver, "cuDeviceGet", Class::Setup), Ok(()));
        assert_eq!(driver.devices.len(), 3);
        assert_eq!(
            driver.configure("memory=5;devices=1").unwrap_err().to_string(),
            "cuda-stub: the number of devices is settled by cuInit; set it before, or in the variable CUDA_STUB"
        );
        assert_eq!(driver.settings.memory_bytes, 1 << 30);
    }

    #[test]
    fn faults_of_one_function_count_its_calls_together() {
        let mut driver = driver("fail=cuMemAlloc:2:OUT_OF_MEMORY;fail=cuMemAlloc:3:UNKNOWN;fail=cuMemFree:1+:UNKNOWN");
        let codes = [0; 4].map(|_| call(&mut driver, "cuMemAlloc", Class::Normal));
        assert_eq!(codes, [Ok(()), Err("CUDA_ERROR_OUT_OF_MEMORY"), Err("CUDA_ERROR_UNKNOWN"), Ok(())]);
        for _ in 0..2 {
            assert_eq!(call(&mut driver, "cuMemFree", Class::Normal), Err("CUDA_ERROR_UNKNOWN"));
        }
        driver.reset();
        assert_eq!(call(&mut driver, "cuMemFree", Class::Normal), Ok(()));
        assert_eq!(driver.journal.calls.into_iter().collect::<Vec<_>>(), [("cuMemFree", 1)]);
    }

    #[test]
    fn a_dead_context_lets_only_those_calls_through_that_lead_away_from_it() {
        let mut driver = driver("devices=2;sticky=cuLaunchKernel:1:LAUNCH_FAILED");
        assert_eq!(call(&mut driver, "cuLaunchKernel", Class::Normal), Err("CUDA_ERROR_LAUNCH_FAILED"));
        assert_eq!(call(&mut driver, "cuCtxSynchronize", Class::Unsafe), Err("CUDA_ERROR_LAUNCH_FAILED"));
        assert_eq!(call(&mut driver, "cuCtxPopCurrent", Class::Setup), Ok(()));
        let other = driver.retain_primary(1).unwrap();
        driver.set_current(other).unwrap();
        assert_eq!(call(&mut driver, "cuCtxSynchronize", Class::Unsafe), Ok(()), "another context lives on");
    }

    #[test]
    fn work_that_was_on_a_destroyed_stream_is_waited_for_by_its_context() {
        let mut driver = driver("");
        let (stream, address) = (driver.create_stream(1, 0).unwrap(), driver.allocate(8).unwrap());
        let fill = crate::copies::Fill { address, pitch: 0, value: 1, element: 1, width: 8, height: 1 };
        driver.fill_rows(fill, crate::copies::Timing::On(stream)).unwrap();
        driver.destroy_stream(stream).unwrap();
        driver.fill_rows(fill, crate::copies::Timing::On(0)).unwrap();
        assert_eq!(driver.journal.violations.len(), 1, "the stream did not block");
        let context = driver.current().unwrap();
        driver.synchronise_context(context).unwrap();
        let next = driver.create_stream(1, 0).unwrap();
        driver.fill_rows(fill, crate::copies::Timing::On(next)).unwrap();
        assert_eq!(driver.journal.violations.len(), 1);
    }
}
