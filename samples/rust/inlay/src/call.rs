//! What every call needs: strings in and out, sized answers, switches and times.
use crate::error::{check, Error, Result};
use inlay_sys as sys;
use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::Duration;

/// Lends `text` to a call. An empty one keeps its pointer, which tells it from one that is not set.
pub(crate) fn lend(text: &[u8]) -> sys::llm_string {
    sys::llm_string { data: text.as_ptr().cast(), size: text.len() }
}

/// A slice of what the library points to; it may be NULL where `size` is 0.
///
/// # Safety
/// `data` points to `size` values that outlive `'a`, or `size` is 0.
pub(crate) unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if size == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(data, size) }
}

/// A copy of text of the library; it is UTF-8 by contract, and what is not becomes U+FFFD.
///
/// # Safety
/// As for `slice`.
pub(crate) unsafe fn copy_text(text: sys::llm_string) -> String {
    // SAFETY: as above.
    String::from_utf8_lossy(unsafe { slice(text.data.cast(), text.size) }).into_owned()
}

/// Makes a call of the kind that writes up to `capacity` values and says how many there are, until they fit.
pub(crate) fn sized<T: Copy + Default>(
    first_guess: usize,
    mut call: impl FnMut(*mut T, usize, *mut usize) -> sys::llm_status,
) -> Result<Vec<T>> {
    let mut values = vec![T::default(); first_guess];
    loop {
        let mut count = 0;
        check(call(values.as_mut_ptr(), values.len(), &mut count))?;
        if count <= values.len() {
            values.truncate(count);
            return Ok(values);
        }
        // An eighth more: what is asked may grow between two calls.
        values.resize(count + count / 8, T::default());
    }
}

pub(crate) fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

pub(crate) fn switch(on: bool) -> u32 {
    if on {
        sys::LLM_ON
    } else {
        sys::LLM_OFF
    }
}

/// None waits for ever, which the C functions write as -1.
pub(crate) fn timeout_ns(timeout: Option<Duration>) -> i64 {
    timeout.map_or(-1, duration_ns)
}

pub(crate) fn duration_ns(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// What a closure panicked with while the library called it, to go on with after the library returned.
#[derive(Default)]
pub(crate) struct Caught(Option<Box<dyn Any + Send>>);

impl Caught {
    /// Runs `body`, or nothing once one has panicked; None then.
    pub(crate) fn run<T>(&mut self, body: impl FnOnce() -> T) -> Option<T> {
        if self.0.is_some() {
            return None;
        }
        match catch_unwind(AssertUnwindSafe(body)) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.0 = Some(payload);
                None
            }
        }
    }

    pub(crate) fn resume(self) {
        if let Some(payload) = self.0 {
            std::panic::resume_unwind(payload);
        }
    }
}

/// Runs a closure on a thread of the library, where a panic has nowhere to go. False: it panicked.
pub(crate) fn swallow_panic(body: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(()) => true,
        Err(payload) => {
            // Its Drop could panic in turn.
            if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(second);
            }
            false
        }
    }
}

pub(crate) fn non_null<T>(pointer: *mut T) -> Result<std::ptr::NonNull<T>> {
    std::ptr::NonNull::new(pointer).ok_or_else(|| Error::internal("the library returned no handle"))
}
