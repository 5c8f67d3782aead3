//! The handler for `SIGBUS`.
//!
//! It is set when the first file is mapped, if the signal has its default action then, and it comes
//! before the handler of the program where the program [asks for it](chain). A fault at any other
//! address is passed on to the handler that was there before.
//!
//! A Rust program never has the default action: its runtime sets a handler before `main`, which
//! reports stack overflows and restores the default action for anything else. That one counts as
//! the default. It is known by its flags, by serving `SIGSEGV` too, and by lying in the file of the
//! program, as this code does.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use rustix::io;

use super::table::{self, Entry};
use crate::fork::AtLeastOnce;
use crate::last_errno;

/// Bytes in a page; asked for before the handler is set.
static PAGE: AtomicUsize = AtomicUsize::new(4096);
/// The handlers of before, the newest first; none is the default action. Never freed: a handler
/// may be reading it.
static BEFORE: AtomicPtr<Before> = AtomicPtr::new(ptr::null_mut());

/// The flags of this handler. The kernel reads those of stopped children for `SIGCHLD` alone: here
/// they tell another copy of this library in the process which handler this is. `SA_ONSTACK` has it
/// on the thread's stack for signals, if there is one: a language's own stacks may be short.
const FLAGS: c_int = libc::SA_SIGINFO
    | libc::SA_ONSTACK
    | libc::SA_RESTART
    | libc::SA_NOCLDSTOP
    | libc::SA_NOCLDWAIT;

/// An action that was there before.
struct Before {
    action: libc::sigaction,
    was_called: AtomicBool,
    next: *const Before,
}

/// The handlers that a signal was passed on to: the second half of its `siginfo_t`. The kernel
/// clears it for each signal, so that nothing is left of a handler that did not return
/// (`siglongjmp`).
type Passed = [*const Before; 8];
const _: () = assert!(2 * size_of::<Passed>() == size_of::<libc::siginfo_t>());

type Handler = extern "C-unwind" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Sets the handler where the signal has its default action, or is answered by another copy of this
/// library, which gets the faults of its own mappings from here.
pub(super) fn set_where_default() {
    static HANDLER: AtLeastOnce = AtLeastOnce::new();
    HANDLER.ensure(|| {
        let _ = set(|before| is_default(before) || before.sa_flags & FLAGS == FLAGS);
    });
}

/// Sets the handler before that of the program, which gets every `SIGBUS` that is no fault of
/// Vellum's mappings. Does nothing where the handler is there already.
///
/// A program calls this when it has set its own handler.
pub fn chain() -> io::Result<()> {
    set(|_| true)
}

fn set(may_set: impl Fn(&libc::sigaction) -> bool) -> io::Result<()> {
    let before = action_of(libc::SIGBUS)?;
    if before.sa_sigaction == ours() || !may_set(&before) {
        return Ok(());
    }
    PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
    remember(before);
    // The mask of the earlier handler holds while it is called from here: the other signals that
    // wait, and whether this one does.
    let mut action = before;
    action.sa_sigaction = ours();
    action.sa_flags = FLAGS | (before.sa_flags & libc::SA_NODEFER);
    // SAFETY: the handler keeps to calls that are permitted in one, see `on_signal`.
    match unsafe { libc::sigaction(libc::SIGBUS, &action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

/// All that was there before, the newest first.
fn all_before() -> impl Iterator<Item = &'static Before> {
    // SAFETY: each one is null or points to a `Before` that is never freed or changed.
    let of = |before: *const Before| unsafe { before.as_ref() };
    std::iter::successors(of(BEFORE.load(Ordering::Acquire)), move |before| of(before.next))
}

/// Puts an action before all others, if it is not the first one.
fn remember(action: libc::sigaction) {
    // One that is to be called once may have been.
    let is_same = |before: &Before| {
        before.action.sa_sigaction == action.sa_sigaction
            && before.action.sa_flags == action.sa_flags
            && action.sa_flags & libc::SA_RESETHAND == 0
    };
    if all_before().next().is_some_and(is_same) {
        return;
    }
    let mut next = BEFORE.load(Ordering::Acquire);
    let made = Box::into_raw(Box::new(Before { action, was_called: AtomicBool::new(false), next }));
    loop {
        match BEFORE.compare_exchange(next, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(newest) => next = newest,
        }
        // SAFETY: made above, and no other thread can reach it until it is exchanged.
        unsafe { (*made).next = next };
    }
}

fn ours() -> libc::sighandler_t {
    on_signal as Handler as libc::sighandler_t
}

fn action_of(signal: c_int) -> io::Result<libc::sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: the kernel fills in the action, where the call succeeds.
    unsafe {
        match libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) {
            0 => Ok(action.assume_init()),
            _ => Err(last_errno()),
        }
    }
}

