//! Measures tower, and prints lines like those of `go test -bench`, so that one program reads both.
//!
//!     tower-bench PREFIX MILLISECONDS
//!
//! runs the benchmarks whose name begins with PREFIX, each for that long.

mod allocs;
mod jobs;
mod measure;

#[global_allocator]
static GLOBAL: allocs::Counting = allocs::Counting;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match (args.get(1), args.get(2).and_then(|ms| ms.parse().ok())) {
        (Some(prefix), Some(ms)) => jobs::run(&measure::Meter::new(prefix, ms)),
        _ => {
            eprintln!("usage: tower-bench PREFIX MILLISECONDS");
            std::process::exit(2);
        }
    }
}
