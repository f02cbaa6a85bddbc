//! A closure that the library's log lines go to.
use crate::call::swallow_panic;
use inlay_sys as sys;
use std::os::raw::{c_char, c_void};
use std::sync::Arc;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// At most one line a step.
    Debug,
    /// At open and close.
    Info,
    /// A wish of the caller was changed.
    Warning,
    /// Once per failure.
    Error,
}

/// Called from any thread of the library, at the same time too: hence Send and Sync.
type Log = dyn Fn(LogLevel, &str) + Send + Sync;

pub(crate) struct LogSink(Box<Log>);

impl LogSink {
    pub(crate) fn new(log: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Arc<LogSink> {
        Arc::new(LogSink(Box::new(log)))
    }
}

/// The two fields of an options struct. The sink must live as long as what is opened with them.
pub(crate) fn log_fields(sink: Option<&Arc<LogSink>>) -> (sys::llm_log_callback, *mut c_void) {
    match sink {
        Some(sink) => (Some(on_log), Arc::as_ptr(sink) as *mut c_void),
        None => (None, std::ptr::null_mut()),
    }
}

unsafe extern "C" fn on_log(user_data: *mut c_void, level: i32, message: *const c_char, size: u64) {
    // SAFETY: user_data is the LogSink that whoever opened the handle keeps; it is only shared.
    let sink = unsafe { &*user_data.cast::<LogSink>() };
    let level = match level as u32 {
        sys::LLM_LOG_DEBUG => LogLevel::Debug,
        sys::LLM_LOG_INFO => LogLevel::Info,
        sys::LLM_LOG_WARNING => LogLevel::Warning,
        _ => LogLevel::Error,
    };
    // SAFETY: the message is valid until this returns.
    let message = unsafe { crate::call::slice(message.cast::<u8>(), size as usize) };
    swallow_panic(|| (sink.0)(level, &String::from_utf8_lossy(message)));
}
