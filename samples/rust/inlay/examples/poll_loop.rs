//! Many requests in one thread and a poll(2) loop of the host's own. Usage: poll_loop MODEL.gguf [requests]
use inlay::{Completion, Engine, EngineOptions, Event, Model, ModelOptions, Queue, Request, Result};
use std::os::raw::{c_int, c_short, c_ulong};
use std::os::unix::io::AsRawFd;

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}
const POLLIN: c_short = 1;

extern "C" {
    fn poll(fds: *mut PollFd, count: c_ulong, timeout_ms: c_int) -> c_int;
}

/// Takes what was handed to it. False once the request is over.
fn read(index: usize, completion: &mut Completion) -> bool {
    while let Some(event) = completion.try_next() {
        if let Event::Finished(end) = event {
            println!("request {index}: {} tokens, {:?}", end.stats.generated_tokens, end.reason);
        }
    }
    !completion.is_finished()
}

fn run(path: &str, num_requests: usize) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let model = Model::open(path, ModelOptions::new())?;
    let engine = Engine::open(&model, EngineOptions::new())?;
    let queue = Queue::new()?;
    let mut open = (0..num_requests)
        .map(|index| {
            let request = Request::text(format!("The number {index} is special because")).max_new_tokens(24);
            Ok((index, engine.submit_to(&queue, &request)?))
        })
        .collect::<Result<Vec<_>>>()?;

    let mut fds = [PollFd { fd: queue.fd()?.as_raw_fd(), events: POLLIN, revents: 0 }]; // and the host's own
    while !open.is_empty() {
        // SAFETY: there is one entry, and its descriptor is open.
        if unsafe { poll(fds.as_mut_ptr(), 1, -1) } < 1 {
            continue; // a signal
        }
        queue.dispatch()?;
        open.retain_mut(|(index, completion)| read(*index, completion));
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: poll_loop MODEL.gguf [requests]")?;
    run(&path, arguments.next().map_or(Ok(8), |count| count.parse())?)
}
