//! Places in linear memory. All of the crate's unsafe code about them is here.

use crate::abi::Binding;
use crate::author::Element;
use core::mem::size_of;
use core::slice;
use std::alloc::{alloc, dealloc, Layout};

/// What memory for the host is rounded to, so that a window never shares a page with the guest's own.
const HOST_PAGE: usize = 4096;
const MAX_ALIGN: usize = 65536;

#[cfg(target_arch = "wasm32")]
pub fn at(address: u32) -> *mut u8 {
    address as usize as *mut u8
}

/// Natively one static block stands for linear memory, for tests.
#[cfg(not(target_arch = "wasm32"))]
pub fn at(address: u32) -> *mut u8 {
    #[repr(align(65536))]
    struct Linear([u8; 1 << 20]);
    static mut LINEAR: Linear = Linear([0; 1 << 20]);
    assert!((address as usize) < 1 << 20);
    unsafe { (&raw mut LINEAR.0).cast::<u8>().add(address as usize) }
}

/// Bytes that the host wrote or wants written. The host owns all of the guest's memory and answers for them.
pub fn bytes<'a>(address: u32, len: u32) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    unsafe { slice::from_raw_parts(at(address), len as usize) }
}

/// Copies data to the host if it fits, and returns its length.
pub fn give(data: &[u8], buf: u32, cap: u32) -> i32 {
    if data.len() <= cap as usize && !data.is_empty() {
        unsafe { core::ptr::copy_nonoverlapping(data.as_ptr(), at(buf), data.len()) }
    }
    data.len() as i32
}

fn donation(size: u32, align: usize) -> Option<Layout> {
    let size = (size.max(1) as usize).checked_add(HOST_PAGE - 1)? & !(HOST_PAGE - 1);
    Layout::from_size_align(size, align).ok()
}

/// Memory for the host, which writes it or maps pages over it before anything is read. Every donation is aligned alike, so that take_back
/// knows its layout.
pub fn donate(size: u32, align: u32) -> u32 {
    if !align.is_power_of_two() || align as usize > MAX_ALIGN || size > 1 << 31 {
        return 0;
    }
    donation(size, MAX_ALIGN).map_or(0, |layout| unsafe { alloc(layout) } as usize as u32)
}

/// Takes back what donate gave, with the same size.
pub fn take_back(address: u32, size: u32) {
    if let (Some(layout), true) = (donation(size, MAX_ALIGN), address != 0) {
        unsafe { dealloc(at(address), layout) }
    }
}

/// The host's bindings; they may lie anywhere.
pub fn bindings(address: u32, n: u32) -> Vec<Binding> {
    let mut list = vec![Binding::default(); n as usize];
    if n > 0 {
        let size = n as usize * size_of::<Binding>();
        unsafe { core::ptr::copy_nonoverlapping(at(address), list.as_mut_ptr().cast(), size) }
    }
    list
}

/// N elements of a list from element i on, which it has. Checks would be made for each environment again.
#[inline(always)]
pub fn chunk<T, const N: usize>(list: &mut [T], i: usize) -> &mut [T; N] {
    debug_assert!(N <= list.len() && i <= list.len() - N);
    unsafe { &mut *list.as_mut_ptr().add(i).cast() }
}

/// The bytes of a struct of the ABI, which has no padding.
pub fn struct_bytes<T: Copy>(value: &T) -> &[u8] {
    unsafe { slice::from_raw_parts((value as *const T).cast(), size_of::<T>()) }
}

/// Where one of several tensors lies, in memory and in what stands for all of them: the author's struct, or a row of bytes.
pub struct Part {
    pub size: usize,
    pub elems: usize,
    pub offset: usize,
    base: *mut u8,
    time: usize,
    env: usize,
    agent: usize,
    elem: usize,
}

impl Part {
    pub fn new(size: usize, elems: usize, offset: usize) -> Self {
        Part { size, elems, offset, base: core::ptr::null_mut(), time: 0, env: 0, agent: 0, elem: 0 }
    }

