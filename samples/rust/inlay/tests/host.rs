//! Memory, threads and clock of the host; sessions; records.
#![deny(unsafe_op_in_unsafe_fn)]
mod common;

use inlay::{Allocator, Cursor, Engine, Host, Model, ModelOptions, SessionHint};
use std::alloc::{alloc, dealloc, Layout};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Remembers what it gave, as the system's needs on return.
#[derive(Default)]
struct Counted {
    given: Mutex<HashMap<usize, Layout>>,
    most: AtomicUsize,
}

// SAFETY: the system allocator's memory, given once.
unsafe impl Allocator for Counted {
    fn allocate(&self, bytes: usize, alignment: usize) -> *mut u8 {
        let layout = match Layout::from_size_align(bytes.max(1), alignment) {
            Ok(layout) => layout,
            Err(_) => return std::ptr::null_mut(),
        };
        let memory = unsafe { alloc(layout) };
        if !memory.is_null() {
            let mut given = self.given.lock().unwrap();
            given.insert(memory as usize, layout);
            self.most.fetch_max(given.len(), Ordering::SeqCst);
        }
        memory
    }

    unsafe fn deallocate(&self, memory: *mut u8, _bytes: usize) {
        if let Some(layout) = self.given.lock().unwrap().remove(&(memory as usize)) {
            unsafe { dealloc(memory, layout) }
        }
    }
}

#[test]
fn memory_threads_and_time_come_from_the_host() {
    let request = common::request("hooked", 6);
    let expected = common::engine().submit(&request).unwrap().wait().unwrap();
    let memory = Arc::new(Counted::default());
    let runs = Arc::new(AtomicUsize::new(0));
    let time = Arc::new(AtomicI64::new(0));
    let (counts, ticks) = (runs.clone(), time.clone());
    let host = Host::new()
        .allocator(memory.clone())
        .executor(move |count, task| {
            counts.fetch_add(1, Ordering::SeqCst);
            std::thread::scope(|scope| {
                for index in 0..count {
                    scope.spawn(move || task(index));
                }
            });
        })
        .clock(move || ticks.fetch_add(1000, Ordering::SeqCst));
    let model = Model::open(&common::model_path(), ModelOptions::new().host(host.clone())).unwrap();
    let engine = Engine::open(&model, common::options().host(host)).unwrap();
    assert_eq!(engine.submit(&request).unwrap().wait().unwrap().choices, expected.choices);
    drop(model);
    drop(engine);
    assert!(memory.most.load(Ordering::SeqCst) > 0 && runs.load(Ordering::SeqCst) > 0);
    assert!(time.load(Ordering::SeqCst) > 0);
    assert!(memory.given.lock().unwrap().is_empty(), "all of it came back");
    assert_eq!(Arc::strong_count(&memory), 1, "the hooks went with the handles");
}

#[test]
fn an_executor_that_panics_makes_the_engine_unhealthy_and_no_more() {
    let host = Host::new().executor(|_, _| panic!("in an executor"));
    let engine = Engine::open(&common::model(), common::options().host(host));
    if let Ok(engine) = engine {
        let answer = engine.submit(&common::request("a", 2)).and_then(|completion| completion.wait());
        assert!(answer.is_err());
    }
}

#[test]
fn a_session_is_hinted_and_closed() {
    let engine = common::engine();
    engine.submit(&common::request("session", 2).session_id(9)).unwrap().wait().unwrap();
    engine.session_hint(9, SessionHint::ToolCall).unwrap();
    engine.session_hint(9, SessionHint::Human).unwrap();
    engine.session_close(9).unwrap();
    engine.session_close(10).unwrap();
}

#[test]
fn records_tell_of_every_step_and_request_once() {
    let engine = common::manual_engine();
    engine.submit(&common::request("records", 5)).unwrap().wait().unwrap();
    while engine.step().unwrap() {}
    let (mut steps, mut changes) = (Cursor::default(), Cursor::default());
    let read = engine.read_steps(&mut steps).unwrap();
    assert_eq!(read.iter().map(|step| step.generated_tokens).sum::<u32>(), 5);
    assert!(engine.read_steps(&mut steps).unwrap().is_empty());
    let generated: u32 = engine
        .read_records(&mut changes)
        .unwrap()
        .iter()
        .filter(|record| record.kind == inlay_sys::LLM_RECORD_TOKENS)
        .map(|record| record.tokens)
        .sum();
    assert_eq!(generated, 5);
}
