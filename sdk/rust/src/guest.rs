//! The exports of env ABI v1.

use crate::abi;
use crate::author::Env;
use crate::batch::{self, Batch};
use crate::memory;
use core::cell::UnsafeCell;
use std::sync::Mutex;

/// Text of the newest error, also of a panic.
static ERROR: Mutex<String> = Mutex::new(String::new());

fn fail(status: i32, text: String) -> i32 {
    if let Ok(mut error) = ERROR.lock() {
        *error = text;
    }
    status
}

/// The one guest of a module. Only `rl_env!` makes it.
pub struct Slot<E: Env>(UnsafeCell<Guest<E>>);

// A guest has one thread, and the host makes one call at a time.
unsafe impl<E: Env> Sync for Slot<E> {}

impl<E: Env> Slot<E> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Slot(UnsafeCell::new(Guest { batches: Vec::new() }))
    }

    /// # Safety
    /// One call at a time, and no result is kept beyond its call.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn get(&self) -> &mut Guest<E> {
        &mut *self.0.get()
    }
}

/// The batches of a guest and the functions that the host calls.
pub struct Guest<E: Env> {
    batches: Vec<Option<Batch<E>>>,
}

impl<E: Env> Guest<E> {
    pub fn describe(&mut self, config: u32, len: u32, buf: u32, cap: u32) -> i32 {
        match batch::describe::<E>(&String::from_utf8_lossy(memory::bytes(config, len))) {
            Ok(data) => memory::give(&data, buf, cap),
            Err(text) => fail(abi::STATUS_CONFIG, text),
        }
    }

    pub fn create(&mut self, config: u32, len: u32, envs: u32, autoreset: u32) -> i32 {
        std::panic::set_hook(Box::new(|info| {
            fail(abi::STATUS_INTERNAL, info.to_string());
        }));
        match Batch::new(&String::from_utf8_lossy(memory::bytes(config, len)), envs, autoreset) {
            Ok(batch) => {
                self.batches.push(Some(batch));
                self.batches.len() as i32 - 1
            }
            Err((status, text)) => fail(status, text),
        }
    }

    fn find(&mut self, batch: u32) -> Option<&mut Batch<E>> {
        self.batches.get_mut(batch as usize)?.as_mut()
    }

    fn find_env(&mut self, batch: u32, env: u32) -> Option<&mut Batch<E>> {
        self.find(batch).filter(|b| (env as usize) < b.len())
    }

    pub fn destroy(&mut self, batch: u32) -> i32 {
        if self.find(batch).is_none() {
            return abi::STATUS_ARGUMENT;
        }
        self.batches[batch as usize] = None;
        abi::STATUS_OK
    }

    pub fn bind(&mut self, batch: u32, bindings: u32, n: u32) -> i32 {
        match self.find(batch) {
            Some(b) if n <= 64 => b.bind(&memory::bindings(bindings, n)),
            _ => abi::STATUS_ARGUMENT,
        }
    }

    pub fn reset(&mut self, batch: u32, t: u32, mask: u32, seeds: u32) -> i32 {
        let Some(b) = self.find(batch) else { return abi::STATUS_ARGUMENT };
        let n = b.len() as u32;
        b.reset(t, (mask != 0).then(|| memory::bytes(mask, n)), (seeds != 0).then(|| memory::bytes(seeds, 8 * n)))
    }

    pub fn step(&mut self, batch: u32, t: u32) -> i32 {
        let Some(b) = self.find(batch) else { return abi::STATUS_ARGUMENT };
        b.step(t, 0, b.len())
    }

    pub fn step_range(&mut self, batch: u32, t: u32, first: u32, count: u32) -> i32 {
        let Some(b) = self.find(batch) else { return abi::STATUS_ARGUMENT };
        let (first, count) = (first as usize, count as usize);
        if first > b.len() || count > b.len() - first {
            return abi::STATUS_ARGUMENT;
        }
        b.step(t, first, count)
    }

    pub fn save(&mut self, batch: u32, env: u32, buf: u32, cap: u32) -> i32 {
        let Some(b) = self.find_env(batch, env) else { return abi::STATUS_ARGUMENT };
        b.save(env as usize).map_or(abi::STATUS_UNSUPPORTED, |data| memory::give(&data, buf, cap))
    }

    pub fn load(&mut self, batch: u32, env: u32, buf: u32, len: u32) -> i32 {
        let Some(b) = self.find_env(batch, env) else { return abi::STATUS_ARGUMENT };
        b.load(env as usize, memory::bytes(buf, len))
    }

    pub fn render(&mut self, batch: u32, env: u32, mode: u32, buf: u32, cap: u32) -> i32 {
        let Some(b) = self.find_env(batch, env) else { return abi::STATUS_ARGUMENT };
        // The numbers of the bits RENDER_TEXT and RENDER_RGB.
        let shown = match mode {
            0 => b.render(env as usize).map(String::into_bytes),
            1 => b.draw(env as usize),
            _ => None,
        };
        shown.map_or(abi::STATUS_UNSUPPORTED, |shown| memory::give(&shown, buf, cap))
    }

    pub fn alloc(&self, size: u32, align: u32) -> u32 {
        memory::donate(size, align)
    }

    pub fn free(&self, address: u32, size: u32) {
        memory::take_back(address, size)
    }

    pub fn last_error(&self, buf: u32, cap: u32) -> i32 {
        ERROR.lock().map_or(0, |text| memory::give(text.as_bytes(), buf, cap))
    }

    pub fn current_env(&self) -> i32 {
        batch::current() as i32
    }
}

/// Makes a guest out of a type that implements `Env`: exports every function of env ABI v1.
#[macro_export]
macro_rules! rl_env {
    ($env:ty) => {
        static RL_GUEST: $crate::Slot<$env> = $crate::Slot::new();

        #[no_mangle]
        pub extern "C" fn rl_env_v1() {}

        #[no_mangle]
        pub extern "C" fn rl_sdk_rust() {} // for the words of messages

        $crate::rl_export! {
            rl_describe => describe(config: u32, len: u32, buf: u32, cap: u32) -> i32;
            rl_alloc => alloc(size: u32, align: u32) -> u32;
            rl_free => free(address: u32, size: u32) -> ();
            rl_create => create(config: u32, len: u32, envs: u32, autoreset: u32) -> i32;
            rl_destroy => destroy(batch: u32) -> i32;
            rl_bind => bind(batch: u32, bindings: u32, n: u32) -> i32;
            rl_reset => reset(batch: u32, t: u32, mask: u32, seeds: u32) -> i32;
            rl_step => step(batch: u32, t: u32) -> i32;
            rl_step_range => step_range(batch: u32, t: u32, first: u32, count: u32) -> i32;
            rl_render => render(batch: u32, env: u32, mode: u32, buf: u32, cap: u32) -> i32;
            rl_save => save(batch: u32, env: u32, buf: u32, cap: u32) -> i32;
            rl_load => load(batch: u32, env: u32, buf: u32, len: u32) -> i32;
            rl_last_error => last_error(buf: u32, cap: u32) -> i32;
            rl_current_env => current_env() -> i32;
        }
    };
}

/// Exports methods of the guest under their names in the ABI.
#[doc(hidden)]
#[macro_export]
macro_rules! rl_export {
    ($($name:ident => $method:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[no_mangle]
        pub extern "C" fn $name($($arg: $type),*) -> $result {
            // The host makes one call at a time, on the guest's one thread.
            unsafe { RL_GUEST.get() }.$method($($arg),*)
        }
    )*};
}
