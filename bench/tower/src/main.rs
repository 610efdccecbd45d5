//! Measures tower, and prints lines like those of `go test -bench`, so that one program reads both.
//!
//!     tower-bench REGEX-FREE-PREFIX MILLISECONDS
//!
//! runs the benchmarks whose name begins with the prefix, each for that long.

mod allocs;
mod jobs;
mod measure;

#[global_allocator]
static GLOBAL: allocs::Counting = allocs::Counting;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (Some(prefix), Some(Ok(ms))) = (args.get(1), args.get(2).map(|ms| ms.parse())) else {
        eprintln!("usage: tower-bench PREFIX MILLISECONDS");
        std::process::exit(2);
    };
    jobs::run(&measure::Meter::new(prefix, ms));
}
