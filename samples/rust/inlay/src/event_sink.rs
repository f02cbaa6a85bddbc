//! A closure that one request's events go to, owned by the library from submit to the last event.
use crate::call::swallow_panic;
use crate::event::Event;
use inlay_sys as sys;
use std::os::raw::c_void;

pub(crate) struct EventSink {
    engine: *mut sys::llm_engine,
    on: Box<dyn FnMut(Event) + Send>,
    panicked: bool,
}

impl EventSink {
    pub(crate) fn new(engine: *mut sys::llm_engine, on: impl FnMut(Event) + Send + 'static) -> EventSink {
        EventSink { engine, on: Box::new(on), panicked: false }
    }

    pub(crate) fn into_raw(self) -> *mut EventSink {
        Box::into_raw(Box::new(self))
    }

    fn give(&mut self, event: Event, id: sys::llm_request_id) {
        if self.panicked {
            return;
        }
        let on = &mut self.on;
        if !swallow_panic(|| on(event)) {
            self.panicked = true;
            // SAFETY: an engine does not close while its callback runs.
            unsafe { sys::llm_cancel(self.engine, id) };
        }
    }
}

pub(crate) unsafe extern "C" fn on_event(user_data: *mut c_void, event: *const sys::llm_event) {
    let sink = user_data.cast::<EventSink>();
    // SAFETY: events of one request come one after the other, and the sink lives up to the last; the event is lent.
    unsafe {
        let is_last = (*event).type_ == sys::LLM_EVENT_FINISHED;
        (*sink).give(Event::copy(&*event), (*event).id);
        if is_last {
            swallow_panic(|| drop(Box::from_raw(sink)));
        }
    }
}