    fn bind(&mut self, b: &Binding, needed: bool) -> bool {
        if places(b) as usize & (self.size - 1) != 0 || (needed && b.ptr == 0) {
            return false;
        }
        self.base = at(b.ptr);
        (self.time, self.env) = (b.stride_t as usize, b.stride_env as usize);
        (self.agent, self.elem) = (b.stride_agent as usize, b.stride_elem as usize);
        true
    }

    /// Copies the elements of an agent of environment i between memory and a struct.
    fn copy(&self, t: u32, i: usize, agent: usize, object: *mut u8, fetch: bool) {
        let base = self.base.wrapping_add((t as usize).wrapping_mul(self.time) + i * self.env + agent * self.agent);
        for k in 0..self.elems {
            let (there, here) = (base.wrapping_add(k * self.elem), object.wrapping_add(self.offset + k * self.size));
            let (from, to) = if fetch { (there, here) } else { (here, there) };
            unsafe { core::ptr::copy_nonoverlapping(from, to, self.size) }
        }
    }
}

/// Element k of a field of an author's struct, as a choice of a discrete action. It lies within the struct.
pub fn choice<T: Element>(object: &T, offset: usize, k: usize) -> u32 {
    debug_assert!(offset + (k + 1) * size_of::<u32>() <= size_of::<T>());
    unsafe { (object as *const T).cast::<u8>().add(offset).cast::<u32>().add(k).read_unaligned() }
}

/// All bits of a binding's address and strides.
fn places(b: &Binding) -> u32 {
    b.ptr | b.stride_t | b.stride_env | b.stride_agent | b.stride_elem
}

/// Where one tensor lies. Rows whose elements lie together are used in place; others go through packed rows of
/// the crate's own, so that the loop over environments knows one kind of row only.
pub struct Tensor<T> {
    /// Of an environment.
    pub elems: usize,
    /// Elements of an agent.
    pub row: usize,
    /// Whether the host has bound it.
    pub wanted: bool,
    base: *mut u8,
    time: usize,
    env: usize,
    agent: usize,
    elem: usize,
    packed: bool,
    envs: usize,
    rows: Vec<T>,     // [envs, elems], made when rows first turn out not to be packed
    parts: Vec<Part>, // of the row of an agent
}

/// A tensor's packed rows at one time. Small and copied, so that a loop keeps it in registers.
#[derive(Clone, Copy)]
pub struct Rows<T> {
    at: *mut u8,
    env: usize,
    elems: usize,
    marker: core::marker::PhantomData<T>,
}

