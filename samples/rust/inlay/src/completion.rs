//! The caller's end of one request.
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::event::{Event, Finished};
use crate::queue::{Queue, Ticket};
use crate::request::RequestId;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The events of one request, in order, the last of them [`Event::Finished`]. Dropping it cancels the request.
///
/// As an iterator it blocks; [`Completion::next_event`] is a future and [`Completion::poll_next`] what a stream needs,
/// both of which wait for somebody to call [`Queue::dispatch`] when the queue's descriptor is readable;
/// [`Completion::try_next`] does neither. With [`Drive::Manual`](crate::Drive::Manual) the iterator runs the steps.
pub struct Completion {
    engine: Engine,
    ticket: Ticket,
    id: RequestId,
    ended: bool,
}

/// What a request came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// As many as the request asked for; at least one.
    pub choices: Vec<Choice>,
    /// How it ended.
    pub finished: Finished,
}

/// One answer to the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    /// All its text.
    pub text: String,
    /// All its tokens.
    pub ids: Vec<i32>,
}

impl Answer {
    /// The first choice's text.
    pub fn text(&self) -> &str {
        self.choices.first().map_or("", |choice| &choice.text)
    }

    /// The first choice's tokens.
    pub fn ids(&self) -> &[i32] {
        self.choices.first().map_or(&[], |choice| &choice.ids)
    }
}

impl Completion {
    pub(crate) fn new(engine: Engine, ticket: Ticket, id: RequestId) -> Completion {
        Completion { engine, ticket, id, ended: false }
    }

    /// Names the request within its engine.
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// The queue that its events come through.
    pub fn queue(&self) -> &Queue {
        self.ticket.queue()
    }

    /// Whether the last event was taken.
    pub fn is_finished(&self) -> bool {
        self.ended
    }

    /// Asks for the end; what is left of the events, up to `Finished`, still comes.
    pub fn cancel(&self) -> Result<()> {
        self.engine.cancel(self.id)
    }

    /// The next event that [`Queue::dispatch`] or [`Queue::wait`] handed here. It takes nothing from the queue itself:
    /// that could hand events to completions which the caller's loop has read before, and would not look at again.
    pub fn try_next(&mut self) -> Option<Event> {
        let event = self.ticket.take()?;
        Some(self.taken(event))
    }

    /// The next event, None after the last; the task is woken when it comes.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Event>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let mut event = self.ticket.take_or_wake(context.waker());
        if event.is_none() {
            if let Err(error) = self.queue().dispatch() {
                return Poll::Ready(Some(Err(error)));
            }
            event = self.ticket.take();
        }
        match event {
            Some(event) => Poll::Ready(Some(Ok(self.taken(event)))),
            None => Poll::Pending,
        }
    }

    /// A future of the next event, None after the last. Dropping it loses nothing.
    pub fn next_event(&mut self) -> impl Future<Output = Option<Result<Event>>> + '_ {
        NextEvent(self)
    }

    /// Blocks until the end. A request that did not end well is the error that its last event tells.
    pub fn wait(self) -> Result<Answer> {
        let mut gathered = Gathered::default();
        for event in self {
            gathered.add(event?);
        }
        gathered.answer()
    }

    /// Likewise, as a future.
    pub async fn answer(mut self) -> Result<Answer> {
        let mut gathered = Gathered::default();
        while let Some(event) = self.next_event().await {
            gathered.add(event?);
        }
        gathered.answer()
    }

    fn taken(&mut self, event: Event) -> Event {
        self.ended = matches!(event, Event::Finished(_));
        event
    }

    /// Steps the engine until an event is there; whoever else takes them from the queue routes them here.
    fn step_for_event(&mut self) -> Result<Event> {
        loop {
            self.queue().dispatch()?;
            if let Some(event) = self.try_next() {
                return Ok(event);
            }
            if !self.engine.step()? {
                std::thread::yield_now();
            }
        }
    }
}

impl Iterator for Completion {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        if self.ended {
            return None;
        }
        if self.engine.is_manual() {
            return Some(self.step_for_event());
        }
        Some(self.ticket.wait().map(|event| self.taken(event)))
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.cancel(); // NOT_FOUND: it ended meanwhile
        }
    }
}

struct NextEvent<'a>(&'a mut Completion);

impl Future for NextEvent<'_> {
    type Output = Option<Result<Event>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_next(context)
    }
}

#[derive(Default)]
struct Gathered {
    choices: Vec<Choice>,
    finished: Option<Finished>,
}

impl Gathered {
    fn add(&mut self, event: Event) {
        match event {
            Event::Tokens(tokens) => {
                let choice = self.choice(tokens.choice);
                choice.text.push_str(&tokens.text);
                choice.ids.extend(tokens.ids);
            }
            Event::ChoiceFinished(finished) => _ = self.choice(finished.choice),
            Event::Finished(finished) => self.finished = Some(finished),
            _ => {}
        }
    }

    fn choice(&mut self, index: u32) -> &mut Choice {
        let index = index as usize;
        if self.choices.len() <= index {
            self.choices.resize_with(index + 1, Choice::default);
        }
        &mut self.choices[index]
    }

    fn answer(mut self) -> Result<Answer> {
        self.choice(0); // also where it is empty
        let finished = self.finished.ok_or_else(|| Error::internal("the events ended without the last"))?;
        match &finished.error {
            Some(error) => Err(error.clone()),
            None => Ok(Answer { choices: self.choices, finished }),
        }
    }
}
