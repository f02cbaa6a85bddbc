//! What the tests share: the tiny model, and an executor of one future.
#![allow(dead_code)]

use inlay::{Drive, Engine, EngineOptions, Model, ModelOptions, Request};
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

pub fn model_path() -> String {
    std::env::var("INLAY_TEST_MODEL")
        .unwrap_or(format!("{}/../../../tests/data/gguf/llama_h64-F32.gguf", env!("CARGO_MANIFEST_DIR")))
}

pub fn model() -> Model {
    Model::open(&model_path(), ModelOptions::new()).expect("the tiny model opens")
}

pub fn options() -> EngineOptions {
    EngineOptions::new().num_threads(2).max_step_tokens(64)
}

pub fn engine() -> Engine {
    Engine::open(&model(), options()).expect("an engine opens")
}

/// Steps when it is told to: what happens between two of them is the test's choice.
pub fn manual_engine() -> Engine {
    Engine::open(&model(), options().drive(Drive::Manual)).expect("an engine opens")
}

/// Ends by its length alone.
pub fn request(text: &str, num_tokens: u32) -> Request {
    Request::text(text).max_new_tokens(num_tokens).ignore_eos(true)
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = Box::pin(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
