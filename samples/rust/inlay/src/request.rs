//! What to generate, and how.
use crate::call::{duration_ns, lend, switch};
use crate::model::Sampling;
use inlay_sys as sys;
use std::time::Duration;

/// Names a request within its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub(crate) u64);

impl RequestId {
    /// As traces and the C functions write it.
    pub fn get(self) -> u64 {
        self.0
    }
}

#[derive(Clone)]
enum Prompt {
    Text(String),
    Chat(String),
    Ids(Vec<i32>),
}

/// A builder: a prompt, and how to go on from it. What is not set is the library's default. It can be submitted any
/// number of times.
#[derive(Clone)]
pub struct Request {
    prompt: Prompt,
    fields: Fields,
    stop_ids: Vec<i32>,
    stop_strings: Vec<String>,
    bad_words: Vec<String>,
    logit_bias: Vec<sys::llm_logit_bias>,
    cache_salt: String,
}

#[derive(Clone, Default)]
struct Fields(sys::llm_request);

// SAFETY: its pointers are NULL until a submit fills in a copy.
unsafe impl Send for Fields {}
// SAFETY: as above.
unsafe impl Sync for Fields {}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $field:ident = $value:expr;)*) => {$(
        $(#[$doc])*
        pub fn $name(mut self, $name: $type) -> Self {
            self.fields.0.$field = $value;
            self
        }
    )*};
}

impl Request {
    fn new(prompt: Prompt) -> Request {
        Request {
            prompt,
            fields: Fields::default(),
            stop_ids: Vec::new(),
            stop_strings: Vec::new(),
            bad_words: Vec::new(),
            logit_bias: Vec::new(),
            cache_salt: String::new(),
        }
    }

    /// Goes on from a text, tokenized with the bos that the model asks for.
    pub fn text(text: impl Into<String>) -> Request {
        Request::new(Prompt::Text(text.into()))
    }

    /// Answers a chat, as JSON: see [`Model::chat_render`](crate::Model::chat_render).
    pub fn chat(json: impl Into<String>) -> Request {
        Request::new(Prompt::Chat(json.into()))
    }

