//! Records of steps and of requests, as the engine makes them.
use crate::engine::Engine;
use crate::error::{check, Result};
use inlay_sys as sys;
use std::mem::{size_of, zeroed};

/// One step; `llm.h` says what each field is.
pub type StepRecord = sys::llm_step_record;
/// One change of one request, of the kind `LLM_RECORD_*`; `llm.h` says what each field is.
pub type RequestRecord = sys::llm_request_record;

/// How far a reader has read; each has its own, for steps or for requests.
#[derive(Debug, Clone, Default)]
pub struct Cursor(u64);

const BATCH: usize = 256;

impl Engine {
    /// The steps since the last read with this cursor, of the last few thousand. Never waits.
    pub fn read_steps(&self, cursor: &mut Cursor) -> Result<Vec<StepRecord>> {
        read_all(|records, size, count| {
            // SAFETY: there is room for BATCH records of this size.
            unsafe { sys::llm_step_records_read(self.raw(), &mut cursor.0, records, size, BATCH, count) }
        })
    }

    /// Likewise, changes of requests.
    pub fn read_records(&self, cursor: &mut Cursor) -> Result<Vec<RequestRecord>> {
        read_all(|records, size, count| {
            // SAFETY: there is room for BATCH records of this size.
            unsafe { sys::llm_request_records_read(self.raw(), &mut cursor.0, records, size, BATCH, count) }
        })
    }
}

/// T: one of the two records, whose integers are valid when zero.
fn read_all<T: Copy>(mut read: impl FnMut(*mut T, usize, *mut usize) -> sys::llm_status) -> Result<Vec<T>> {
    let mut all = Vec::new();
    loop {
        // SAFETY: as above.
        let mut records: Vec<T> = vec![unsafe { zeroed() }; BATCH];
        let mut count = 0;
        check(read(records.as_mut_ptr(), size_of::<T>(), &mut count))?;
        all.extend_from_slice(&records[..count]);
        if count < BATCH {
            return Ok(all);
        }
    }
}
