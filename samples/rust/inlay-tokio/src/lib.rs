//! Completions of libinlay as streams on tokio.
//!
//! A [`Driver`] is a task that waits for a queue's descriptor and hands its events on; [`EventStream`] is a completion as
//! a [`Stream`]. Without a driver nothing wakes a waiting completion.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use inlay::{Engine, EngineOptions, Model, ModelOptions, Request};
//!
//! let model = Model::open("model.gguf", ModelOptions::new())?;
//! let engine = Engine::open(&model, EngineOptions::new())?;
//! let _driver = inlay_tokio::Driver::spawn(engine.queue())?;
//! let answer = engine.submit(&Request::text("The capital of Italy is").max_new_tokens(32))?.answer().await?;
//! println!("{}", answer.text());
//! # Ok(())
//! # }
//! ```
//!
//! Opening a model and an engine blocks, and so does dropping an engine's last handle, for as long as a step runs; a
//! server does both in `tokio::task::spawn_blocking`.
#![deny(unsafe_code)]
#![warn(missing_docs)]

use futures_core::Stream;
use inlay::{Completion, Event, Queue};
use std::io;
use std::os::unix::io::{AsRawFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::task::JoinHandle;

/// A task of the current runtime that hands a queue's events to its completions, as long as this lives.
#[derive(Debug)]
pub struct Driver {
    task: JoinHandle<io::Result<()>>,
}

impl Driver {
    /// REQUIRES: within a runtime whose I/O driver is enabled. One driver is enough for a queue.
    pub fn spawn(queue: &Queue) -> io::Result<Driver> {
        let fd = queue.fd().map_err(to_io)?.as_raw_fd();
        let fd = AsyncFd::with_interest(QueueFd { queue: queue.clone(), fd }, Interest::READABLE)?;
        Ok(Driver { task: tokio::spawn(drive(fd)) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Keeps the queue, whose descriptor it is.
struct QueueFd {
    queue: Queue,
    fd: RawFd,
}

impl AsRawFd for QueueFd {
    fn as_raw_fd(&self) -> RawFd {
        self.fd
    }
}

/// Where a poll fails, `dispatch` wakes the completions, which meet the error themselves.
async fn drive(fd: AsyncFd<QueueFd>) -> io::Result<()> {
    loop {
        // Cleared first: tokio watches edges, and what comes while the queue is emptied makes the next one.
        fd.readable().await?.clear_ready();
        fd.get_ref().queue.dispatch().map_err(to_io)?;
    }
}

fn to_io(error: inlay::Error) -> io::Error {
    io::Error::new(io::ErrorKind::Other, error)
}

/// A completion as a stream; dropping it cancels the request.
pub struct EventStream(Completion);

impl EventStream {
    /// Needs a [`Driver`] of the completion's queue.
    pub fn new(completion: Completion) -> EventStream {
        EventStream(completion)
    }

    /// The completion itself.
    pub fn into_inner(self) -> Completion {
        self.0
    }
}

impl Stream for EventStream {
    type Item = inlay::Result<Event>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next(context)
    }
}
