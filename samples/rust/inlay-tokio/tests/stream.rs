//! Completions on tokio, with one driver for all.
use futures_core::Stream;
use inlay::{Drive, Engine, EngineOptions, Event, Model, ModelOptions, Queue, Request};
use inlay_tokio::{Driver, EventStream};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

fn engine() -> Engine {
    open(EngineOptions::new().num_threads(2).max_step_tokens(64))
}

fn open(options: EngineOptions) -> Engine {
    let path = std::env::var("INLAY_TEST_MODEL")
        .unwrap_or(format!("{}/../../../tests/data/gguf/llama_h64-F32.gguf", env!("CARGO_MANIFEST_DIR")));
    let model = Model::open(&path, ModelOptions::new()).expect("the tiny model opens");
    Engine::open(&model, options).expect("an engine opens")
}

fn request(index: usize) -> Request {
    Request::text(format!("number {index}")).max_new_tokens(20).ignore_eos(true)
}

/// Reads a stream to its end.
struct Collect(EventStream, Vec<i32>);

impl Future for Collect {
    type Output = Vec<i32>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Vec<i32>> {
        loop {
            match Pin::new(&mut self.0).poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(std::mem::take(&mut self.1)),
                Poll::Ready(Some(Ok(Event::Tokens(tokens)))) => self.1.extend(tokens.ids),
                Poll::Ready(Some(event)) => drop(event.expect("no poll fails")),
            }
        }
    }
}

async fn answers_together(engine: Engine, queue: Queue) {
    let alone: Vec<Vec<i32>> =
        (0..16).map(|index| engine.submit(&request(index)).unwrap().wait().unwrap().ids().to_vec()).collect();
    let _driver = Driver::spawn(&queue).unwrap();
    let tasks: Vec<_> = (0..16)
        .map(|index| engine.submit_to(&queue, &request(index)).unwrap())
        .map(|completion| tokio::spawn(Collect(EventStream::new(completion), Vec::new())))
        .collect();
    for (task, alone) in tasks.into_iter().zip(alone) {
        assert_eq!(task.await.unwrap(), alone);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn streams_on_many_threads_get_each_their_own() {
    for _ in 0..4 {
        answers_together(engine(), Queue::new().unwrap()).await;
    }
}

#[tokio::test]
async fn streams_on_one_thread_get_each_their_own() {
    answers_together(engine(), Queue::new().unwrap()).await;
}

#[tokio::test]
async fn a_blocking_reader_beside_leaves_nothing_behind() {
    let engine = engine();
    let _driver = Driver::spawn(engine.queue()).unwrap();
    let blocking = engine.submit(&request(0)).unwrap();
    let blocking = std::thread::spawn(move || blocking.wait().unwrap().ids().len());
    for index in 1..8 {
        assert_eq!(engine.submit(&request(index)).unwrap().answer().await.unwrap().ids().len(), 20);
    }
    assert_eq!(blocking.join().unwrap(), 20);
}

#[tokio::test]
async fn a_dropped_stream_cancels_its_request() {
    let engine = open(EngineOptions::new().drive(Drive::Manual));
    drop(EventStream::new(engine.submit(&request(0)).unwrap()));
    while engine.step().unwrap() {}
    assert_eq!(engine.metrics().unwrap().cancelled_requests_total, 1);
}
