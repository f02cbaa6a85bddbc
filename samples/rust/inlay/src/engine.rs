//! An engine: KV memory, scheduler, threads.
use crate::call::{lend, non_null, sized, timeout_ns, utf8};
use crate::close::EngineHandle;
use crate::completion::Completion;
use crate::engine_options::EngineOptions;
use crate::error::{check, Result};
use crate::event::Event;
use crate::event_sink::{on_event, EventSink};
use crate::metrics::{Histogram, HistogramKind, Metrics};
use crate::model::Model;
use crate::queue::{Queue, Ticket};
use crate::request::{Request, RequestId};
use inlay_sys as sys;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

/// Runs requests on a model. Clones, and the completions of its requests, are one engine, which closes with the last of
/// them: it ends what still runs and waits for the running step.
#[derive(Clone)]
pub struct Engine {
    handle: Arc<EngineHandle>,
    queue: Queue,
    manual: bool,
}

impl Engine {
    /// Opens an engine with a queue of its own for requests that name none.
    pub fn open(model: &Model, options: EngineOptions) -> Result<Engine> {
        let mut raw = null_mut();
        // SAFETY: the model is open; what the log needs is kept with the handle.
        check(unsafe { sys::llm_engine_open(model.raw(), &options.fields(), &mut raw) })?;
        let manual = options.is_manual();
        let handle = EngineHandle::new(non_null(raw)?, options, model.clone());
        let queue = Queue::of_engine(&handle)?;
        Ok(Engine { handle, queue, manual })
    }

    /// The model that it runs.
    pub fn model(&self) -> &Model {
        self.handle.model()
    }

    /// The queue of requests that name none.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Takes a request in; its events come through the engine's queue.
    pub fn submit(&self, request: &Request) -> Result<Completion> {
        self.submit_to(&self.queue, request)
    }

    /// Takes a request in; its events come through `queue`, which any number of engines may share.
    pub fn submit_to(&self, queue: &Queue, request: &Request) -> Result<Completion> {
        let ticket = Ticket::new(queue);
        let id = request.with_fields(|fields| {
            fields.queue = queue.raw();
            fields.user_data = ticket.user_data();
            self.submit_raw(fields)
        })?;
        Ok(Completion::new(self.clone(), ticket, id))
    }

    /// Takes a request in whose events a closure gets, in order, on the library's delivery thread (with manual drive:
    /// inside [`Engine::step`]). It may submit and cancel. If it panics, the request is cancelled and the closure called
    /// no more.
    pub fn submit_with(&self, request: &Request, on: impl FnMut(Event) + Send + 'static) -> Result<RequestId> {
        let sink = EventSink::new(self.handle.raw(), on).into_raw();
        let submitted = request.with_fields(|fields| {
            fields.on_event = Some(on_event);
            fields.user_data = sink.cast();
            self.submit_raw(fields)
        });
        if submitted.is_err() {
            // SAFETY: a request that was not taken in has no events, so the sink is still ours.
            drop(unsafe { Box::from_raw(sink) });
        }
        submitted
    }

    fn submit_raw(&self, fields: &sys::llm_request) -> Result<RequestId> {
        let mut id = 0;
        // SAFETY: what the request points to is lent for the call; its queue or sink outlives its events.
        check(unsafe { sys::llm_submit(self.raw(), fields, &mut id) })?;
        Ok(RequestId(id))
    }

    /// Ends a request within one step. [`NotFound`](crate::Code::NotFound): it ended before; harmless.
    pub fn cancel(&self, id: RequestId) -> Result<()> {
        // SAFETY: the engine is open.
        check(unsafe { sys::llm_cancel(self.raw(), id.0) })
    }

    /// Runs one step on this thread, with [`Drive::Manual`](crate::Drive::Manual). False: there was nothing to do.
    pub fn step(&self) -> Result<bool> {
        let mut worked = 0;
        // SAFETY: the engine is open.
        check(unsafe { sys::llm_engine_step(self.raw(), &mut worked) })?;
        Ok(worked != 0)
    }

    /// Stops intake and ends every open request, whose last events still come. Waits at most `timeout` (None: for ever)
    /// for the running step and callbacks; [`DeadlineExceeded`](crate::Code::DeadlineExceeded): not yet, call again.
    pub fn shutdown(&self, timeout: Option<Duration>) -> Result<()> {
        // SAFETY: the engine is open.
        check(unsafe { sys::llm_engine_shutdown(self.raw(), timeout_ns(timeout)) })
    }

    /// Empties the prefix cache before the next step.
    pub fn flush_cache(&self) -> Result<()> {
        // SAFETY: the engine is open.
        check(unsafe { sys::llm_cache_flush(self.raw()) })
    }

    /// Every counter, as of the end of the last step.
    pub fn metrics(&self) -> Result<Metrics> {
        let mut metrics = Metrics::default();
        // SAFETY: the engine is open.
        check(unsafe { sys::llm_metrics(self.raw(), &mut metrics) })?;
        Ok(metrics)
    }

    /// One histogram, as of the end of the last step.
    pub fn histogram(&self, kind: HistogramKind) -> Result<Histogram> {
        let mut histogram = sys::llm_histogram::default();
        // SAFETY: the engine is open.
        check(unsafe { sys::llm_metrics_histogram(self.raw(), kind as u32, &mut histogram) })?;
        Ok(Histogram::copy(&histogram))
    }

    /// One histogram of the requests of one class: of first tokens, gaps or completion alone.
    pub fn class_histogram(&self, request_class: u32, kind: HistogramKind) -> Result<Histogram> {
        let mut histogram = sys::llm_histogram::default();
        let which = kind as u32;
        // SAFETY: the engine is open.
        check(unsafe { sys::llm_metrics_class_histogram(self.raw(), request_class, which, &mut histogram) })?;
        Ok(Histogram::copy(&histogram))
    }

    /// Every counter and histogram as Prometheus text, version 0.0.4.
    pub fn metrics_text(&self) -> Result<String> {
        let text = sized(32 * 1024, |text: *mut u8, capacity, size| {
            // SAFETY: the room for the text is lent for the call.
            unsafe { sys::llm_metrics_text(self.raw(), text.cast(), capacity, size) }
        })?;
        Ok(utf8(text))
    }

    /// Records steps, requests and callbacks until [`Engine::trace_stop`] or the close writes them to `path`, as
    /// Chrome's trace format.
    pub fn trace_start(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = lend(path.as_ref().as_os_str().as_bytes());
        // SAFETY: the path is lent for the call.
        check(unsafe { sys::llm_trace_start(self.raw(), path.data, path.size) })
    }

    /// Writes the trace.
    pub fn trace_stop(&self) -> Result<()> {
        // SAFETY: the engine is open.
        check(unsafe { sys::llm_trace_stop(self.raw()) })
    }

    pub(crate) fn raw(&self) -> *mut sys::llm_engine {
        self.handle.raw()
    }

    pub(crate) fn is_manual(&self) -> bool {
        self.manual
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Engine").field("raw", &self.raw()).finish_non_exhaustive()
    }
}
