//! What a host knows of the sessions whose prefixes are cached.
use crate::engine::Engine;
use crate::error::{check, Result};
use inlay_sys as sys;

/// What comes after the answer that a session has just got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum SessionHint {
    /// Its next request, soon: its cached prefix is evicted late.
    ToolCall = sys::LLM_HINT_TOOL_CALL,
    /// Its next request, late or never: evicted early.
    Human = sys::LLM_HINT_HUMAN,
}

impl Engine {
    /// Orders the eviction of what requests with this [`Request::session_id`](crate::Request::session_id) left cached,
    /// until its next request. Never waits, changes no answer.
    pub fn session_hint(&self, session_id: u64, hint: SessionHint) -> Result<()> {
        // SAFETY: the engine is open.
        check(unsafe { sys::llm_session_hint(self.raw(), session_id, hint as u32) })
    }

    /// The same for a session that will not come back: what it left is evicted first.
    pub fn session_close(&self, session_id: u64) -> Result<()> {
        // SAFETY: the engine is open.
        check(unsafe { sys::llm_session_close(self.raw(), session_id) })
    }
}
