//! Log-probabilities of a given text.
use crate::call::{lend, sized, slice, switch, Caught};
use crate::engine::Engine;
use crate::error::{check, Result};
use inlay_sys as sys;
use std::ops::ControlFlow;
use std::os::raw::c_void;
use std::ptr::null_mut;

/// A text whose tokens are scored.
#[derive(Debug, Clone)]
pub struct ScoreRequest {
    text: Option<String>,
    ids: Vec<i32>,
    parse_special: bool,
    first: u64,
    priority: i32,
}

/// One scored token, while the closure that gets it runs.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ScoreRow<'a> {
    /// Of `id` in the text, from 0.
    pub position: u64,
    /// The token.
    pub id: i32,
    /// The natural logarithm of its probability, given all before it.
    pub logprob: f32,
    /// What it was predicted by, one a token of the vocabulary.
    pub logits: &'a [f32],
}

impl ScoreRequest {
    fn new(text: Option<String>, ids: Vec<i32>) -> ScoreRequest {
        ScoreRequest { text, ids, parse_special: false, first: 0, priority: 0 }
    }

    /// A text, tokenized with the bos that the model asks for.
    pub fn text(text: impl Into<String>) -> ScoreRequest {
        ScoreRequest::new(Some(text.into()), Vec::new())
    }

    /// Ids, taken as they are.
    pub fn ids(ids: impl Into<Vec<i32>>) -> ScoreRequest {
        ScoreRequest::new(None, ids.into())
    }

    /// Whether control tokens written in the text become ids.
    pub fn parse_special(mut self, on: bool) -> Self {
        self.parse_special = on;
        self
    }

    /// Position of the first token that is scored; default 1, since nothing comes before the first.
    pub fn first(mut self, position: u64) -> Self {
        self.first = position;
        self
    }

    /// As [`Request::priority`](crate::Request::priority).
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    fn fields(&self) -> sys::llm_score_request {
        let mut fields = sys::llm_score_request {
            parse_special: switch(self.parse_special),
            first: self.first,
            priority: self.priority,
            ..Default::default()
        };
        match &self.text {
            Some(text) => fields.text = lend(text.as_bytes()),
            None => {
                fields.ids = self.ids.as_ptr();
                fields.num_ids = self.ids.len();
            }
        }
        fields
    }

    /// A bound: each token has a byte or more of the text, but for the few that the tokenizer adds.
    fn most_tokens(&self) -> usize {
        self.text.as_ref().map_or(self.ids.len(), |text| text.len() + 16)
    }
}

impl Engine {
    /// The log-probability of each token from `first` on, given those before it. Waits for it, among the engine's other
    /// requests.
    pub fn score(&self, request: &ScoreRequest) -> Result<Vec<f32>> {
        let fields = request.fields();
        sized(request.most_tokens(), |logprobs, capacity, count| {
            // SAFETY: what the request points to and the room for the answer are lent for the call.
            unsafe { sys::llm_score(self.raw(), &fields, logprobs, capacity, count) }
        })
    }

    /// Shows each scored token to `row`, in order, on the engine's thread, whose other requests wait meanwhile. `Break`
    /// ends the score with [`Cancelled`](crate::Code::Cancelled); a panic ends it too and goes on. Returns how many
    /// there were.
    pub fn score_rows<F>(&self, request: &ScoreRequest, mut row: F) -> Result<usize>
    where
        F: FnMut(ScoreRow<'_>) -> ControlFlow<()> + Send,
    {
        let mut call = RowCall { row: &mut row, caught: Caught::default() };
        let mut fields = request.fields();
        fields.on_row = Some(on_row);
        fields.user_data = &mut call as *mut RowCall<'_> as *mut c_void;
        let mut count = 0;
        // SAFETY: what the request points to is lent for the call, which alone uses `call` until it returns.
        let scored = check(unsafe { sys::llm_score(self.raw(), &fields, null_mut(), 0, &mut count) });
        call.caught.resume();
        scored.map(|()| count)
    }
}

struct RowCall<'a> {
    row: &'a mut (dyn FnMut(ScoreRow<'_>) -> ControlFlow<()> + Send),
    caught: Caught,
}

unsafe extern "C" fn on_row(user_data: *mut c_void, row: *const sys::llm_score_row) -> i32 {
    // SAFETY: user_data is the RowCall of a call that waits; rows come one after the other. The row is lent.
    let (call, given) = unsafe { (&mut *user_data.cast::<RowCall<'_>>(), &*row) };
    // SAFETY: as above.
    let logits = unsafe { slice(given.logits, given.num_logits) };
    let show = &mut call.row;
    let row = ScoreRow { position: given.position, id: given.id, logprob: given.logprob, logits };
    match call.caught.run(|| show(row)) {
        Some(ControlFlow::Continue(())) => 0,
        _ => 1,
    }
}
