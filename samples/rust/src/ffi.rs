//! The part of <inlay/llm.h> that the sample uses, written by hand: plain C structs, no crate needed.
use std::ffi::{c_char, c_void};

pub const OK: i32 = 0;
pub const EVENT_FINISHED: u32 = 3;

#[repr(C)]
pub struct Model {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct Engine {
    _opaque: [u8; 0],
}
#[repr(C)]
pub struct Queue {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    pub data: *const u8,
    pub size: usize,
}

#[repr(C)]
pub struct RequestStats {
    pub struct_size: u32,
    pub prompt_tokens: i32,
    pub cached_tokens: i32,
    pub generated_tokens: i32,
    pub preemptions: i32,
    pub reserved: i32,
    pub recomputed_tokens: i64,
    pub queue_ns: i64,
    pub ttft_ns: i64,
    pub total_ns: i64,
    pub seed: u64,
}

#[repr(C)]
pub struct Event {
    pub kind: u32,
    pub choice: u32,
    pub id: u64,
    pub user_data: *mut c_void,
    pub text: Str,
    pub token_ids: *const i32,
    pub num_tokens: usize,
    pub logprobs: *const c_void,
    pub logprob_size: u32,
    pub logprobs_per_token: u32,
    pub finish_reason: i32,
    pub status: i32,
    pub message: Str,
    pub stats: *const RequestStats,
    pub stop_index: i32,
    pub reserved: i32,
}

/// Zeroed and with its size set, as llm_request_init does (that function is inline in the header).
#[repr(C)]
pub struct Request {
    pub struct_size: u32,
    pub choices: u32,
    pub set: u64,
    pub text: Str,
    pub chat: Str,
    pub prompt_ids: *const i32,
    pub num_prompt_ids: usize,
    pub parse_special: u32,
    pub max_new_tokens: u32,
    pub temperature: f32,
    pub top_k: i32,
    pub top_p: f32,
    pub min_p: f32,
    pub seed: u64,
    pub num_logprobs: i32,
    pub ignore_eos: u32,
    pub stop_ids: *const i32,
    pub num_stop_ids: usize,
    pub stop_strings: *const Str,
    pub num_stop_strings: usize,
    pub include_stop_string: u32,
    pub render_special: u32,
    pub prefix_cache: u32,
    pub priority: i32,
    pub first_token_deadline_ns: i64,
    pub completion_deadline_ns: i64,
    pub cache_salt: Str,
    pub session_id: u64,
    pub trace_id: u64,
    pub adapter_id: u64,
    pub token_gap_target_ns: i64,
    pub arrival_ns: i64,
    pub request_class: u32,
    pub reserved: u32,
    pub kv_transfer: Str,
    pub on_event: Option<extern "C" fn(*mut c_void, *const Event)>,
    pub queue: *mut Queue,
    pub user_data: *mut c_void,
}

extern "C" {
    pub fn llm_abi_version() -> u32;
    pub fn llm_last_error() -> *const c_char;
    pub fn llm_model_open(path: *const u8, size: usize, options: *const c_void, model: *mut *mut Model) -> i32;
    pub fn llm_model_release(model: *mut Model);
    pub fn llm_engine_open(model: *mut Model, options: *const c_void, engine: *mut *mut Engine) -> i32;
    pub fn llm_engine_close(engine: *mut Engine) -> i32;
    pub fn llm_engine_queue(engine: *mut Engine) -> *mut Queue;
    pub fn llm_submit(engine: *mut Engine, request: *const Request, id: *mut u64) -> i32;
    pub fn llm_poll(
        queue: *mut Queue,
        events: *mut Event,
        event_size: usize,
        capacity: usize,
        timeout_ns: i64,
        count: *mut usize,
    ) -> i32;
}
