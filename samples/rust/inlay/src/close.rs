//! The engine's handle, which closes itself, even where its last owner goes inside one of its callbacks.
use crate::engine_options::EngineOptions;
use crate::error::{check, Code, Result};
use crate::host::HostHooks;
use crate::log::LogSink;
use crate::model::Model;
use inlay_sys as sys;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;

pub(crate) struct EngineHandle {
    raw: Raw,
    kept: ManuallyDrop<Kept>,
}

/// What the engine's threads use up to its close.
struct Kept {
    model: Model, // for its log and its memory; the engine itself needs no handle
    _log: Option<Arc<LogSink>>,
    _host: Option<Arc<HostHooks>>,
}

#[derive(Clone, Copy)]
struct Raw(NonNull<sys::llm_engine>);

// SAFETY: every function of the library is safe from any thread.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

impl Raw {
    /// # Safety
    /// The engine is open; once this succeeds, it is not.
    unsafe fn close(self) -> Result<()> {
        // SAFETY: as above.
        check(unsafe { sys::llm_engine_close(self.0.as_ptr()) })
    }
}

impl EngineHandle {
    pub(crate) fn new(raw: NonNull<sys::llm_engine>, options: EngineOptions, model: Model) -> Arc<EngineHandle> {
        let kept = Kept { model, _log: options.log, _host: options.host };
        Arc::new(EngineHandle { raw: Raw(raw), kept: ManuallyDrop::new(kept) })
    }

    pub(crate) fn raw(&self) -> *mut sys::llm_engine {
        self.raw.0.as_ptr()
    }

    pub(crate) fn model(&self) -> &Model {
        &self.kept.model
    }
}

impl Drop for EngineHandle {
    fn drop(&mut self) {
        let raw = self.raw;
        // SAFETY: taken once, here; from now on nothing reads the field.
        let kept = unsafe { ManuallyDrop::take(&mut self.kept) };
        // SAFETY: open, and this was its last owner.
        match unsafe { raw.close() } {
            Ok(()) => drop(kept),
            Err(error) if error.code() == Code::FailedPrecondition => close_elsewhere(raw, ManuallyDrop::new(kept)),
            Err(_) => std::mem::forget(kept), // it may still run: better lost than freed under it
        }
    }
}

/// A callback cannot wait for itself to return; another thread can. Where none can be had, the engine is lost.
fn close_elsewhere(raw: Raw, mut kept: ManuallyDrop<Kept>) {
    let close = move || {
        let raw = raw; // whole, not its pointer alone, which is not Send
                       // SAFETY: still open, since the first close did nothing; `kept` is dropped once.
        unsafe {
            if raw.close().is_ok() {
                ManuallyDrop::drop(&mut kept);
            }
        }
    };
    let _ = std::thread::Builder::new().name("inlay-close".into()).spawn(close);
}