impl<T: Element> Tensor<T> {
    pub fn new(row: usize, agents: usize, envs: usize) -> Self {
        Tensor {
            elems: row * agents,
            row,
            wanted: false,
            base: core::ptr::null_mut(),
            time: 0,
            env: 0,
            agent: 0,
            elem: 0,
            packed: true,
            envs,
            rows: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Rows that several tensors are the parts of: a struct with its fields, or several tensors of the same type one behind the
    /// other.
    pub fn of(parts: Vec<Part>, row: usize, agents: usize, envs: usize) -> Self {
        Tensor { packed: false, rows: vec![T::default(); envs * agents * row], parts, ..Tensor::new(row, agents, envs) }
    }

    /// Takes the places of the parts.
    pub fn bind_parts<'a>(&mut self, list: impl Iterator<Item = &'a Binding>, needed: bool) -> bool {
        self.parts.iter_mut().zip(list).all(|(part, binding)| part.bind(binding, needed))
    }

    /// Takes the tensor's place; false if it is misaligned, or missing though it is needed.
    pub fn bind(&mut self, b: &Binding, needed: bool) -> bool {
        let size = size_of::<T>() as u32;
        if places(b) & (size - 1) != 0 || (needed && b.ptr == 0) {
            return false;
        }
        self.wanted = b.ptr != 0;
        self.base = at(b.ptr);
        self.time = b.stride_t as usize;
        self.env = b.stride_env as usize;
        self.agent = b.stride_agent as usize;
        self.elem = b.stride_elem as usize;
        self.packed = b.stride_elem == size || self.row == 1;
        if self.elems > self.row {
            self.packed = self.packed && self.agent == self.row * size as usize;
        }
        if !self.packed {
            self.rows.resize(self.envs * self.elems, T::default());
        }
        true
    }

    fn place(&self, t: u32, i: usize, k: usize) -> *mut T {
        let (agent, k) = if self.elems > self.row { (k / self.row, k % self.row) } else { (0, k) };
        let offset = (t as usize).wrapping_mul(self.time) + i * self.env + agent * self.agent + k * self.elem;
        self.base.wrapping_add(offset).cast()
    }

    /// The rows at time t. The host binds only places within memory that it holds.
    pub fn rows(&mut self, t: u32) -> Rows<T> {
        let (at, env) = if self.packed {
            (self.base.wrapping_add((t as usize).wrapping_mul(self.time)), self.env)
        } else {
            (self.rows.as_mut_ptr().cast(), self.elems * size_of::<T>())
        };
        Rows { at, env, elems: self.elems, marker: core::marker::PhantomData }
    }

    /// The rows at time t with what is bound in those of first … end-1.
    pub fn fetch(&mut self, t: u32, first: usize, end: usize) -> Rows<T> {
        if !self.parts.is_empty() {
            self.copy_parts(t, first * self.elems, end * self.elems, true);
            return self.rows(t);
        }
        if !self.packed {
            for k in first * self.elems..end * self.elems {
                self.rows[k] = unsafe { *self.place(t, k / self.elems, k % self.elems) };
            }
        }
        self.rows(t)
    }

    /// Puts rows first … end-1 where they belong, unless they are there already.
    pub fn flush(&mut self, t: u32, first: usize, end: usize) {
        self.flush_elems(t, first * self.elems, end * self.elems)
    }

    /// Is flush for the row of one agent of environment i.
    pub fn flush_agent(&mut self, t: u32, i: usize, agent: usize) {
        let from = i * self.elems + agent * self.row;
        self.flush_elems(t, from, from + self.row)
    }

    #[inline(always)]
    fn flush_elems(&mut self, t: u32, from: usize, to: usize) {
        if !self.packed {
            self.scatter(t, from, to)
        }
    }

    #[inline(never)]
    fn scatter(&mut self, t: u32, from: usize, to: usize) {
        if !self.parts.is_empty() {
            return self.copy_parts(t, from, to, false);
        }
        for k in from..to {
            unsafe { *self.place(t, k / self.elems, k % self.elems) = self.rows[k] };
        }
    }
}

impl<T: Element> Tensor<T> {
    fn copy_parts(&mut self, t: u32, from: usize, to: usize, fetch: bool) {
        for k in (from..to).step_by(self.row) {
            let (i, agent) = (k / self.elems, k % self.elems / self.row);
            let object = (&raw mut self.rows[k..k + self.row]).cast();
            self.parts.iter().for_each(|part| part.copy(t, i, agent, object, fetch));
        }
    }
}

impl<T: Element> Rows<T> {
    /// Whether each environment has so many elements, with no gap between one environment and the next.
    pub fn is_packed(&self, elems: usize) -> bool {
        self.elems == elems && self.env == elems * size_of::<T>()
    }

    /// N elements from element i on, where rows are packed.
    #[inline(always)]
    pub fn group<'a, const N: usize>(&self, i: usize) -> &'a mut [T; N] {
        unsafe { &mut *self.at.cast::<T>().add(i).cast() }
    }

    /// So many elements from element i on, where rows are packed.
    #[inline(always)]
    pub fn elements<'a>(&self, i: usize, count: usize) -> &'a mut [T] {
        unsafe { slice::from_raw_parts_mut(self.at.cast::<T>().add(i), count) }
    }

    /// The row of environment i. No other row of the tensor overlaps it, and nothing keeps it beyond the call.
    #[inline(always)]
    pub fn row<'a>(&self, i: usize) -> &'a mut [T] {
        unsafe { slice::from_raw_parts_mut(self.at.wrapping_add(i * self.env).cast(), self.elems) }
    }

    /// The element of a scalar tensor.
    #[inline(always)]
    pub fn get(&self, i: usize) -> T {
        unsafe { *self.at.wrapping_add(i * self.env).cast() }
    }

    /// Sets the element of a scalar tensor.
    #[inline(always)]
    pub fn set(&self, i: usize, value: T) {
        unsafe { *self.at.wrapping_add(i * self.env).cast() = value }
    }
}
