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
    write(source.into(), options, path.as_ref(), |source, options, path| {
        // SAFETY: what the structs point to outlives the call, which keeps none of it.
        unsafe { sys::llm_model_save(source, options, path.data, path.size) }
    })
}

/// Writes the model of `source`, a GGUF file, as another GGUF file, its weights quantised and pruned as `options` say.
/// The file appears at `path` whole, replacing what was there, or not at all.
pub fn save_gguf<'s>(source: impl Into<Source<'s>>, options: ModelOptions<'_>, path: impl AsRef<Path>) -> Result<()> {
    write(source.into(), options, path.as_ref(), |source, options, path| {
        // SAFETY: likewise.
        unsafe { sys::llm_model_save_gguf(source, options, path.data, path.size) }
    })
}

fn write(
    source: Source<'_>,
    mut options: ModelOptions<'_>,
    path: &Path,
    save: impl Fn(&sys::llm_model_source, &sys::llm_model_options, sys::llm_string) -> sys::llm_status,
) -> Result<()> {
    let call = SourceCall::new(&source);
    let path = lend(path.as_os_str().as_bytes());
    let mut progress = options.take_progress();
    let mut fields = options.fields();
    if let Some(progress) = &mut progress {
        progress.set(&mut fields);
    }
    let saved = check(save(&call.fields(), &fields, path));
    call.resume();
    if let Some(progress) = progress {
        progress.caught.resume();
    }
    saved
}
