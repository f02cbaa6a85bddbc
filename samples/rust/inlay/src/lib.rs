//! Safe bindings of libinlay, an embedded LLM inference library; `inlay-sys` holds the C functions themselves.
//!
//! A [`Model`] holds weights and tokenizer, an [`Engine`] runs requests on it, and [`Engine::submit`] gives a
//! [`Completion`]: an iterator of events that blocks, a future of the next one, or neither ([`Completion::try_next`]).
//! Dropping it cancels the request.
//!
//! ```no_run
//! use inlay::{Engine, EngineOptions, Event, Model, ModelOptions, Request};
//!
//! # fn main() -> inlay::Result<()> {
//! let model = Model::open("model.gguf", ModelOptions::new())?;
//! let engine = Engine::open(&model, EngineOptions::new())?;
//! for event in engine.submit(&Request::text("The capital of Italy is").max_new_tokens(32))? {
//!     if let Event::Tokens(tokens) = event? {
//!         print!("{}", tokens.text);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Everything that an event holds is copied out of the library's memory, so nothing here borrows from a queue. Handles
//! keep what they need alive and can be dropped in any order. A panic of a closure never crosses the C boundary: one
//! called during a call goes on from that call, one on the library's own threads is caught there.
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

mod call;
mod close;
mod completion;
mod contents;
mod embed;
mod engine;
mod engine_options;
mod error;
mod event;
mod event_sink;
mod host;
mod log;
mod metrics;
mod model;
mod model_options;
mod pack;
mod plan;
mod prefix;
mod queue;
mod records;
mod request;
mod score;
mod sessions;
mod source;
mod stats;

pub use completion::{Answer, Choice, Completion};
pub use contents::TensorInfo;
pub use embed::{EmbedRequest, Pooling};
pub use engine::Engine;
pub use engine_options::{Admission, Drive, EngineOptions, KvType, Policy, SimCosts};
pub use error::{Code, Error, Result};
pub use event::{Event, FinishReason, Finished, Logprob, Tokens};
pub use host::{Allocator, Host};
pub use log::LogLevel;
pub use metrics::{Histogram, HistogramKind, Metrics};
pub use model::{Model, ModelInfo, Sampling};
pub use model_options::{Device, Limits, ModelOptions, Prune, Weights};
pub use pack::{save, save_gguf};
pub use plan::{plan, MemoryPlan};
pub use prefix::{LoadedPrefix, Prefix, PrefixPin};
pub use queue::Queue;
pub use records::{Cursor, RequestRecord, StepRecord};
pub use request::{Request, RequestId};
pub use score::{ScoreRequest, ScoreRow};
pub use sessions::SessionHint;
pub use source::Source;
pub use stats::RequestStats;

/// The major and minor ABI version of the library that is loaded.
pub fn abi_version() -> (u32, u32) {
    // SAFETY: takes nothing and only returns a constant.
    let version = unsafe { inlay_sys::llm_abi_version() };
    (version >> 16, version & 0xffff)
}
