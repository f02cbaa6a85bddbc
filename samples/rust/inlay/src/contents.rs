//! What a model's file holds.
use crate::call::copy_text;
use crate::error::{check, Result};
use crate::model::Model;
use inlay_sys as sys;

/// One tensor of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorInfo {
    /// As the file gives it.
    pub name: String,
    /// "F16", "Q4_K", ...
    pub kind: String,
    /// 1 to 4 sizes, the last contiguous.
    pub shape: Vec<u64>,
    /// Of its data, from the start of the file.
    pub file_offset: u64,
    /// Of its data in the file.
    pub size_bytes: u64,
}

impl Model {
    /// The tensors of the file, in its order.
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        (0..self.info()?.num_tensors).map(|index| self.tensor(index)).collect()
    }

    fn tensor(&self, index: u64) -> Result<TensorInfo> {
        let mut info = sys::llm_tensor_info::default();
        // SAFETY: the handle is open; its strings live as long as it does and are copied.
        unsafe {
            check(sys::llm_model_tensor(self.raw(), index, &mut info))?;
            Ok(TensorInfo {
                name: copy_text(info.name),
                kind: copy_text(info.type_),
                shape: info.shape[..info.shape.len().min(info.num_dims as usize)].to_vec(),
                file_offset: info.file_offset,
                size_bytes: info.size_bytes,
            })
        }
    }

    /// The metadata of the file, in its order: keys, and values as text, long ones shortened.
    pub fn metadata(&self) -> Result<Vec<(String, String)>> {
        let entry = |index| {
            let none = sys::llm_string { data: std::ptr::null(), size: 0 };
            let (mut key, mut value) = (none, none);
            // SAFETY: as above.
            unsafe {
                check(sys::llm_model_metadata(self.raw(), index, &mut key, &mut value))?;
                Ok((copy_text(key), copy_text(value)))
            }
        };
        (0..self.info()?.num_metadata).map(entry).collect()
    }
}
