//! What a model and an engine on it will take.
use crate::engine_options::EngineOptions;
use crate::error::{check, Result};
use crate::model_options::ModelOptions;
use crate::source::{Source, SourceCall};
use inlay_sys as sys;

/// Bytes and what the options come to; `llm.h` says what each field is.
pub type MemoryPlan = sys::llm_memory_plan;

/// What [`Model::open`](crate::Model::open) and [`Engine::open`](crate::Engine::open) would take, in bytes, from the
/// header of the model's file alone. Fails as they would, except for what only the weights can tell.
pub fn plan<'s>(
    source: impl Into<Source<'s>>,
    model_options: &ModelOptions<'_>,
    engine_options: &EngineOptions,
) -> Result<MemoryPlan> {
    let source = source.into();
    let call = SourceCall::new(&source);
    let mut plan = MemoryPlan::default();
    // SAFETY: what the structs point to outlives the call, which keeps none of it.
    let planned =
        check(unsafe { sys::llm_plan(&call.fields(), &model_options.fields(), &engine_options.fields(), &mut plan) });
    call.resume();
    planned.map(|()| plan)
}
