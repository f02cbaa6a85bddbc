//! A model written to a file: one that opens without repacking, or a GGUF file.
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
pub fn save<'s>(source: impl Into<Source<'s>>, options: ModelOptions<'_>, path: impl AsRef<Path>) -> Result<()> {
    write(sys::llm_model_save, source.into(), options, path.as_ref())
}

/// Writes the model of `source`, a GGUF file, as another GGUF file, its weights quantised and pruned as `options` say.
/// The file appears at `path` whole, replacing what was there, or not at all.
pub fn save_gguf<'s>(source: impl Into<Source<'s>>, options: ModelOptions<'_>, path: impl AsRef<Path>) -> Result<()> {
    write(sys::llm_model_save_gguf, source.into(), options, path.as_ref())
}

type Save = unsafe extern "C" fn(
    *const sys::llm_model_source,
    *const sys::llm_model_options,
    *const std::os::raw::c_char,
    usize,
) -> sys::llm_status;

fn write(save: Save, source: Source<'_>, mut options: ModelOptions<'_>, path: &Path) -> Result<()> {
    let call = SourceCall::new(&source);
    let path = lend(path.as_os_str().as_bytes());
    let mut progress = options.take_progress();
    let mut fields = options.fields();
    if let Some(progress) = &mut progress {
        progress.set(&mut fields);
    }
    // SAFETY: what the structs point to outlives the call, which keeps none of it.
    let saved = check(unsafe { save(&call.fields(), &fields, path.data, path.size) });
    call.resume();
    if let Some(progress) = progress {
        progress.caught.resume();
    }
    saved
}
