//! Streams many answers at once, each read by a thread of its own. Usage: many MODEL.gguf [requests]
use inlay::{Completion, Engine, EngineOptions, Event, Model, ModelOptions, Request, Result};
use std::thread;

fn stream(index: usize, completion: Completion) -> Result<()> {
    let mut pieces = 0;
    for event in completion {
        match event? {
            Event::Tokens(_) => pieces += 1,
            Event::Finished(end) => println!(
                "request {index}: {} tokens in {pieces} pieces, the first after {:.1} ms",
                end.stats.generated_tokens,
                end.stats.ttft_ns.unwrap_or(-1) as f64 / 1e6
            ),
            _ => {}
        }
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: many MODEL.gguf [requests]")?;
    let num_requests = arguments.next().map_or(Ok(8), |count| count.parse())?;

    let model = Model::open(&path, ModelOptions::new())?;
    let engine = Engine::open(&model, EngineOptions::new())?;
    let threads = (0..num_requests)
        .map(|index| {
            let text = format!("The number {index} is special because");
            let completion = engine.submit(&Request::text(text).max_new_tokens(24))?;
            Ok(thread::spawn(move || stream(index, completion)))
        })
        .collect::<Result<Vec<_>>>()?;
    for thread in threads {
        thread.join().expect("a thread panicked")?;
    }
    Ok(())
}
