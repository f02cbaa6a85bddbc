//! What the engine tells about a request, in memory of its own.
use crate::call::{copy_text, slice};
use crate::error::{Code, Error};
use crate::stats::RequestStats;
use inlay_sys as sys;

/// One event of a request. Versions of the library may add kinds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Tokens of the prompt, from the second on, with the log-probabilities that were asked for; before all output.
    Prompt(Tokens),
    /// Some tokens of the output.
    Tokens(Tokens),
    /// The last event of one choice, where there are several.
    ChoiceFinished(Finished),
    /// The last event, of which there is exactly one.
    Finished(Finished),
    /// A kind that this crate does not know: `LLM_EVENT_*`.
    Other(u32),
}

/// Some tokens of the output, and the text that may be shown now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tokens {
    /// Of a request with several choices, the one they belong to.
    pub choice: u32,
    /// Whole characters; they need not line up with the ids.
    pub text: String,
    /// The tokens.
    pub ids: Vec<i32>,
    /// One row per token, where they were asked for: the chosen id, then the most likely.
    pub logprobs: Vec<Vec<Logprob>>,
}

/// The natural logarithm of a token's probability in the unmodified distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Logprob {
    /// The token.
    pub id: i32,
    /// Its log-probability.
    pub logprob: f32,
}

/// How a request, or one choice of it, ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Which choice: of a whole request with several, the first that did not end well, else the first.
    pub choice: u32,
    /// Why.
    pub reason: FinishReason,
    /// What went wrong, where it did not end by itself.
    pub error: Option<Error>,
    /// Which of the stop strings, or the id of the end or stop token.
    pub stop_index: Option<i32>,
    /// Counts and times.
    pub stats: RequestStats,
}

/// Why a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model's end of text.
    EndToken,
    /// One of `stop_ids`.
    StopToken,
    /// One of `stop_strings`.
    StopString,
    /// `max_new_tokens`, or the end of the context.
    Length,
    /// Cancelled, or the engine shut down.
    Cancelled,
    /// A deadline passed.
    Deadline,
    /// There was no room.
    Rejected,
    /// A fault of the library.
    Error,
    /// One that this crate does not know: `LLM_FINISH_*`.
    Other(i32),
}

impl Event {
    /// # Safety
    /// The library wrote the event, and what it lends is still valid.
    pub(crate) unsafe fn copy(event: &sys::llm_event) -> Event {
        // SAFETY: as above.
        unsafe {
            match event.type_ {
                sys::LLM_EVENT_PROMPT => Event::Prompt(copy_tokens(event)),
                sys::LLM_EVENT_TOKENS => Event::Tokens(copy_tokens(event)),
                sys::LLM_EVENT_CHOICE_FINISHED => Event::ChoiceFinished(copy_finished(event)),
                sys::LLM_EVENT_FINISHED => Event::Finished(copy_finished(event)),
                other => Event::Other(other),
            }
        }
    }
}

unsafe fn copy_tokens(event: &sys::llm_event) -> Tokens {
    // SAFETY: the caller's.
    unsafe {
        Tokens {
            choice: event.choice,
            text: copy_text(event.text),
            ids: slice(event.token_ids, event.num_tokens).to_vec(),
            logprobs: copy_logprobs(event),
        }
    }
}

unsafe fn copy_logprobs(event: &sys::llm_event) -> Vec<Vec<Logprob>> {
    let width = event.logprobs_per_token as usize;
    if width == 0 || event.logprobs.is_null() {
        return Vec::new();
    }
    let at = |index: usize| {
        // SAFETY: [num_tokens, width] of them, logprob_size bytes apart: a newer library's may be larger than ours.
        let entry = unsafe {
            let bytes = event.logprobs.cast::<u8>().add(index * event.logprob_size as usize);
            bytes.cast::<sys::llm_logprob>().read_unaligned()
        };
        Logprob { id: entry.id, logprob: entry.logprob }
    };
    (0..event.num_tokens).map(|row| (0..width).map(|column| at(row * width + column)).collect()).collect()
}

unsafe fn copy_finished(event: &sys::llm_event) -> Finished {
    // SAFETY: the caller's.
    let (message, stats) = unsafe { (copy_text(event.message), RequestStats::copy(event.stats)) };
    Finished {
        choice: event.choice,
        reason: FinishReason::from_c(event.finish_reason),
        error: (event.status != sys::LLM_OK as i32).then(|| Error::new(Code::from_status(event.status), message)),
        stop_index: Some(event.stop_index).filter(|&index| index >= 0),
        stats,
    }
}

impl FinishReason {
    fn from_c(reason: i32) -> FinishReason {
        match reason as u32 {
            sys::LLM_FINISH_END_TOKEN => FinishReason::EndToken,
            sys::LLM_FINISH_STOP_TOKEN => FinishReason::StopToken,
            sys::LLM_FINISH_STOP_STRING => FinishReason::StopString,
            sys::LLM_FINISH_LENGTH => FinishReason::Length,
            sys::LLM_FINISH_CANCELLED => FinishReason::Cancelled,
            sys::LLM_FINISH_DEADLINE => FinishReason::Deadline,
            sys::LLM_FINISH_REJECTED => FinishReason::Rejected,
            sys::LLM_FINISH_ERROR => FinishReason::Error,
            _ => FinishReason::Other(reason),
        }
    }
}
