//! The threads among which a server's long sums are shared: those that simulate the agents, which have
//! nothing to do meanwhile.

use fedstay::numerics::{Machine, Workers};
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most threads that do one piece of work.
const AWAKE: usize = 8;
/// How long they stay awake for the next part.
const PATIENCE: Duration = Duration::from_millis(5);

/// The pool that the caller runs in.
struct Pool;

impl Workers for Pool {
    fn share(&self, parts: usize, part: &(dyn Fn(usize) + Sync)) {
        (0..parts).into_par_iter().with_max_len(1).for_each(part);
    }

    fn host(&self, work: &mut (dyn FnMut() + Send)) {
        host(work);
    }
}

/// What servers in the simulator compute with.
pub(super) fn machine() -> Machine {
    Machine::default().with_workers(Arc::new(Pool))
}

/// Does this work on a thread of the pool, with some others awake to take parts of it.
///
/// A thread of the pool that finds nothing to do goes to sleep within some fifty microseconds, and to wake
/// it takes longer than that (two hundred on a virtual machine), so that work whose parts are shorter would
/// be done by one thread alone.
pub fn host(work: &mut (dyn FnMut() + Send)) {
    if rayon::current_num_threads() == 1 {
        return work();
    }
    rayon::scope(|_| {
        let over = Arc::new(AtomicBool::new(false));
        let here = rayon::current_thread_index();
        // They are asked before there are parts, and so by the threads that will take parts. Nobody waits for them: they
        // may be busy with something else when this is over.
        for _ in 1..rayon::current_num_threads().min(AWAKE) {
            let over = Arc::clone(&over);
            rayon::spawn(move || help(here, &over));
        }
        // Also if the work panics.
        let _end = SetAtEnd(&over);
        work();
    });
}

/// Takes parts of what others do until the work is over, or nothing was found for a while. The thread that does the
/// work may come here while it waits for a part, and has to go on.
fn help(host: Option<usize>, over: &AtomicBool) {
    if rayon::current_thread_index() == host {
        return;
    }
    let mut idle = None;
    while !over.load(Ordering::Acquire) {
        if rayon::yield_now() == Some(rayon::Yield::Executed) {
            idle = None;
        } else if idle.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
            return;
        } else {
            std::thread::yield_now();
        }
    }
}

/// Sets it when it is dropped.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    /// Many short parts, one after the other.
    fn shares(done: &AtomicUsize) {
        for parts in [1, 2, 3, 64] {
            Pool.share(parts, &|_| {
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
    }

    #[test]
    fn hosted_work_is_done_by_pools_of_any_size() {
        for threads in [1, 2, 5, 20] {
            let done = AtomicUsize::new(0);
            pool(threads).install(|| host(&mut || shares(&done)));
            assert_eq!(done.into_inner(), 70, "{threads} threads");
        }
    }

    #[test]
    fn several_can_be_hosted_at_once_and_within_each_other() {
        let (pool, done) = (pool(2), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let _ = scope.spawn(|| {
                    pool.install(|| {
                        host(&mut || {
                            shares(&done);
                            host(&mut || shares(&done));
                        });
                    });
                });
            }
        });
        assert_eq!(done.into_inner(), 4 * 140);
    }

    #[test]
    fn nobody_waits_for_a_helper_that_is_busy() {
        let pool = pool(2);
        let (started, end) = (AtomicBool::new(false), AtomicBool::new(false));
        let wait = |flag: &AtomicBool| {
            let begun = Instant::now();
            while !flag.load(Ordering::Acquire) {
                assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain");
                std::thread::yield_now();
            }
        };
        pool.scope(|scope| {
            scope.spawn(|_| {
                host(&mut || {
                    wait(&started);
                });
                end.store(true, Ordering::Release);
            });
            scope.spawn(|_| {
                started.store(true, Ordering::Release);
                wait(&end);
            });
        });
    }

    #[test]
    fn work_that_panics_keeps_nobody_awake() {
        let pool = pool(3);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.install(|| host(&mut || panic!("for a test")));
        }));
        assert!(ended.is_err());
        let done = AtomicUsize::new(0);
        pool.install(|| host(&mut || shares(&done)));
        assert_eq!(done.into_inner(), 70);
    }
}
