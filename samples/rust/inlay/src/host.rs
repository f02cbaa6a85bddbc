//! What a host lends a model or an engine: memory, threads, a clock, CPUs.
use crate::call::swallow_panic;
use inlay_sys as sys;
use std::os::raw::c_void;
use std::sync::Arc;

/// Memory for weights, keys and values, and workspace.
///
/// # Safety
/// `allocate` returns NULL or memory of that size and alignment which nobody else uses until it comes back. Both are
/// called from any thread, at the same time too, and must not panic.
pub unsafe trait Allocator: Send + Sync {
    /// NULL: there is none.
    fn allocate(&self, bytes: usize, alignment: usize) -> *mut u8;

    /// Takes back what `allocate` gave for as many bytes.
    ///
    /// # Safety
    /// It was given by `allocate` of the same allocator, once, and nobody uses it any more.
    unsafe fn deallocate(&self, memory: *mut u8, bytes: usize);
}

type Executor = dyn Fn(u32, &(dyn Fn(u32) + Sync)) + Send + Sync;
type Clock = dyn Fn() -> i64 + Send + Sync;

/// Hooks that take the place of the library's own; what is not set stays its own. They are called from any thread, at
/// the same time too, and must not call the library.
#[derive(Clone, Default)]
pub struct Host {
    allocator: Option<Arc<dyn Allocator>>,
    executor: Option<Arc<Executor>>,
    clock: Option<Arc<Clock>>,
    cpu_ids: Vec<i32>,
}

impl Host {
    /// No hooks.
    pub fn new() -> Host {
        Host::default()
    }

    /// Where memory comes from.
    pub fn allocator(mut self, allocator: Arc<impl Allocator + 'static>) -> Self {
        self.allocator = Some(allocator);
        self
    }

    /// Takes the place of worker threads: calls `task(i)` once for each `i` below `count`, in any order, on any threads,
    /// and returns when all have returned. One that does otherwise, or panics, makes the engine unhealthy.
    pub fn executor(mut self, run: impl Fn(u32, &(dyn Fn(u32) + Sync)) + Send + Sync + 'static) -> Self {
        self.executor = Some(Arc::new(run));
        self
    }

    /// An engine's time in ns. Where it panics, no time has passed.
    pub fn clock(mut self, now_ns: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(now_ns));
        self
    }

    /// Computing thread `i` runs on `cpu_ids[i % len]` alone.
    pub fn cpu_ids(mut self, cpu_ids: impl Into<Vec<i32>>) -> Self {
        self.cpu_ids = cpu_ids.into();
        self
    }

    /// REQUIRES: `self` stays where it is, as long as what the struct is given to.
    fn fields(&self) -> sys::llm_host {
        let user_data = self as *const Host as *mut c_void;
        let mut fields = sys::llm_host {
            allocator_user_data: user_data,
            executor_user_data: user_data,
            clock_user_data: user_data,
            cpu_ids: self.cpu_ids.as_ptr(),
            num_cpu_ids: self.cpu_ids.len(),
            ..Default::default()
        };
        if self.allocator.is_some() {
            fields.allocate = Some(on_allocate);
            fields.deallocate = Some(on_deallocate);
        }
        if self.executor.is_some() {
            fields.run = Some(on_run);
        }
        if self.clock.is_some() {
            fields.now_ns = Some(on_now);
        }
        fields
    }
}

/// Hooks where they stay, with the struct that names them.
pub(crate) struct HostHooks {
    host: Host,
    fields: sys::llm_host,
}

// SAFETY: the pointers are to `host`, whose parts are Send and Sync.
unsafe impl Send for HostHooks {}
// SAFETY: as above.
unsafe impl Sync for HostHooks {}

impl HostHooks {
    pub(crate) fn new(host: Host) -> Arc<HostHooks> {
        let mut hooks = Arc::new(HostHooks { host, fields: sys::llm_host::default() });
        if let Some(own) = Arc::get_mut(&mut hooks) {
            own.fields = own.host.fields();
        }
        hooks
    }

    /// Lives as long as `self`, which what it is given to must keep.
    pub(crate) fn fields(&self) -> *const sys::llm_host {
        &self.fields
    }
}

unsafe extern "C" fn on_allocate(user_data: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void {
    // SAFETY: user_data is the Host that the handle keeps; it is only shared. Likewise below.
    let host = unsafe { &*user_data.cast::<Host>() };
    let mut memory = std::ptr::null_mut();
    swallow_panic(|| memory = host.allocator.as_ref().map_or(memory, |own| own.allocate(bytes, alignment)));
    memory.cast()
}

unsafe extern "C" fn on_deallocate(user_data: *mut c_void, memory: *mut c_void, bytes: usize) {
    // SAFETY: as above; the library gives back what it was given.
    unsafe {
        let host = &*user_data.cast::<Host>();
        swallow_panic(|| {
            if let Some(own) = &host.allocator {
                own.deallocate(memory.cast(), bytes);
            }
        });
    }
}

/// Lets a closure be shared with the threads of the executor.
struct Task {
    task: unsafe extern "C" fn(*mut c_void, u32),
    data: *mut c_void,
}

// SAFETY: the library lets any thread call a task, while the executor has not returned.
unsafe impl Sync for Task {}

impl Task {
    fn run(&self, index: u32) {
        // SAFETY: borrowed from on_run, which has not returned. The library turns down what is not to run.
        unsafe { (self.task)(self.data, index) }
    }
}

unsafe extern "C" fn on_run(
    user_data: *mut c_void,
    task: Option<unsafe extern "C" fn(*mut c_void, u32)>,
    data: *mut c_void,
    count: u32,
) {
    // SAFETY: as above.
    let host = unsafe { &*user_data.cast::<Host>() };
    if let (Some(run), Some(task)) = (&host.executor, task) {
        let task = Task { task, data };
        // Where it panics, the library does what is left, and says what happened.
        swallow_panic(|| run(count, &|index| task.run(index)));
    }
}

unsafe extern "C" fn on_now(user_data: *mut c_void) -> i64 {
    // SAFETY: as above.
    let host = unsafe { &*user_data.cast::<Host>() };
    let mut now_ns = 0;
    swallow_panic(|| now_ns = host.clock.as_ref().map_or(0, |now| now()));
    now_ns
}
