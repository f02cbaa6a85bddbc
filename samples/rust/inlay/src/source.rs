//! Where a model's bytes come from.
use crate::call::{lend, Caught};
use inlay_sys as sys;
use std::io;
use std::os::raw::c_void;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::sync::Mutex;

/// Reads at an offset like `pread`: how many bytes it wrote, 0 at the end. Called from several threads at once.
pub(crate) type ReadAt<'a> = dyn Fn(u64, &mut [u8]) -> io::Result<usize> + Sync + 'a;

/// A GGUF file, read during the call that it is given to alone.
#[non_exhaustive]
pub enum Source<'a> {
    /// By its name.
    Path(&'a Path),
    /// The bytes `offset..offset + size` of an open file (size 0: up to its end), whose position stays.
    File {
        /// Open for reading.
        fd: BorrowedFd<'a>,
        /// Where the model starts.
        offset: u64,
        /// 0: up to the end.
        size: u64,
    },
    /// The whole file, in memory.
    Memory(&'a [u8]),
    /// Through a closure; made by [`Source::reader`].
    Reader(Reader<'a>),
}

/// A closure that reads, and the size of what it reads.
pub struct Reader<'a> {
    read: Box<ReadAt<'a>>,
    size: u64,
}

impl<'a> Source<'a> {
    /// A whole file that is open for reading.
    pub fn file(file: &'a impl AsFd) -> Source<'a> {
        Source::File { fd: file.as_fd(), offset: 0, size: 0 }
    }

    /// A file of `size` bytes, read through `read(offset, buffer)`, which says how many bytes it wrote and is called
    /// from several threads at once. Its errors end the open; so does a panic, which then goes on.
    pub fn reader(size: u64, read: impl Fn(u64, &mut [u8]) -> io::Result<usize> + Sync + 'a) -> Source<'a> {
        Source::Reader(Reader { read: Box::new(read), size })
    }
}

impl<'a, T: AsRef<Path> + ?Sized> From<&'a T> for Source<'a> {
    fn from(path: &'a T) -> Source<'a> {
        Source::Path(path.as_ref())
    }
}

/// A source as the C struct, with what the reader's calls need.
pub(crate) struct SourceCall<'a> {
    source: &'a Source<'a>,
    reading: Reading<'a>,
}

struct Reading<'a> {
    read: Option<&'a ReadAt<'a>>,
    caught: Mutex<Caught>,
}

impl<'a> SourceCall<'a> {
    pub(crate) fn new(source: &'a Source<'a>) -> SourceCall<'a> {
        let read = match source {
            Source::Reader(reader) => Some(&*reader.read),
            _ => None,
        };
        SourceCall { source, reading: Reading { read, caught: Mutex::default() } }
    }

    /// What it points to lives as long as `self` and stays where it is.
    pub(crate) fn fields(&self) -> sys::llm_model_source {
        let mut fields = sys::llm_model_source::default();
        match self.source {
            Source::Path(path) => {
                fields.kind = sys::LLM_SOURCE_PATH;
                fields.path = lend(path.as_os_str().as_bytes());
            }
            Source::File { fd, offset, size } => {
                fields.kind = sys::LLM_SOURCE_FD;
                fields.fd = fd.as_raw_fd();
                fields.offset = *offset;
                fields.size = *size;
            }
            Source::Memory(bytes) => {
                fields.kind = sys::LLM_SOURCE_MEMORY;
                fields.data = bytes.as_ptr().cast();
                fields.size = bytes.len() as u64;
            }
            Source::Reader(reader) => {
                fields.kind = sys::LLM_SOURCE_READER;
                fields.size = reader.size;
                fields.read = Some(on_read);
                fields.user_data = &self.reading as *const Reading<'_> as *mut c_void;
            }
        }
        fields
    }

    /// After the call: goes on with a panic of the reader.
    pub(crate) fn resume(self) {
        self.reading.caught.into_inner().unwrap_or_else(|poison| poison.into_inner()).resume();
    }
}

const EIO: i64 = 5;

unsafe extern "C" fn on_read(user_data: *mut c_void, offset: u64, buffer: *mut c_void, size: u64) -> i64 {
    // SAFETY: user_data is the Reading of the SourceCall whose call is running; it is only shared.
    let reading = unsafe { &*user_data.cast::<Reading<'_>>() };
    let size = size as usize;
    // SAFETY: the library lends `size` bytes, which may never have been written: a &mut [u8] needs them to be.
    let buffer = unsafe {
        std::ptr::write_bytes(buffer.cast::<u8>(), 0, size);
        std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size)
    };
    let mut caught = Caught::default();
    let answer = caught.run(|| reading.read.map_or(Ok(0), |read| read(offset, buffer)));
    match answer {
        Some(Ok(count)) if count <= size => count as i64,
        Some(Ok(_)) => -EIO, // it claims more than it was given room for
        Some(Err(error)) => -error.raw_os_error().map_or(EIO, i64::from).max(1),
        None => {
            *reading.caught.lock().unwrap_or_else(|poison| poison.into_inner()) = caught;
            -EIO
        }
    }
}
