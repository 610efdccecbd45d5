//! The system's allocator, with a count of what was asked of it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub struct Counting;

// Threads that share one counter would slow each other down more than what is measured. Each has its own line of
// the cache; the number of threads is far below that of the slots.
#[repr(align(128))]
struct Slot(AtomicU64, AtomicU64);

const SLOTS: usize = 16;
#[allow(clippy::declare_interior_mutable_const)]
const EMPTY: Slot = Slot(AtomicU64::new(0), AtomicU64::new(0));
static COUNTS: [Slot; SLOTS] = [EMPTY; SLOTS];
static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static MINE: std::cell::Cell<usize> = const { std::cell::Cell::new(usize::MAX) };
}

fn slot() -> &'static Slot {
    let i = MINE.try_with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(NEXT.fetch_add(1, Relaxed) as usize % SLOTS);
        }
        mine.get()
    });
    &COUNTS[i.unwrap_or(0)]
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mine = slot();
        mine.0.fetch_add(1, Relaxed);
        mine.1.fetch_add(layout.size() as u64, Relaxed);
        System.alloc(layout)
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        System.dealloc(ptr, layout)
    }
}

/// How many allocations there have been, and of how many bytes.
pub fn so_far() -> (u64, u64) {
    COUNTS.iter().fold((0, 0), |(n, size), slot| {
        (n + slot.0.load(Relaxed), size + slot.1.load(Relaxed))
    })
}