    /// Answers a chat of messages: who says it ("system", "user", "assistant"), and what.
    pub fn messages<'t>(messages: impl IntoIterator<Item = (&'t str, &'t str)>) -> Request {
        let message = |(role, content)| format!("{{\"role\":{},\"content\":{}}}", quote(role), quote(content));
        let messages: Vec<String> = messages.into_iter().map(message).collect();
        Request::chat(format!("[{}]", messages.join(",")))
    }

    /// Goes on from ids, taken as they are.
    pub fn ids(ids: impl Into<Vec<i32>>) -> Request {
        Request::new(Prompt::Ids(ids.into()))
    }

    /// Samples as a model's files propose, in what they say.
    pub fn sampling(mut self, sampling: &Sampling) -> Self {
        let fields = &mut self.fields.0;
        fields.temperature = sampling.temperature.unwrap_or(fields.temperature);
        fields.top_k = sampling.top_k.unwrap_or(fields.top_k);
        fields.top_p = sampling.top_p.unwrap_or(fields.top_p);
        fields.min_p = sampling.min_p.unwrap_or(fields.min_p);
        fields.repetition_penalty = sampling.repetition_penalty.unwrap_or(fields.repetition_penalty);
        self
    }

    fields! {
        /// Whether control tokens written in the prompt become ids; default: in a chat, not in a text.
        parse_special: bool => parse_special = switch(parse_special);
        /// Default: as many as the context holds.
        max_new_tokens: u32 => max_new_tokens = max_new_tokens;
        /// No end token, stop token or stop string ends the output before.
        min_new_tokens: u32 => min_new_tokens = min_new_tokens;
        /// 0, the default: greedy.
        temperature: f32 => temperature = temperature;
        /// Only the most likely ones; 0: off.
        top_k: i32 => top_k = top_k;
        /// Only the most likely ones that have this probability together; 1: off.
        top_p: f32 => top_p = top_p;
        /// Only those with this share of the most likely one's probability; 0: off.
        min_p: f32 => min_p = min_p;
        /// Goes on behind the end token.
        ignore_eos: bool => ignore_eos = switch(ignore_eos);
        /// Whether the text includes the stop string that ended it; default: no.
        include_stop_string: bool => include_stop_string = switch(include_stop_string);
        /// Whether control tokens give text; default: no.
        render_special: bool => render_special = switch(render_special);
        /// Whether it shares prefixes with others; default: yes.
        prefix_cache: bool => prefix_cache = switch(prefix_cache);
        /// Lower first; only under [`Policy::Priority`](crate::Policy::Priority).
        priority: i32 => priority = priority;
        /// From submit.
        first_token_deadline: Duration => first_token_deadline_ns = duration_ns(first_token_deadline).max(1);
        /// From submit.
        completion_deadline: Duration => completion_deadline_ns = duration_ns(completion_deadline).max(1);
        /// Wished between two tokens: while this request decodes, other prompts come in chunks that fit it.
        token_gap_target: Duration => token_gap_target_ns = duration_ns(token_gap_target).max(1);
        /// On [`Device::Sim`](crate::Device::Sim): when it arrives on the virtual clock, in ns from 1 on; 0: now.
        arrival_ns: i64 => arrival_ns = arrival_ns;
        /// Answers to the prompt, which is computed once. They may differ where there is a temperature.
        choices: u32 => choices = choices;
        /// What [`Engine::session_hint`](crate::Engine::session_hint) names; 0: none.
        session_id: u64 => session_id = session_id;
        /// Outputs of one class are expected to be alike in length.
        request_class: u32 => request_class = request_class;
        /// Shown in traces.
        trace_id: u64 => trace_id = trace_id;
        /// Divides a positive logit of what was there before, multiplies another; 1: off.
        repetition_penalty: f32 => repetition_penalty = repetition_penalty;
        /// Subtracted for each id in the output.
        presence_penalty: f32 => presence_penalty = presence_penalty;
        /// Subtracted each time an id is in the output.
        frequency_penalty: f32 => frequency_penalty = frequency_penalty;
    }

    /// Default: drawn, and told in [`RequestStats::seed`](crate::RequestStats::seed).
    pub fn seed(mut self, seed: u64) -> Self {
        self.fields.0.seed = seed;
        self.fields.0.set |= u64::from(sys::LLM_SET_SEED);
        self
    }

    /// Asks for the chosen id's log-probability and those of the most likely 0 to 20.
    pub fn num_logprobs(mut self, num_logprobs: i32) -> Self {
        self.fields.0.num_logprobs = num_logprobs;
        self.fields.0.set |= u64::from(sys::LLM_SET_NUM_LOGPROBS);
        self
    }

    /// Asks for each prompt token's log-probability and those of the most likely 0 to 20, as [`Event::Prompt`]. The
    /// prompt is then computed, not read from the prefix cache.
    ///
    /// [`Event::Prompt`]: crate::Event::Prompt
    pub fn num_prompt_logprobs(mut self, num_prompt_logprobs: i32) -> Self {
        self.fields.0.num_prompt_logprobs = num_prompt_logprobs;
        self.fields.0.set |= u64::from(sys::LLM_SET_NUM_PROMPT_LOGPROBS);
        self
    }

    /// Tokens that end the output.
    pub fn stop_ids(mut self, ids: impl Into<Vec<i32>>) -> Self {
        self.stop_ids = ids.into();
        self
    }

    /// Texts that end the output.
    pub fn stop_strings<S: Into<String>>(mut self, strings: impl IntoIterator<Item = S>) -> Self {
        self.stop_strings = strings.into_iter().map(Into::into).collect();
        self
    }

    /// Never drawn as these tokens, alone or behind a space.
    pub fn bad_words<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.bad_words = words.into_iter().map(Into::into).collect();
        self
    }

    /// Added to the logits of these ids.
    pub fn logit_bias(mut self, bias: impl IntoIterator<Item = (i32, f32)>) -> Self {
        self.logit_bias = bias.into_iter().map(|(id, bias)| sys::llm_logit_bias { id, bias }).collect();
        self
    }

    /// Cached prefixes are shared only between equal salts.
    pub fn cache_salt(mut self, salt: impl Into<String>) -> Self {
        self.cache_salt = salt.into();
        self
    }

    /// Lends the request as the C struct.
    pub(crate) fn with_fields<T>(&self, use_fields: impl FnOnce(&mut sys::llm_request) -> T) -> T {
        let stop_strings = lend_all(&self.stop_strings);
        let bad_words = lend_all(&self.bad_words);
        let mut fields = self.fields.0;
        match &self.prompt {
            Prompt::Text(text) => fields.text = lend(text.as_bytes()),
            Prompt::Chat(json) => fields.chat = lend(json.as_bytes()),
            Prompt::Ids(ids) => {
                fields.prompt_ids = ids.as_ptr();
                fields.num_prompt_ids = ids.len();
            }
        }
        fields.stop_ids = self.stop_ids.as_ptr();
        fields.num_stop_ids = self.stop_ids.len();
        fields.stop_strings = stop_strings.as_ptr();
        fields.num_stop_strings = stop_strings.len();
        fields.bad_words = bad_words.as_ptr();
        fields.num_bad_words = bad_words.len();
        fields.logit_bias = self.logit_bias.as_ptr();
        fields.num_logit_bias = self.logit_bias.len();
        fields.logit_bias_size = std::mem::size_of::<sys::llm_logit_bias>() as u32;
        fields.cache_salt = lend(self.cache_salt.as_bytes());
        use_fields(&mut fields)
    }
}

fn lend_all(texts: &[String]) -> Vec<sys::llm_string> {
    texts.iter().map(|text| lend(text.as_bytes())).collect()
}

/// A JSON string.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\0'..='\x1f' => quoted.extend(format!("\\u{:04x}", character as u32).chars()),
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn quotes_what_json_would_read_otherwise() {
        assert_eq!(quote("a \"b\\\n\u{1f600}"), r#""a \"b\\\u000a😀""#);
    }
}
