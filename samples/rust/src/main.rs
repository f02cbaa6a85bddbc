//! Completes a text from Rust. Usage: inlay-sample MODEL.gguf "text"
mod ffi;

use std::ffi::CStr;
use std::io::Write;
use std::mem::{size_of, zeroed};
use std::process::ExitCode;
use std::ptr::null;

/// Closes in the right order on every way out.
struct Session {
    model: *mut ffi::Model,
    engine: *mut ffi::Engine,
}

impl Drop for Session {
    fn drop(&mut self) {
        unsafe {
            ffi::llm_engine_close(self.engine);
            ffi::llm_model_release(self.model);
        }
    }
}

fn check(status: i32) -> Result<(), String> {
    if status == ffi::OK {
        return Ok(());
    }
    let message = unsafe { CStr::from_ptr(ffi::llm_last_error()) };
    Err(message.to_string_lossy().into_owned())
}

impl Session {
    fn open(path: &str) -> Result<Session, String> {
        let mut session = Session { model: std::ptr::null_mut(), engine: std::ptr::null_mut() };
        unsafe {
            check(ffi::llm_model_open(path.as_ptr(), path.len(), null(), &mut session.model))?;
            check(ffi::llm_engine_open(session.model, null(), &mut session.engine))?;
        }
        Ok(session)
    }

    fn submit(&self, text: &str) -> Result<u64, String> {
        let mut id = 0;
        unsafe {
            let mut request: ffi::Request = zeroed();
            request.struct_size = size_of::<ffi::Request>() as u32;
            request.text = ffi::Str { data: text.as_ptr(), size: text.len() };
            request.max_new_tokens = 32;
            check(ffi::llm_submit(self.engine, &request, &mut id))?;
        }
        Ok(id)
    }

    /// Writes the text as it comes, until the request ends; returns the number of tokens.
    fn stream(&self, out: &mut impl Write) -> Result<i32, String> {
        loop {
            unsafe {
                let mut event: ffi::Event = zeroed();
                let mut count = 0usize;
                let queue = ffi::llm_engine_queue(self.engine);
                check(ffi::llm_poll(queue, &mut event, size_of::<ffi::Event>(), 1, -1, &mut count))?;
                if count == 0 {
                    continue;
                }
                if event.text.size > 0 {
                    let text = std::slice::from_raw_parts(event.text.data, event.text.size);
                    out.write_all(text).and_then(|()| out.flush()).map_err(|error| error.to_string())?;
                }
                if event.kind == ffi::EVENT_FINISHED {
                    check(event.status)?;
                    return Ok((*event.stats).generated_tokens);
                }
            }
        }
    }
}

fn run(path: &str, text: &str) -> Result<(), String> {
    let version = unsafe { ffi::llm_abi_version() };
    eprintln!("ABI {}.{}", version >> 16, version & 0xffff);
    let session = Session::open(path)?;
    session.submit(text)?;
    let tokens = session.stream(&mut std::io::stdout())?;
    println!();
    eprintln!("{tokens} tokens");
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 3 {
        eprintln!("usage: {} MODEL.gguf \"text\"", arguments[0]);
        return ExitCode::from(2);
    }
    match run(&arguments[1], &arguments[2]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
