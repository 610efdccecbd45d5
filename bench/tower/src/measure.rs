//! Drives services, by one task or by many, and says what a call took.

use crate::allocs;
use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tower::{Service, ServiceExt};

/// As many callers as the Go side has.
const TASKS: usize = 64;
/// How long a service is called before it is measured. The Go side needs it, and has as long.
const WARM_UP: Duration = Duration::from_millis(30);
/// Calls between two looks at the clock.
const BATCH: u64 = 256;

pub struct Meter {
    prefix: String,
    time: Duration,
}

impl Meter {
    pub fn new(prefix: &str, ms: u64) -> Self {
        Meter {
            prefix: prefix.to_string(),
            time: Duration::from_millis(ms),
        }
    }

    fn wanted(&self, name: &str) -> bool {
        name.starts_with(&self.prefix)
    }

    /// One task that calls one service, on one thread.
    pub fn serial<S, F>(&self, name: &str, make: F)
    where
        F: FnOnce() -> S,
        S: Service<u64, Response = u64>,
        S::Error: Debug,
    {
        let name = format!("{name}/serial/tower");
        if !self.wanted(&name) {
            return;
        }
        one_thread().block_on(async {
            let mut svc = make();
            let start = Instant::now();
            while start.elapsed() < WARM_UP {
                calls(&mut svc, BATCH).await;
            }
            self.report(&name, true, async {
                let (start, mut n) = (Instant::now(), 0);
                while start.elapsed() < self.time {
                    calls(&mut svc, BATCH).await;
                    n += BATCH;
                }
                n
            })
            .await;
        });
    }

    /// Many tasks, each with its clone of one service, on one thread and on two.
    pub fn shared<S, F>(&self, name: &str, make: F)
    where
        F: Fn() -> S,
        S: Service<u64, Response = u64> + Clone + Send + 'static,
        S::Error: Debug,
        S::Future: Send,
    {
        for (suffix, runtime) in [("", one_thread as fn() -> Runtime), ("-2", two_threads)] {
            let name = format!("{name}/parallel/tower{suffix}");
            if !self.wanted(&name) {
                continue;
            }
            runtime().block_on(async {
                let svc = make();
                many(&svc, WARM_UP).await;
                self.report(&name, suffix.is_empty(), many(&svc, self.time))
                    .await;
            });
        }
    }

    /// run says how many calls it made. alone adds how long the process computed for one.
    async fn report(&self, name: &str, alone: bool, run: impl Future<Output = u64>) {
        let (allocs, bytes) = allocs::so_far();
        let (start, busy) = (Instant::now(), computed());
        let n = run.await;
        let (took, busy) = (start.elapsed(), computed() - busy);
        let (allocs, bytes) = (allocs::so_far().0 - allocs, allocs::so_far().1 - bytes);
        print!(
            "Benchmark{name}\t{n}\t{:.1} ns/op\t{} B/op\t{} allocs/op",
            took.as_nanos() as f64 / n as f64,
            bytes / n,
            (allocs + n / 2) / n,
        );
        if alone {
            print!("\t{:.1} cpu-ns/op", busy.as_nanos() as f64 / n as f64);
        }
        println!();
    }
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn two_threads() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
}

async fn calls<S>(svc: &mut S, n: u64)
where
    S: Service<u64, Response = u64>,
    S::Error: Debug,
{
    for i in 0..n {
        let answer = svc.ready().await.unwrap().call(i).await.unwrap();
        keep(answer);
    }
}

async fn many<S>(svc: &S, time: Duration) -> u64
where
    S: Service<u64, Response = u64> + Clone + Send + 'static,
    S::Error: Debug,
    S::Future: Send,
{
    let start = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let mut svc = svc.clone();
            tokio::spawn(async move {
                let mut n = 0;
                while start.elapsed() < time {
                    calls(&mut svc, 32).await;
                    n += 32;
                    // A task whose calls never wait would keep its thread until the end.
                    tokio::task::yield_now().await;
                }
                n
            })
        })
        .collect();
    let mut n = 0;
    for task in tasks {
        n += task.await.unwrap();
    }
    n
}

/// Makes the compiler believe that somebody looks at the answer.
fn keep(answer: u64) {
    unsafe { std::ptr::read_volatile(&answer) };
}

/// How long the process has computed.
fn computed() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