/// Whether a `SIGBUS` has no chosen action. A signal that is ignored is no choice about faults:
/// those end the process all the same.
fn is_default(action: &libc::sigaction) -> bool {
    matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) || is_of_rust_runtime(action)
}

fn is_of_rust_runtime(action: &libc::sigaction) -> bool {
    // The flags of the runtime; the C library may add the highest bit that it knows.
    const ASKED: c_int = libc::SA_SIGINFO | libc::SA_ONSTACK;
    const OTHERS: c_int = libc::SA_RESTART | libc::SA_NODEFER | libc::SA_RESETHAND;
    let handler = action.sa_sigaction;
    let flags_fit = action.sa_flags & (ASKED | OTHERS) == ASKED;
    let serves_both = action_of(libc::SIGSEGV).is_ok_and(|other| other.sa_sigaction == handler);
    flags_fit && serves_both && is_in_program(handler) && is_in_program(ours())
}

/// Whether an address is in the file of the program, as the kernel has loaded it.
///
/// That is known without the C library, which holds a lock while it looks through what is loaded: a
/// child forked meanwhile would wait for that for ever.
fn is_in_program(address: usize) -> bool {
    // SAFETY: these calls read values that the kernel gave the process at its start.
    let (headers, count) =
        unsafe { (libc::getauxval(libc::AT_PHDR), libc::getauxval(libc::AT_PHNUM)) };
    if headers == 0 {
        return false;
    }
    // SAFETY: the program's headers are there as long as it runs, so many, and no code writes them.
    let segments =
        unsafe { std::slice::from_raw_parts(headers as *const libc::Elf64_Phdr, count as usize) };
    let of_kind = |kind| segments.iter().find(|segment| segment.p_type == kind);
    // The headers say where they are themselves, or are behind the one of the file.
    let headers_at = match (of_kind(libc::PT_PHDR), of_kind(libc::PT_LOAD)) {
        (Some(own), _) => own.p_vaddr,
        (None, Some(first)) => first.p_vaddr + size_of::<libc::Elf64_Ehdr>() as u64,
        (None, None) => return false,
    };
    let moved_by = headers.wrapping_sub(headers_at);
    segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD).any(|segment| {
        let start = moved_by.wrapping_add(segment.p_vaddr) as usize;
        (start..start.saturating_add(segment.p_memsz as usize)).contains(&address)
    })
}

/// The handler. It makes system calls and reads and stores atomics: both are permitted in a
/// handler.
///
/// A handler that it calls may leave it by `siglongjmp`, `pthread_exit` or an exception: none of
/// the functions from here to there has anything to drop.
extern "C-unwind" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands in its description of the signal. `errno` is this thread's, and is
    // put back for the code that was interrupted.
    unsafe {
        let errno = *libc::__errno_location();
        // A signal that a process has sent has no address.
        let address = if (*info).si_code > 0 { (*info).si_addr() } else { ptr::null_mut() };
        let entry = NonNull::new(address.cast()).and_then(|at| Some((at, table::find(at)?)));
        let is_answered = entry.is_some_and(|(address, entry)| replace(entry, address));
        if !is_answered {
            pass_on(signal, info, context);
        }
        *libc::__errno_location() = errno;
    }
}

