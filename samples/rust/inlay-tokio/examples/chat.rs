//! Streams several answers at once on tokio. Usage: chat MODEL.gguf "question" ...
use futures_core::Stream;
use inlay::{Completion, Engine, EngineOptions, Event, Model, ModelOptions, Request};
use inlay_tokio::{Driver, EventStream};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// `StreamExt::next` of the futures crate, which this example does without.
struct Next<'a>(&'a mut EventStream);

impl Future for Next<'_> {
    type Output = Option<inlay::Result<Event>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut *self.0).poll_next(context)
    }
}

async fn answer(question: String, completion: Completion) -> inlay::Result<()> {
    let mut text = String::new();
    let mut events = EventStream::new(completion);
    while let Some(event) = Next(&mut events).await {
        match event? {
            Event::Tokens(tokens) => text.push_str(&tokens.text),
            Event::Finished(end) => println!("{question}\n{text}\n({} tokens)\n", end.stats.generated_tokens),
            _ => {}
        }
    }
    Ok(())
}

fn request(model: &Model, question: &str) -> inlay::Result<Request> {
    let request = match model.info()?.has_chat_template {
        true => Request::messages([("user", question)]),
        false => Request::text(question),
    };
    Ok(request.sampling(&model.sampling()?).max_new_tokens(48))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: chat MODEL.gguf \"question\" ...")?;
    let model = Model::open(&path, ModelOptions::new())?;
    let engine = Engine::open(&model, EngineOptions::new())?;
    let _driver = Driver::spawn(engine.queue())?;
    let mut tasks = Vec::new();
    for question in arguments {
        let completion = engine.submit(&request(&model, &question)?)?;
        tasks.push(tokio::spawn(answer(question, completion)));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}
