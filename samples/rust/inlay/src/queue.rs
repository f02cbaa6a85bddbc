//! A completion queue, and the routes from its events to the completions that they belong to.
//!
//! One thread at a time polls the library's queue, for all: it copies what came to each event's route and wakes who
//! waits there. Routes are named by tickets, which travel as `user_data`: ids of two engines may be equal, and an event
//! may come before its submit returns.
use crate::call::{non_null, timeout_ns};
use crate::close::EngineHandle;
use crate::error::{check, Result};
use crate::event::Event;
use inlay_sys as sys;
use std::collections::{HashMap, VecDeque};
use std::os::raw::c_void;
use std::os::unix::io::BorrowedFd;
use std::ptr::{null_mut, NonNull};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

/// Where the events of any number of requests, of any engines, wait. Clones are one queue.
///
/// Polling takes the events of all its requests: what a completion is slow to read waits in memory, at most the output
/// that its request allows.
#[derive(Clone)]
pub struct Queue {
    shared: Arc<Shared>,
}

struct Shared {
    raw: NonNull<sys::llm_queue>,
    engine: Option<Arc<EngineHandle>>, // the one whose queue this is, else ours to close
    state: Mutex<State>,
    changed: Condvar, // something was routed, or the polling thread left
}

// SAFETY: every function of the library is safe from any thread; `polling` keeps polls apart.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

#[derive(Default)]
struct State {
    routes: HashMap<u64, Route>,
    last_ticket: u64,
    polling: bool,
    poll_again: bool, // somebody wanted to poll meanwhile: what they saw must not stay behind
}

#[derive(Default)]
struct Route {
    events: VecDeque<Event>,
    waker: Option<Waker>,
}

const BATCH: usize = 64;

impl Queue {
    /// A queue of its own.
    pub fn new() -> Result<Queue> {
        let mut raw = null_mut();
        // SAFETY: only writes the handle.
        check(unsafe { sys::llm_queue_create(&mut raw) })?;
        Ok(Queue::from_raw(non_null(raw)?, None))
    }

    pub(crate) fn of_engine(engine: &Arc<EngineHandle>) -> Result<Queue> {
        // SAFETY: the engine is open; its queue lives as long as it does.
        let raw = unsafe { sys::llm_engine_queue(engine.raw()) };
        Ok(Queue::from_raw(non_null(raw)?, Some(engine.clone())))
    }

    fn from_raw(raw: NonNull<sys::llm_queue>, engine: Option<Arc<EngineHandle>>) -> Queue {
        Queue { shared: Arc::new(Shared { raw, engine, state: Mutex::default(), changed: Condvar::new() }) }
    }

