//! What is measured. Names are those of the Go benchmarks.

use crate::measure::Meter;
use std::convert::Infallible;
use std::future::{ready, Ready};
use std::sync::Arc;
use std::time::Duration;
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::ServiceList;
use tower::limit::{rate::Rate, ConcurrencyLimit, RateLimit};
use tower::load::{CompleteOnResponse, PeakEwma, PendingRequests};
use tower::load_shed::LoadShed;
use tower::retry::{budget::Budget, Policy, Retry};
use tower::timeout::Timeout;
use tower::{service_fn, ServiceBuilder};

pub fn run(m: &Meter) {
    bare(m);
    layers(m);
    balance(m);
    stack(m);
    scaling(m);
}

async fn echo(n: u64) -> Result<u64, Infallible> {
    Ok(n)
}

async fn yields(n: u64) -> Result<u64, Infallible> {
    tokio::task::yield_now().await;
    Ok(n)
}

/// Computes for about a microsecond, as the function of the same name on the other side does.
async fn work(n: u64) -> Result<u64, Infallible> {
    let mut x = n | 1;
    for _ in 0..500 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    Ok(x)
}

/// Up to three attempts, from a budget.
#[derive(Clone)]
struct Attempts {
    left: usize,
    budget: Arc<Budget>,
}

impl Attempts {
    fn new() -> Self {
        Attempts {
            left: 2,
            budget: Arc::new(Budget::default()),
        }
    }
}

impl<E> Policy<u64, u64, E> for Attempts {
    type Future = Ready<Self>;

    fn retry(&self, _: &u64, result: Result<&u64, &E>) -> Option<Self::Future> {
        if result.is_ok() {
            self.budget.deposit();
            return None;
        }
        if self.left == 0 || self.budget.withdraw().is_err() {
            return None;
        }
        Some(ready(Attempts {
            left: self.left - 1,
            budget: self.budget.clone(),
        }))
    }

    fn clone_request(&self, req: &u64) -> Option<u64> {
        Some(*req)
    }
}

fn bare(m: &Meter) {
    m.serial("Do/success", || service_fn(echo));
    m.shared("Do/success", || service_fn(echo));
    m.serial("Timeout/yields", || {
        Timeout::new(service_fn(yields), Duration::from_secs(10))
    });
    m.serial("Timeout/yields,none", || service_fn(yields));
}

fn layers(m: &Meter) {
    let limit = || ConcurrencyLimit::new(service_fn(echo), 1000);
    m.serial("Limit/success", limit);
    m.shared("Limit/success", limit);
    let shed = || LoadShed::new(ConcurrencyLimit::new(service_fn(echo), 1000));
    m.serial("Shed/success", shed);
    m.shared("Shed/success", shed);
    m.serial("Shed/alone", || LoadShed::new(service_fn(echo)));
    m.shared("Shed/alone", || LoadShed::new(service_fn(echo)));
    let timeout = || Timeout::new(service_fn(echo), Duration::from_secs(10));
    m.serial("Timeout/unwatched", timeout);
    m.shared("Timeout/unwatched", timeout);
    let retry = || Retry::new(Attempts::new(), service_fn(echo));
    m.serial("Retry/success", retry);
    m.shared("Retry/success", retry);
    let rate = || {
        RateLimit::new(
            service_fn(echo),
            Rate::new(1_000_000_000, Duration::from_secs(1)),
        )
    };
    m.serial("Rate/success", rate); // it cannot be cloned, and so not shared without a Buffer
    let buffer = || Buffer::new(service_fn(echo), 1024);
    m.serial("Buffer/success", buffer);
    m.shared("Buffer/success", buffer);
}

/// Balances over endpoints that do $f, each made with its load by $loaded.
macro_rules! balance {
    ($n:expr, $f:expr, $loaded:expr) => {
        Balance::new(ServiceList::new(
            (0..$n).map(|_| $loaded(service_fn($f))).collect::<Vec<_>>(),
        ))
    };
}

fn by_pending<S>(svc: S) -> PendingRequests<S> {
    PendingRequests::new(svc, CompleteOnResponse::default())
}

fn by_latency<S>(svc: S) -> PeakEwma<S> {
    PeakEwma::new(
        svc,
        Duration::from_millis(30),
        10e9,
        CompleteOnResponse::default(),
    )
}

fn balance(m: &Meter) {
    for n in [3, 10, 100, 1000] {
        let (pending, latency) = (
            format!("Balance/pending-{n}"),
            format!("Balance/latency-{n}"),
        );
        m.serial(&pending, || balance!(n, echo, by_pending));
        m.serial(&latency, || balance!(n, echo, by_latency));
        // A Balance has one owner; who shares it puts a Buffer before it.
        m.shared(&pending, || {
            Buffer::new(balance!(n, echo, by_pending), 1024)
        });
        m.shared(&latency, || {
            Buffer::new(balance!(n, echo, by_latency), 1024)
        });
    }
}

fn stack(m: &Meter) {
    let make = || {
        ServiceBuilder::new()
            .load_shed()
            .concurrency_limit(500)
            .timeout(Duration::from_secs(10))
            .retry(Attempts::new())
            .buffer::<u64>(1024)
            .service(balance!(3, echo, by_latency))
    };
    m.serial("Stack/success", make);
    m.shared("Stack/success", make);
}

fn scaling(m: &Meter) {
    m.shared("Scaling/none", || service_fn(work));
    m.shared("Scaling/balance", || {
        Buffer::new(balance!(100, work, by_latency), 1024)
    });
}
