//! A model as a file that opens without repacking.
use crate::call::lend;
use crate::error::{check, Result};
use crate::model_options::ModelOptions;
use crate::source::{Source, SourceCall};
use inlay_sys as sys;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Writes the model of `source`, a GGUF file, as a pack, which [`Model::open`](crate::Model::open) opens like one and
/// whose answers are the same to the bit, with the kernels that it was made for. The file appears at `path` whole,
/// replacing what was there, or not at all.
pub fn save<'s>(source: impl Into<Source<'s>>, mut options: ModelOptions<'_>, path: impl AsRef<Path>) -> Result<()> {
    let source = source.into();
    let call = SourceCall::new(&source);
    let path = lend(path.as_ref().as_os_str().as_bytes());
    let mut progress = options.take_progress();
    let mut fields = options.fields();
    if let Some(progress) = &mut progress {
        progress.set(&mut fields);
    }
    // SAFETY: what the structs point to outlives the call, which keeps none of it.
    let saved = check(unsafe { sys::llm_model_save(&call.fields(), &fields, path.data, path.size) });
    call.resume();
    if let Some(progress) = progress {
        progress.caught.resume();
    }
    saved
}
