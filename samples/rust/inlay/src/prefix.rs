//! Prompt prefixes that stay cached.
use crate::call::{lend, switch};
use crate::engine::Engine;
use crate::error::{check, Result};
use inlay_sys as sys;

#[derive(Debug, Clone)]
enum Tokens {
    Text(String),
    Chat(String),
    Ids(Vec<i32>),
}

/// The beginning of prompts to come.
#[derive(Debug, Clone)]
pub struct Prefix {
    tokens: Tokens,
    cache_salt: String,
    parse_special: Option<bool>,
    priority: i32,
}

impl Prefix {
    fn new(tokens: Tokens) -> Prefix {
        Prefix { tokens, cache_salt: String::new(), parse_special: None, priority: 0 }
    }

    /// A text; end it where a word ends, so that longer texts begin with its tokens.
    pub fn text(text: impl Into<String>) -> Prefix {
        Prefix::new(Tokens::Text(text.into()))
    }

    /// JSON as for [`Request::chat`](crate::Request::chat), with `"add_generation_prompt": false`.
    pub fn chat(json: impl Into<String>) -> Prefix {
        Prefix::new(Tokens::Chat(json.into()))
    }

    /// Ids, taken as they are.
    pub fn ids(ids: impl Into<Vec<i32>>) -> Prefix {
        Prefix::new(Tokens::Ids(ids.into()))
    }

    /// Only requests of an equal salt find it.
    pub fn cache_salt(mut self, salt: impl Into<String>) -> Self {
        self.cache_salt = salt.into();
        self
    }

    /// Whether control tokens written in the text or chat become ids.
    pub fn parse_special(mut self, on: bool) -> Self {
        self.parse_special = Some(on);
        self
    }

    /// As [`Request::priority`](crate::Request::priority).
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }
}

/// Holds a prefix until it is dropped.
#[derive(Debug)]
pub struct PrefixPin<'a> {
    engine: &'a Engine,
    id: sys::llm_pin_id,
}

impl Drop for PrefixPin<'_> {
    fn drop(&mut self) {
        // SAFETY: the engine is open. After a shutdown there is nothing left to unpin.
        unsafe { sys::llm_prefix_unpin(self.engine.raw(), self.id) };
    }
}

impl Engine {
    /// Computes the prefix where it is not cached, among the engine's other requests, and holds its whole blocks
    /// against eviction. Waits for it, as [`Engine::score`] does.
    pub fn pin(&self, prefix: &Prefix) -> Result<PrefixPin<'_>> {
        let mut fields = sys::llm_prefix {
            parse_special: prefix.parse_special.map_or(0, switch),
            cache_salt: lend(prefix.cache_salt.as_bytes()),
            priority: prefix.priority,
            ..Default::default()
        };
        match &prefix.tokens {
            Tokens::Text(text) => fields.text = lend(text.as_bytes()),
            Tokens::Chat(json) => fields.chat = lend(json.as_bytes()),
            Tokens::Ids(ids) => {
                fields.prompt_ids = ids.as_ptr();
                fields.num_prompt_ids = ids.len();
            }
        }
        let mut id = 0;
        // SAFETY: what the prefix points to is lent for the call.
        check(unsafe { sys::llm_prefix_pin(self.raw(), &fields, &mut id) })?;
        Ok(PrefixPin { engine: self, id })
    }
}