    /// A descriptor for poll(2), epoll and their like: readable while events wait, level-triggered. Never read it; call
    /// [`Queue::dispatch`] when it is readable. A loop that then calls `try_next` needs the queue for itself: a thread
    /// that blocks on it, or a task, takes events for all, and the descriptor does not tell.
    pub fn fd(&self) -> Result<BorrowedFd<'_>> {
        let mut fd = -1;
        // SAFETY: the queue is open, and its descriptor stays open as long.
        unsafe {
            check(sys::llm_queue_fd(self.raw(), &mut fd))?;
            Ok(BorrowedFd::borrow_raw(fd))
        }
    }

    /// Hands what waits to the completions, wakes their tasks, and returns at once.
    pub fn dispatch(&self) -> Result<()> {
        let mut state = self.lock();
        if state.polling {
            state.poll_again = true;
            return Ok(());
        }
        self.poll_for_all(state, 0)
    }

    /// The same, waiting at most `timeout` (None: for ever) where nothing waits yet. May return early.
    /// [`FailedPrecondition`](crate::Code::FailedPrecondition): the queue of a manually driven engine.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        let state = self.lock();
        if !state.polling {
            return self.poll_for_all(state, timeout_ns(timeout));
        }
        match timeout {
            Some(timeout) => drop(self.shared.changed.wait_timeout(state, timeout)),
            None => drop(self.shared.changed.wait(state)),
        }
        Ok(())
    }

    /// REQUIRES: nobody polls. Polls until nothing is left, waiting for the first only.
    fn poll_for_all<'a>(&'a self, mut state: MutexGuard<'a, State>, first_timeout_ns: i64) -> Result<()> {
        state.polling = true;
        let mut timeout_ns = first_timeout_ns;
        let mut wakers = Vec::new();
        let result = loop {
            state.poll_again = false;
            drop(state);
            let polled = self.poll_once(timeout_ns);
            timeout_ns = 0;
            state = self.lock();
            match polled {
                Ok(events) if events.is_empty() && !state.poll_again => break Ok(()),
                Ok(events) => state.route(events, &mut wakers),
                Err(error) => {
                    // Whoever waits shall find out too.
                    wakers.extend(state.routes.values_mut().filter_map(|route| route.waker.take()));
                    break Err(error);
                }
            }
        };
        state.polling = false;
        drop(state);
        self.shared.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    /// Copies: what an event lends is valid until the next poll, and only the one polling thread polls.
    fn poll_once(&self, timeout_ns: i64) -> Result<Vec<(u64, Event)>> {
        // SAFETY: integers and pointers are valid when zero.
        let mut events: [sys::llm_event; BATCH] = unsafe { std::mem::zeroed() };
        let mut count = 0;
        let event_size = std::mem::size_of::<sys::llm_event>();
        // SAFETY: there is room for BATCH events of this size.
        check(unsafe { sys::llm_poll(self.raw(), events.as_mut_ptr(), event_size, BATCH, timeout_ns, &mut count) })?;
        // SAFETY: the library wrote these, and what they lend is valid.
        Ok(events[..count].iter().map(|event| (event.user_data as u64, unsafe { Event::copy(event) })).collect())
    }

    pub(crate) fn raw(&self) -> *mut sys::llm_queue {
        self.shared.raw.as_ptr()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }
}

impl State {
    /// Events of a dropped completion have no route any more and go.
    fn route(&mut self, events: Vec<(u64, Event)>, wakers: &mut Vec<Waker>) {
        for (ticket, event) in events {
            if let Some(route) = self.routes.get_mut(&ticket) {
                route.events.push_back(event);
                wakers.extend(route.waker.take());
            }
        }
    }

    fn take(&mut self, ticket: u64) -> Option<Event> {
        self.routes.get_mut(&ticket)?.events.pop_front()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.engine.is_none() {
            // SAFETY: ours, closed once; nobody polls, since who polls owns a share.
            unsafe { sys::llm_queue_close(self.raw.as_ptr()) };
        }
    }
}

/// A route of a queue, as long as it lives.
pub(crate) struct Ticket {
    queue: Queue,
    number: u64,
}

impl Ticket {
    pub(crate) fn new(queue: &Queue) -> Ticket {
        let mut state = queue.lock();
        state.last_ticket += 1;
        let number = state.last_ticket;
        state.routes.insert(number, Route::default());
        drop(state);
        Ticket { queue: queue.clone(), number }
    }

    pub(crate) fn user_data(&self) -> *mut c_void {
        self.number as *mut c_void
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// What was routed so far.
    pub(crate) fn take(&self) -> Option<Event> {
        self.queue.lock().take(self.number)
    }

    /// Likewise; where nothing was, `waker` is woken once something is.
    pub(crate) fn take_or_wake(&self, waker: &Waker) -> Option<Event> {
        let mut state = self.queue.lock();
        let route = state.routes.get_mut(&self.number)?;
        let event = route.events.pop_front();
        if event.is_none() {
            route.waker = Some(waker.clone());
        }
        event
    }

    /// Waits for ever, polling for all where nobody does.
    pub(crate) fn wait(&self) -> Result<Event> {
        let mut state = self.queue.lock();
        loop {
            if let Some(event) = state.take(self.number) {
                return Ok(event);
            }
            if state.polling {
                state = self.queue.shared.changed.wait(state).unwrap_or_else(|poison| poison.into_inner());
            } else {
                self.queue.poll_for_all(state, -1)?;
                state = self.queue.lock();
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let route = self.queue.lock().routes.remove(&self.number);
        drop(route); // outside the lock: a waker's drop is the executor's code
    }
}
