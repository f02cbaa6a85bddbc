//! The C ABI of libinlay: bindgen's output for `llm.h`, and what that header holds inline.
//!
//! The header says what each function does. `bindings.sh` writes `bindings.rs`; a test regenerates it and compares.

#[allow(missing_docs, non_camel_case_types)]
#[rustfmt::skip]
mod bindings;
pub use bindings::*;

/// `Default` as the header's `*_init` functions: zero is the library's default, and `struct_size` is set.
macro_rules! versioned {
    ($($name:ident)*) => {$(
        impl Default for $name {
            fn default() -> Self {
                // SAFETY: integers, floats, raw pointers and Option<fn> are all valid when zero.
                let mut value: Self = unsafe { std::mem::zeroed() };
                value.struct_size = std::mem::size_of::<Self>() as u32;
                value
            }
        }
    )*};
}

versioned! {
    llm_embed_request
    llm_engine_options
    llm_histogram
    llm_host
    llm_limits
    llm_memory_plan
    llm_metrics_snapshot
    llm_model_info
    llm_model_options
    llm_model_sampling
    llm_model_source
    llm_prefix
    llm_request
    llm_score_request
    llm_sim_costs
    llm_tensor_info
}
