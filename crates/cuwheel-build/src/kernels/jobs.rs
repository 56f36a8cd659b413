//! How many compilers run at once, by cores and by memory (PK-81), and the threads that run them.

use std::collections::VecDeque;
use std::fs;
use std::sync::Mutex;
use std::thread;

use super::KernelsError;
use crate::environment::Lookup;

/// Says how many compilers of kernels may run at once.
pub const JOBS_VARIABLE: &str = "CUWHEEL_KERNEL_JOBS";

/// What one compiler is expected to take. Sources that are heavy with templates take more, and are tried again.
const BYTES_PER_JOB: u64 = 3 << 29;
/// What is left to the rest of the machine.
const RESERVE_BYTES: u64 = 1 << 30;

/// The number that was asked for, or else what cores and memory are enough for.
pub(super) fn count(lookup: Lookup<'_>) -> Result<usize, KernelsError> {
    if let Some(value) = lookup(JOBS_VARIABLE) {
        let number = value.to_str().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
        return number.ok_or(KernelsError::NotANumberOfJobs { value: value.to_string_lossy().into_owned() });
    }
    // Cargo says how many processes it was asked to run.
    let asked = lookup("NUM_JOBS").and_then(|value| value.to_str()?.parse().ok());
    let cores = asked.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    Ok(bounded(cores, available_bytes()))
}

fn bounded(cores: usize, available_bytes: Option<u64>) -> usize {
    let by_memory = available_bytes.map_or(usize::MAX, |bytes| {
        usize::try_from(bytes.saturating_sub(RESERVE_BYTES) / BYTES_PER_JOB).unwrap_or(usize::MAX)
    });
    cores.min(by_memory).max(1)
}

/// What the machine, and the container that this runs in, have left.
fn available_bytes() -> Option<u64> {
    let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    });
    let number = |name: &str| {
        fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok().and_then(|text| text.trim().parse::<u64>().ok())
    };
    let of_container = number("memory.max").zip(number("memory.current")).map(|(most, used)| most.saturating_sub(used));
    of_machine.into_iter().chain(of_container).min()
}

/// What a job came to.
pub(super) enum Ended<T> {
    Done(T),
    Failed(KernelsError),
    /// The kernel of the operating system ended it, as it does when memory is short.
    Killed,
}

/// Runs all, at most `jobs` at once. What was killed is run again with half as many. Results are in the order of `items`.
pub(super) fn run<I: Sync, T: Send>(
    items: &[I],
    jobs: usize,
    work: impl Fn(&I) -> Ended<T> + Sync,
) -> Result<Vec<T>, KernelsError> {
    let mut results: Vec<Option<T>> = items.iter().map(|_| None).collect();
    let mut jobs = jobs.max(1);
    let mut waiting: VecDeque<usize> = (0..items.len()).collect();
    while !waiting.is_empty() {
        let queue = Mutex::new(std::mem::take(&mut waiting));
        let ended = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..jobs.min(items.len()) {
                scope.spawn(|| {
                    while let Some(index) = pop(&queue) {
                        let outcome = work(&items[index]);
                        if matches!(outcome, Ended::Failed(_)) {
                            // Nothing more is begun; what runs is waited for.
                            lock(&queue).clear();
                        }
                        lock(&ended).push((index, outcome));
                    }
                });
            }
        });
        let mut ended = ended.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        ended.sort_by_key(|(index, _)| *index);
        for (index, outcome) in ended {
            match outcome {
                Ended::Done(result) => results[index] = Some(result),
                Ended::Failed(error) => return Err(error),
                Ended::Killed => waiting.push_back(index),
            }
        }
        if !waiting.is_empty() {
            if jobs == 1 {
                return Err(KernelsError::Killed);
            }
            jobs /= 2;
            println!(
                "cargo:warning=a CUDA compiler was killed, probably for want of memory; again with {jobs} at once"
            );
        }
    }
    Ok(results.into_iter().flatten().collect())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn pop(queue: &Mutex<VecDeque<usize>>) -> Option<usize> {
    lock(queue).pop_front()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn pk_81_memory_bounds_the_number_of_compilers() {
        let cases = [(16, Some(GIB * 7), 4), (2, Some(GIB * 64), 2), (8, Some(GIB / 2), 1), (8, None, 8), (0, None, 1)];
        for (cores, available_bytes, expected) in cases {
            assert_eq!(bounded(cores, available_bytes), expected, "{cores} cores, {available_bytes:?}");
        }
    }

    #[test]
    fn pk_81_what_was_killed_runs_again_with_half_as_many() {
        let (running, most_after_first) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let attempts: Vec<AtomicUsize> = (0..8).map(|_| AtomicUsize::new(0)).collect();
        let results = run(&(0..8).collect::<Vec<usize>>(), 4, |&index| {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            thread::sleep(std::time::Duration::from_millis(5));
            let attempt = attempts[index].fetch_add(1, Ordering::SeqCst);
            if attempt > 0 {
                most_after_first.fetch_max(now, Ordering::SeqCst);
            }
            running.fetch_sub(1, Ordering::SeqCst);
            if attempt == 0 { Ended::Killed } else { Ended::Done(index * 10) }
        });
        assert_eq!(results.unwrap(), [0, 10, 20, 30, 40, 50, 60, 70]);
        assert!(most_after_first.into_inner() <= 2);
    }

    #[test]
    fn what_is_killed_alone_is_an_error() {
        assert!(matches!(run(&[()], 4, |()| Ended::<()>::Killed), Err(KernelsError::Killed)));
    }
}
