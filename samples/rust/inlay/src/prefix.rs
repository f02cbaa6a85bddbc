//! Prompt prefixes that stay cached.
use crate::call::{lend, switch};
use crate::engine::Engine;
use crate::error::{check, Result};
use inlay_sys as sys;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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

/// A prefix that was loaded from a file.
#[derive(Debug)]
pub struct LoadedPrefix<'a> {
    /// Those that the file holds.
    pub num_tokens: usize,
    /// Holds its blocks; none, when they were only to be cached.
    pub pin: Option<PrefixPin<'a>>,
}

impl Prefix {
    /// What the fields point to is lent by the prefix.
    fn fields(&self) -> sys::llm_prefix {
        let mut fields = sys::llm_prefix {
            parse_special: self.parse_special.map_or(0, switch),
            cache_salt: lend(self.cache_salt.as_bytes()),
            priority: self.priority,
            ..Default::default()
        };
        match &self.tokens {
            Tokens::Text(text) => fields.text = lend(text.as_bytes()),
            Tokens::Chat(json) => fields.chat = lend(json.as_bytes()),
            Tokens::Ids(ids) => {
                fields.prompt_ids = ids.as_ptr();
                fields.num_prompt_ids = ids.len();
            }
        }
        fields
    }
}

impl Engine {
    /// Computes the prefix where it is not cached, among the engine's other requests, and holds its whole blocks
    /// against eviction. Waits for it, as [`Engine::score`] does.
    pub fn pin(&self, prefix: &Prefix) -> Result<PrefixPin<'_>> {
        let mut id = 0;
        // SAFETY: what the prefix points to is lent for the call.
        check(unsafe { sys::llm_prefix_pin(self.raw(), &prefix.fields(), &mut id) })?;
        Ok(PrefixPin { engine: self, id })
    }

    /// Computes the prefix likewise, and writes its keys and values to a file that any engine of the same model,
    /// kernels and options can load. Keep the file as you would keep the text.
    pub fn save_prefix(&self, prefix: &Prefix, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref().as_os_str().as_bytes();
        // SAFETY: what the prefix points to, and the path, are lent for the call.
        check(unsafe { sys::llm_prefix_save(self.raw(), &prefix.fields(), path.as_ptr().cast(), path.len()) })
    }

    /// Makes a saved prefix findable for requests of that salt, as if it had just been computed.
    pub fn load_prefix(&self, path: impl AsRef<Path>, cache_salt: &str, pin: bool) -> Result<LoadedPrefix<'_>> {
        let path = path.as_ref().as_os_str().as_bytes();
        let salt = lend(cache_salt.as_bytes());
        let (mut num_tokens, mut id) = (0, 0);
        let id_out = if pin { &mut id as *mut sys::llm_pin_id } else { std::ptr::null_mut() };
        // SAFETY: path and salt are lent for the call.
        check(unsafe {
            sys::llm_prefix_load(self.raw(), path.as_ptr().cast(), path.len(), &salt, &mut num_tokens, id_out)
        })?;
        let pin = pin.then_some(PrefixPin { engine: self, id });
        Ok(LoadedPrefix { num_tokens, pin })
    }
}
