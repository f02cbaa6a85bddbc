//! Statuses of the library as typed errors.
use inlay_sys as sys;
use std::ffi::CStr;
use std::fmt;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:path,)*) => {
        /// What kind of failure it was; which call gives which is written in `llm.h`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name,)*
            /// A status that this crate does not know.
            Other(i32),
        }

        impl Code {
            pub(crate) fn from_status(status: sys::llm_status) -> Code {
                $(if status == $value as i32 { return Code::$name; })*
                Code::Other(status)
            }

            fn status(self) -> sys::llm_status {
                match self {
                    $(Code::$name => $value as i32,)*
                    Code::Other(status) => status,
                }
            }
        }
    };
}

codes! {
    /// By the caller, a callback or a shutdown.
    Cancelled = sys::LLM_CANCELLED,
    /// Nothing more is known.
    Unknown = sys::LLM_UNKNOWN,
    /// A value that no state could make right.
    InvalidArgument = sys::LLM_INVALID_ARGUMENT,
    /// A deadline of the request, or a timeout of the call, passed.
    DeadlineExceeded = sys::LLM_DEADLINE_EXCEEDED,
    /// A path or an id.
    NotFound = sys::LLM_NOT_FOUND,
    /// It is there already.
    AlreadyExists = sys::LLM_ALREADY_EXISTS,
    /// The system refused.
    PermissionDenied = sys::LLM_PERMISSION_DENIED,
    /// Memory, descriptors or room in the queue.
    ResourceExhausted = sys::LLM_RESOURCE_EXHAUSTED,
    /// Not in this state.
    FailedPrecondition = sys::LLM_FAILED_PRECONDITION,
    /// Given up half way.
    Aborted = sys::LLM_ABORTED,
    /// Past an end.
    OutOfRange = sys::LLM_OUT_OF_RANGE,
    /// A format or wish that the loaded library does not know.
    Unimplemented = sys::LLM_UNIMPLEMENTED,
    /// A fault of the library.
    Internal = sys::LLM_INTERNAL,
    /// Not now.
    Unavailable = sys::LLM_UNAVAILABLE,
    /// A file ended early, or could not be written whole.
    DataLoss = sys::LLM_DATA_LOSS,
    /// Who is asking is not known.
    Unauthenticated = sys::LLM_UNAUTHENTICATED,
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: static and never NULL, whatever the status.
        let name = unsafe { CStr::from_ptr(sys::llm_status_name(self.status())) };
        formatter.write_str(&name.to_string_lossy())
    }
}

/// A failed call or request: its code, and what, which and where in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    code: Code,
    message: String,
}

impl Error {
    pub(crate) fn internal(message: &str) -> Error {
        Error::new(Code::Internal, message)
    }

    pub(crate) fn new(code: Code, message: impl Into<String>) -> Error {
        Error { code, message: message.into() }
    }

    /// What kind it is.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The library's words.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Error {}

/// The error of the call that this thread just made, where it made one.
pub(crate) fn check(status: sys::llm_status) -> Result<()> {
    if status == sys::LLM_OK as i32 {
        return Ok(());
    }
    // SAFETY: never NULL; copied before this thread's next call could change it.
    let message = unsafe { CStr::from_ptr(sys::llm_last_error()) };
    Err(Error::new(Code::from_status(status), message.to_string_lossy()))
}
