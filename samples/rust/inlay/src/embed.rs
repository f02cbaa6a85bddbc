//! A text as one vector.
use crate::call::{lend, sized, switch};
use crate::engine::Engine;
use crate::error::Result;
use inlay_sys as sys;

/// How the hidden states of a text's tokens become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Pooling {
    /// The mean of all.
    Mean = sys::LLM_POOLING_MEAN,
    /// The last token's.
    Last = sys::LLM_POOLING_LAST,
}

/// A text that becomes a vector.
#[derive(Debug, Clone)]
pub struct EmbedRequest {
    text: Option<String>,
    ids: Vec<i32>,
    parse_special: bool,
    pooling: u32,
    normalize: u32,
    priority: i32,
}

impl EmbedRequest {
    fn new(text: Option<String>, ids: Vec<i32>) -> EmbedRequest {
        EmbedRequest { text, ids, parse_special: false, pooling: 0, normalize: 0, priority: 0 }
    }

    /// A text, tokenized with the bos and eos that the model asks for.
    pub fn text(text: impl Into<String>) -> EmbedRequest {
        EmbedRequest::new(Some(text.into()), Vec::new())
    }

    /// Ids, taken as they are.
    pub fn ids(ids: impl Into<Vec<i32>>) -> EmbedRequest {
        EmbedRequest::new(None, ids.into())
    }

    /// Whether control tokens written in the text become ids.
    pub fn parse_special(mut self, on: bool) -> Self {
        self.parse_special = on;
        self
    }

    /// Default: the mean.
    pub fn pooling(mut self, pooling: Pooling) -> Self {
        self.pooling = pooling as u32;
        self
    }

    /// To length 1, so that a dot product is the cosine; default: yes.
    pub fn normalize(mut self, on: bool) -> Self {
        self.normalize = switch(on);
        self
    }

    /// As [`Request::priority`](crate::Request::priority).
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }
}

impl Engine {
    /// The hidden states of a text, pooled into one vector of the model's hidden size. Waits for it, as
    /// [`Engine::score`] does.
    pub fn embed(&self, request: &EmbedRequest) -> Result<Vec<f32>> {
        let mut fields = sys::llm_embed_request {
            parse_special: switch(request.parse_special),
            pooling: request.pooling,
            normalize: request.normalize,
            priority: request.priority,
            ..Default::default()
        };
        match &request.text {
            Some(text) => fields.text = lend(text.as_bytes()),
            None => {
                fields.ids = request.ids.as_ptr();
                fields.num_ids = request.ids.len();
            }
        }
        let hidden_size = self.model().info()?.hidden_size as usize;
        sized(hidden_size, |values, capacity, count| {
            // SAFETY: what the request points to and the room for the vector are lent for the call.
            unsafe { sys::llm_embed(self.raw(), &fields, values, capacity, count) }
        })
    }
}