/// Notes the loss and puts private memory under the address, or under all of the mapping. Returns
/// whether the access may be tried again.
fn replace(entry: &Entry, address: NonNull<u8>) -> bool {
    let was_lost = entry.lose();
    pass_barrier();
    let page = PAGE.load(Ordering::Relaxed);
    let address = address.as_ptr() as usize;
    match entry.on_loss() {
        // Another thread is putting the copy there, or has: the access finds it, or comes here
        // again.
        Some(_) if was_lost => true,
        Some(on_loss) => put_copy(entry.start(), entry.len().next_multiple_of(page), Some(on_loss)),
        None => put_copy(address / page * page, page, None),
    }
}

/// Puts private memory with the same bytes, as far as they can be read, in the place of `len` bytes
/// at `start`. Returns whether it could.
fn put_copy(start: usize, len: usize, on_loss: Option<super::OnLoss>) -> bool {
    let page = PAGE.load(Ordering::Relaxed);
    // SAFETY: the new memory overlaps nothing. The kernel reads the bytes that are mapped at
    // `start` and answers with an error where a load would fault. Then the new memory is moved to
    // `start`, in the place of pages of the mapping that the table has there, and of nothing else.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let copy = libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0);
        if copy == libc::MAP_FAILED {
            return false;
        }
        for offset in (0..len).step_by(page) {
            let to = libc::iovec { iov_base: copy.add(offset), iov_len: page };
            let from = libc::iovec { iov_base: (start + offset) as *mut c_void, iov_len: page };
            libc::process_vm_readv(libc::getpid(), &to, 1, &from, 1, 0);
        }
        if let (Some(on_loss), Some(copy)) = (on_loss, NonNull::new(copy.cast())) {
            on_loss(copy);
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        libc::mremap(copy, len, len, flags, start as *mut c_void) != libc::MAP_FAILED
    }
}

/// Does what would have been done without this handler. A handler that was set over this one and
/// calls it may be there before too: then this one is called again for the same signal.
///
/// # Safety
///
/// The arguments are those of a handler.
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the information of a signal is on the stack of this thread, aligned for pointers, and
    // as long as two `Passed`; the kernel has nothing in the second one.
    unsafe {
        let is_sent = (*info).si_code <= 0;
        let passed = info.cast::<Passed>().add(1);
        let is_new = |before: &&Before| !(*passed).contains(&ptr::from_ref(*before));
        let free = (*passed).iter().position(|before| before.is_null());
        let (Some(before), Some(free)) = (all_before().find(is_new), free) else {
            return restore_default(signal, is_sent);
        };
        (*passed)[free] = before;
        match before.action.sa_sigaction {
            libc::SIG_IGN if is_sent => {}
            libc::SIG_DFL | libc::SIG_IGN => restore_default(signal, is_sent),
            _ if before.is_used_up() => restore_default(signal, is_sent),
            _ => before.call(signal, info, context),
        }
        (*passed)[free] = ptr::null();
    }
}

impl Before {
    /// Whether it was to be called once, and was.
    fn is_used_up(&self) -> bool {
        let is_once = self.action.sa_flags & libc::SA_RESETHAND != 0;
        self.was_called.swap(true, Ordering::Relaxed) && is_once
    }

    /// # Safety
    ///
    /// It is a function, and the arguments are those of a handler.
    unsafe fn call(&self, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        let handler = self.action.sa_sigaction;
        // SAFETY: a handler that was set with its flags takes these arguments.
        unsafe {
            if self.action.sa_flags & libc::SA_SIGINFO != 0 {
                std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
            } else {
                std::mem::transmute::<usize, extern "C-unwind" fn(c_int)>(handler)(signal);
            }
        }
    }
}

/// Lets the signal end the process: a fault is raised again by the same instruction, so that a core
/// dump shows it.
fn restore_default(signal: c_int, is_sent: bool) {
    // SAFETY: all zeros is the default action. A signal that is raised here arrives when the
    // handler has returned.
    unsafe {
        let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, &default, ptr::null_mut());
        if is_sent {
            libc::raise(signal);
        }
    }
}

/// Has each running thread of this process pass a full barrier: a load of the note that a thread
/// has made ahead of its store is made again.
///
/// Registers only here: a process with several threads waits 10 ms for that.
fn pass_barrier() {
    membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

/// Where the kernel offers no such barrier, replacing the memory takes longer than a load is ahead.
fn membarrier(command: c_int) {
    // SAFETY: the call takes no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
}
