//! Completes a text. Usage: complete MODEL.gguf "text"
use inlay::{Engine, EngineOptions, Event, Model, ModelOptions, Request};
use std::io::Write;

fn complete(path: &str, text: &str) -> Result<(), Box<dyn std::error::Error>> {
    let model = Model::open(path, ModelOptions::new())?;
    let engine = Engine::open(&model, EngineOptions::new())?;
    for event in engine.submit(&Request::text(text).max_new_tokens(32))? {
        match event? {
            Event::Tokens(tokens) => write!(std::io::stdout(), "{}", tokens.text)?,
            Event::Finished(end) => println!("\n({:?} after {} tokens)", end.reason, end.stats.generated_tokens),
            _ => {}
        }
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 3 {
        eprintln!("usage: {} MODEL.gguf \"text\"", arguments[0]);
        std::process::exit(2);
    }
    if let Err(error) = complete(&arguments[1], &arguments[2]) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
